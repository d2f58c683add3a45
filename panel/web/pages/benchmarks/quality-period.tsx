/** Chooses the days that a quality report is about. */
import { SegmentedControl } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";

const PERIODS = [1, 7, 30, 90] as const;

interface QualityPeriodProps {
  /** As text. */
  readonly days: string;
  readonly onDays: (days: string) => void;
}

export function QualityPeriod({ days, onDays }: QualityPeriodProps) {
  const { t } = useText();
  return (
    <SegmentedControl
      aria-label={t.benchmarks.period}
      size="xs"
      value={days}
      onChange={onDays}
      data={PERIODS.map((one) => ({ value: String(one), label: t.benchmarks.lastDays(one) }))}
    />
  );
}

import { Button, Card, Group, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconSearch } from "@tabler/icons-react";
import { useText } from "#panel/web/i18n/text.tsx";
import type { LaneQuestion } from "./queries.ts";

const CAP = /^\d{5}$/;

interface LaneFormProps {
  readonly initial: LaneQuestion;
  readonly onAsk: (question: LaneQuestion) => void;
}

export function LaneForm({ initial, onAsk }: LaneFormProps) {
  const { t } = useText();
  const form = useForm<LaneQuestion>({
    initialValues: initial,
    validate: {
      destCap: (value) => (value === "" || CAP.test(value) ? null : t.benchmarks.fiveDigits),
      originCap: (value) => (value === "" || CAP.test(value) ? null : t.benchmarks.fiveDigits),
      weightKg: (value) =>
        value === "" || Number(value.replace(",", ".")) > 0 ? null : t.benchmarks.aboveZero,
    },
  });
  const submit = form.onSubmit(({ weightKg, ...caps }) =>
    onAsk({ ...caps, weightKg: weightKg.replace(",", ".") }),
  );
  return (
    <Card padding="md">
      <form onSubmit={submit} aria-label={t.benchmarks.lane}>
        <Group align="start" gap="sm">
          <TextInput
            label={t.benchmarks.destCap}
            placeholder="00184"
            inputMode="numeric"
            maxLength={5}
            flex="1 1 140px"
            {...form.getInputProps("destCap")}
          />
          <TextInput
            label={t.benchmarks.originCap}
            placeholder="20121"
            inputMode="numeric"
            maxLength={5}
            flex="1 1 140px"
            {...form.getInputProps("originCap")}
          />
          <TextInput
            label={t.benchmarks.weight}
            placeholder="2.5"
            inputMode="decimal"
            maxLength={8}
            flex="1 1 140px"
            {...form.getInputProps("weightKg")}
          />
          <Button type="submit" mt={25} leftSection={<IconSearch size={16} aria-hidden />}>
            {t.benchmarks.show}
          </Button>
        </Group>
      </form>
    </Card>
  );
}

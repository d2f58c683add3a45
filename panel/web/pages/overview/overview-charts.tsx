/** The charts of the overview. */
import type { Overview } from "#panel/web/api/routes.ts";
import { SharesChart } from "#panel/web/charts/shares-chart.tsx";
import { TimeChart } from "#panel/web/charts/time-chart.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { READ_EVERY_MS, type Reading } from "./use-overview.ts";

/** A gap is where readings did not come. */
const GAP_MS = 5 * READ_EVERY_MS;
const MINUTE_MS = 60_000;
/** Couriers with the most events; the others are counted. */
const COURIERS_SHOWN = 12;

export function RateChart({ history }: { readonly history: readonly Reading[] }) {
  const { t } = useText();
  const f = useFormat();
  const pointsOf = (name: "accepted" | "applied") =>
    history.map((one) => ({ at: Date.parse(one.at), value: one[name] }));
  const times = history.map(({ at }) => Date.parse(at));
  const to = Math.max(...times);
  return (
    <TimeChart
      label={t.overview.rate}
      series={[
        { name: t.overview.accepted, tone: "indigo", points: pointsOf("accepted") },
        { name: t.overview.applied, tone: "teal", points: pointsOf("applied") },
      ]}
      from={Math.min(to - MINUTE_MS, ...times)}
      to={to}
      unit={t.overview.ratePerSecond}
      write={f.rate}
      writeAt={f.second}
      gapMs={GAP_MS}
    />
  );
}

export function OutcomeChart({ ledger }: Pick<Overview, "ledger">) {
  const { t } = useText();
  const f = useFormat();
  const { accepted, duplicate, unknown, invalid } = t.overview.outcome;
  const most = ledger.couriers.toSorted((one, other) => other.received - one.received);
  const others = most.length - COURIERS_SHOWN;
  return (
    <>
      <SharesChart
        label={t.overview.outcomes}
        keys={[
          { name: accepted, tone: "teal" },
          { name: duplicate, tone: "gray" },
          { name: unknown, tone: "yellow" },
          { name: invalid, tone: "red" },
        ]}
        rows={most.slice(0, COURIERS_SHOWN).map((one) => ({
          key: one.courier,
          name: one.courier,
          parts: [one.accepted, one.duplicate, one.unknown, one.invalid],
        }))}
        write={f.compact}
      />
      {others > 0 && t.overview.otherCouriers(f.whole(others))}
    </>
  );
}

/** Promises about the day of delivery, and how many were kept. */
import type { ClickHouseClient } from "@clickhouse/client";
import { MIN_SAMPLE } from "#core/benchmarks/rules/lane.ts";
import onTime from "./on-time.sql" with { type: "text" };

export interface OnTimeQuery {
  /** Days of delivery, `YYYY-MM-DD`, both inclusive. */
  readonly from: string;
  readonly to: string;
  /** Null = the whole network. */
  readonly courier: string | null;
}

/** Both null below 20 deliveries with the promise. */
export interface KeptShare {
  /** 0 to 1, four decimals. */
  readonly share: number | null;
  readonly sampleSize: number | null;
}

export interface OnTime {
  readonly firstEstimate: KeptShare;
  readonly lastEstimate: KeptShare;
  readonly planned: KeptShare;
}

type Counts = Readonly<
  Record<
    | "first_estimate"
    | "first_estimate_kept"
    | "last_estimate"
    | "last_estimate_kept"
    | "planned"
    | "planned_kept",
    number
  >
>;

export async function readOnTime(
  clickhouse: ClickHouseClient,
  { from, to, courier }: OnTimeQuery,
): Promise<OnTime> {
  const answer = await clickhouse.query({
    query: onTime,
    format: "JSONEachRow",
    query_params: { from, to, courier: courier ?? "" },
  });
  const [counts] = await answer.json<Counts>();
  return {
    firstEstimate: keptShare(counts?.first_estimate, counts?.first_estimate_kept),
    lastEstimate: keptShare(counts?.last_estimate, counts?.last_estimate_kept),
    planned: keptShare(counts?.planned, counts?.planned_kept),
  };
}

export const NO_PROMISES: OnTime = {
  firstEstimate: keptShare(0, 0),
  lastEstimate: keptShare(0, 0),
  planned: keptShare(0, 0),
};

function keptShare(promised = 0, kept = 0): KeptShare {
  if (promised < MIN_SAMPLE) return { share: null, sampleSize: null };
  return { share: Math.round((kept / promised) * 10_000) / 10_000, sampleSize: promised };
}

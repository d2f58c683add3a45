/** How long deliveries of a courier stayed in each status, counted by ClickHouse. */
import type { ClickHouseClient } from "@clickhouse/client";
import stayCells from "#analytics/queries/stay-cells.sql" with { type: "text" };
import { isStage, type Stay } from "#core/benchmarks/rules/expected-delivery.ts";
import type { Grain } from "#core/benchmarks/rules/lane.ts";
import type { StayLane } from "#core/benchmarks/store/stay-cells.ts";
import { addYears } from "#core/platform/time/rome-time.ts";
import { holidaysBetween } from "#core/platform/time/working-days.ts";

/** Days of delivery `YYYY-MM-DD`, `until` excluded. */
export interface StaysQuery {
  readonly courier: string;
  readonly since: string;
  readonly until: string;
}

interface StayRow {
  readonly destCap: string;
  readonly grain: Grain;
  readonly origin: string;
  readonly band: string;
  readonly stage: string;
  readonly stays: readonly Stay[];
}

export async function readStays(
  clickhouse: ClickHouseClient,
  { courier, since, until }: StaysQuery,
): Promise<StayLane[]> {
  const holidays = holidaysBetween(addYears(since, -1), until);
  const answer = await clickhouse.query({
    query: stayCells,
    format: "JSONEachRow",
    query_params: { courier, since, until, holidays },
  });
  const rows = await answer.json<StayRow>();
  return [...Map.groupBy(rows, ({ destCap }) => destCap)].map(([destCap, own]) => ({
    destCap,
    cells: own.flatMap(({ grain, origin, band, stage, stays }) =>
      isStage(stage) ? [{ grain, origin, band, stage, stays }] : [],
    ),
  }));
}

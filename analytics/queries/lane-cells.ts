/** The cells of the lanes to one destination CAP, read with one query. */
import type { ClickHouseClient } from "@clickhouse/client";
import { type DayCounts, sampleSize } from "#core/benchmarks/rules/day-counts.ts";
import type { LaneSample } from "#core/benchmarks/rules/efficiency-index.ts";
import {
  areaOfCap,
  GRAINS,
  type Grain,
  MIN_SAMPLE,
  weightBand,
  windowStart,
} from "#core/benchmarks/rules/lane.ts";
import laneCells from "./lane-cells.sql" with { type: "text" };

export interface LaneCell extends LaneSample {
  readonly courier: string;
  readonly grain: Grain;
}

export interface CellsQuery {
  readonly destCap: string;
  /** Null or not Italian: the grains with an origin are not asked. */
  readonly originCap: string | null;
  /** Null: the grains with a weight are not asked. */
  readonly weightKg: number | null;
  /** None = all of the network. */
  readonly couriers: readonly string[];
  readonly nowMs: number;
}

/** Days and deliveries as ClickHouse's `sumMap` gives them: two arrays of one length, by ascending days. */
export type DayMap = readonly [days: readonly number[], deliveries: readonly number[]];

interface CellRow {
  readonly courier: string;
  readonly grain: Grain;
  readonly troubles: number;
  readonly leads: DayMap;
  readonly transits: DayMap;
}

export async function readCells(
  clickhouse: ClickHouseClient,
  { destCap, originCap, weightKg, couriers, nowMs }: CellsQuery,
): Promise<LaneCell[]> {
  const area = originCap === null ? null : areaOfCap(originCap);
  const answer = await clickhouse.query({
    query: laneCells,
    format: "JSONEachRow",
    query_params: {
      destCap,
      originCap: area === null ? "" : originCap,
      originArea: area ?? "",
      weightBand: weightKg === null ? "" : weightBand(weightKg),
      couriers,
      since: windowStart(nowMs),
    },
  });
  const rows = await answer.json<CellRow>();
  return rows.map((row) => ({
    ...row,
    leads: dayCounts(row.leads),
    transits: dayCounts(row.transits),
  }));
}

export function dayCounts([days, deliveries]: DayMap): DayCounts {
  return days.map((day, at) => [day, deliveries[at] ?? 0] as const);
}

/** Falls back to the first grain, from finest to coarsest, that is not suppressed. */
export function finestCell(cells: readonly LaneCell[]): LaneCell | undefined {
  return GRAINS.map((name) => cells.find(({ grain }) => grain === name)).find(
    (cell) => cell !== undefined && sampleSize(cell.leads) >= MIN_SAMPLE,
  );
}

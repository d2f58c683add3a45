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
import { addYears, romeDate } from "#core/platform/time/rome-time.ts";
import { holidaysBetween } from "#core/platform/time/working-days.ts";
import laneCells from "./lane-cells.sql" with { type: "text" };
import promiseCells from "./promise-cells.sql" with { type: "text" };

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
  query: CellsQuery,
): Promise<LaneCell[]> {
  const answer = await clickhouse.query({
    query: laneCells,
    format: "JSONEachRow",
    query_params: laneParams(query),
  });
  const rows = await answer.json<CellRow>();
  return rows.map((row) => ({
    ...row,
    leads: dayCounts(row.leads),
    transits: dayCounts(row.transits),
  }));
}

/** Deliveries of a courier in a grain of the lane, by working days from the ship date. */
export interface PromiseCell {
  readonly courier: string;
  readonly grain: Grain;
  readonly counts: DayCounts;
}

interface PromiseRow {
  readonly courier: string;
  readonly grain: Grain;
  readonly days: DayMap;
}

export async function readPromiseCells(
  clickhouse: ClickHouseClient,
  query: CellsQuery,
): Promise<PromiseCell[]> {
  const params = laneParams(query);
  const holidays = holidaysBetween(addYears(params.since, -1), romeDate(query.nowMs));
  const answer = await clickhouse.query({
    query: promiseCells,
    format: "JSONEachRow",
    query_params: { ...params, holidays },
  });
  const rows = await answer.json<PromiseRow>();
  return rows.map(({ courier, grain, days }) => ({ courier, grain, counts: dayCounts(days) }));
}

function laneParams({ destCap, originCap, weightKg, couriers, nowMs }: CellsQuery) {
  const area = originCap === null ? null : areaOfCap(originCap);
  return {
    destCap,
    originCap: area === null ? "" : originCap,
    originArea: area ?? "",
    weightBand: weightKg === null ? "" : weightBand(weightKg),
    couriers,
    since: windowStart(nowMs),
  };
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

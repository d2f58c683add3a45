/** Questions about batches of the archive that are to be removed. Numbers and days alone go into a statement's text. */
import type { ClickHouseClient } from "@clickhouse/client";
import type { Counting } from "#core/archive/store/archive-summary.ts";
import type { RetiredCount } from "#core/archive/store/retirement.ts";
import { isCalendarDate } from "#core/platform/time/rome-time.ts";
import { ARCHIVED_SHIPMENTS } from "./archive-rows.ts";
import {
  countingRows,
  deleteEverywhere,
  listed,
  readRows,
  type SealedRow,
  whole,
} from "./archive-table.ts";

const { name: TABLE } = ARCHIVED_SHIPMENTS;

/** Batches of a company. */
export interface BatchRange {
  /** Its channels with archived shipments. */
  readonly channelIds: readonly number[];
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

function rangeOf({ channelIds, from, to }: BatchRange): string {
  return `channel IN (${listed(channelIds)}) AND batch >= ${whole(from)} AND batch < ${whole(to)}`;
}

async function ask<T>(clickhouse: ClickHouseClient, query: string): Promise<T[]> {
  const answer = await clickhouse.query({ query, format: "JSONEachRow" });
  return answer.json<T>();
}

/**
 * Where the oldest batches end that were archived before a day, some of them at most.
 * @returns exclusive; null = there are none
 */
export async function endOfRetired(
  clickhouse: ClickHouseClient,
  range: BatchRange,
  before: string,
  most: number,
): Promise<number | null> {
  if (!isCalendarDate(before)) throw new RangeError(`${before} is no day`);
  const [younger] = await ask<{ first: number; found: number }>(
    clickhouse,
    `SELECT min(batch) AS first, count() AS found FROM ${TABLE}
     WHERE ${rangeOf(range)} AND archived_on >= '${before}'`,
  );
  const to = younger && younger.found > 0 ? younger.first : range.to;
  const batches = await ask<{ batch: number }>(
    clickhouse,
    `SELECT batch FROM ${TABLE} WHERE ${rangeOf({ ...range, to })}
     GROUP BY batch ORDER BY batch LIMIT ${whole(most)}`,
  );
  const last = batches.at(-1);
  return last ? last.batch + 1 : null;
}

export interface PlacedRow {
  readonly channel: number;
  readonly id: number;
  readonly batch: number;
}

/** Every row of the range, whether it counts or not. */
export function readPlaces(clickhouse: ClickHouseClient, range: BatchRange): Promise<PlacedRow[]> {
  return ask<PlacedRow>(
    clickhouse,
    `SELECT channel, id, batch FROM ${TABLE} WHERE ${rangeOf(range)}
     ORDER BY channel, id, batch`,
  );
}

/** The same of the oldest batches of the range without those that are absent, some of them at most. */
export function readPlacesOfBatches(
  clickhouse: ClickHouseClient,
  range: BatchRange,
  absent: readonly number[],
  most: number,
): Promise<PlacedRow[]> {
  const present = absent.length === 0 ? "" : `AND batch NOT IN (${listed(absent)})`;
  const batches = `SELECT DISTINCT batch FROM ${TABLE} WHERE ${rangeOf(range)} ${present}
                   ORDER BY batch LIMIT ${whole(most)}`;
  return ask<PlacedRow>(
    clickhouse,
    `SELECT channel, id, batch FROM ${TABLE} WHERE ${rangeOf(range)} AND batch IN (${batches})
     ORDER BY batch, id`,
  );
}

export function readRowsOf(
  clickhouse: ClickHouseClient,
  places: readonly PlacedRow[],
): Promise<SealedRow[]> {
  const ids = places.map(({ id }) => id);
  return readRows(clickhouse, ids, [...new Set(places.map(({ channel }) => channel))]);
}

/** How many rows of the range count, by channel and status. */
export function countRange(
  clickhouse: ClickHouseClient,
  range: BatchRange,
  counting: Counting,
): Promise<RetiredCount[]> {
  const where = [rangeOf(range), ...countingRows(counting)].join(" AND ");
  return ask<RetiredCount>(
    clickhouse,
    `SELECT channel, status, count() AS shipments FROM ${TABLE} WHERE ${where}
     GROUP BY channel, status ORDER BY channel, status`,
  );
}

export async function deleteBatches(
  clickhouse: ClickHouseClient,
  range: BatchRange,
): Promise<void> {
  await deleteEverywhere(clickhouse, rangeOf(range));
}

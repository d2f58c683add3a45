/** Rows of the table of archived shipments. Numbers alone go into a statement's text; there is nothing else to ask by. */
import { createHash } from "node:crypto";
import type { ClickHouseClient } from "@clickhouse/client";
import { clickhouseErrorType } from "#analytics/clickhouse/clickhouse.ts";
import { isRefusal } from "#analytics/write/insert-rows.ts";
import type { Row } from "#analytics/write/rows.ts";
import type { AheadPage, ArchivePlace } from "#core/archive/store/archive.ts";
import type { Counting } from "#core/archive/store/archive-summary.ts";
import { factsOfWhole } from "#core/archive/store/archived-shipment.ts";
import type { ArchivedShipment } from "#core/archive/store/restore-shipments.ts";
import { AHEAD_MS } from "#core/events/rules/fact.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import { INDEX_TABLE } from "./archive-index.ts";
import { ARCHIVED_SHIPMENTS, openParts, type StoredParts } from "./archive-rows.ts";

const { name: TABLE, columns: COLUMNS } = ARCHIVED_SHIPMENTS;

/** The same rows again, after an answer that was lost, insert nothing. */
export async function insertArchived(
  clickhouse: ClickHouseClient,
  rows: readonly Row[],
): Promise<void> {
  const text = rows.map((row) => JSON.stringify(row)).join("\n");
  const token = createHash("sha256").update(text).digest("base64url");
  await clickhouse.command({
    // Where the rows were written and those of the index were not, a repetition writes these.
    query: `INSERT INTO ${TABLE} (${COLUMNS})
            SETTINGS insert_deduplication_token = '${token}', deduplicate_blocks_in_dependent_materialized_views = 1
            FORMAT JSONCompactEachRow\n${text}`,
  });
}

/**
 * The same, without rows that ClickHouse refuses: they are found by bisection.
 * @param assertHeld asked before each insert
 * @returns those, and why
 * @throws while it is unavailable
 */
export async function insertSound(
  clickhouse: ClickHouseClient,
  rows: readonly Row[],
  assertHeld: () => Promise<void>,
): Promise<Map<Row, string>> {
  const refused = new Map<Row, string>();
  if (rows.length === 0) return refused;
  await assertHeld();
  try {
    await insertArchived(clickhouse, rows);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const [only] = rows;
    if (rows.length === 1 && only) return new Map([[only, error.message]]);
    const middle = Math.ceil(rows.length / 2);
    for (const half of [rows.slice(0, middle), rows.slice(middle)]) {
      for (const [row, reason] of await insertSound(clickhouse, half, assertHeld))
        refused.set(row, reason);
    }
  }
  return refused;
}

/** @param rows `id batch` */
export async function deleteRows(
  clickhouse: ClickHouseClient,
  companyId: number,
  rows: readonly string[],
  batches: readonly number[],
): Promise<void> {
  const named = namedRows({ absentRows: rows, absentBatches: batches }).join(" OR ");
  const condition = `company = ${whole(companyId)} AND (${named})`;
  await deleteEverywhere(clickhouse, condition);
}

/** Which of these batches of a company have rows. */
export async function readPresent(
  clickhouse: ClickHouseClient,
  companyId: number,
  batches: readonly number[],
): Promise<number[]> {
  const answer = await clickhouse.query({
    query: `SELECT DISTINCT batch FROM ${TABLE}
            WHERE company = ${whole(companyId)} AND batch IN (${listed(batches)})`,
    format: "JSONEachRow",
  });
  return (await answer.json<{ batch: number | string }>()).map(({ batch }) => Number(batch));
}

/** @param condition on columns that the index has too */
export async function deleteEverywhere(
  clickhouse: ClickHouseClient,
  condition: string,
): Promise<void> {
  for (const table of [INDEX_TABLE, TABLE]) {
    await clickhouse.command({ query: `DELETE FROM ${table} WHERE ${condition}` });
  }
}

/** A shipment in a row, still encrypted. */
export interface SealedRow extends StoredParts {
  readonly company: number;
  readonly id: number;
  readonly batch: number;
}

/** Every row of these shipments. They are few granules: more threads than one only cost their start. */
export async function readRows(
  clickhouse: ClickHouseClient,
  ids: readonly number[],
  channelIds: readonly number[],
): Promise<SealedRow[]> {
  const answer = await clickhouse.query({
    query: `SELECT company, id, batch, event_ids AS eventIds, occurred, rest,
              base64Encode(words) AS words, base64Encode(sealed) AS sealed FROM ${TABLE}
            PREWHERE channel IN (${listed(channelIds)}) AND id IN (${listed(ids)})
            SETTINGS max_threads = 1`,
    format: "JSONEachRow",
  });
  return answer.json<SealedRow>();
}

/** Whether the replica that answers has all rows that were inserted by now; unknown if it is none, or may not be asked. */
export type Progress = "in step" | "behind" | "unknown";

export async function readProgress(clickhouse: ClickHouseClient): Promise<Progress> {
  const query = `SELECT is_readonly = 0 AND is_session_expired = 0 AND inserts_in_queue = 0
            AND (log_pointer > log_max_index OR log_max_index = 0) AS isInStep
          FROM system.replicas WHERE database = currentDatabase() AND table = '${TABLE}'`;
  try {
    const answer = await clickhouse.query({ query, format: "JSONEachRow" });
    const [row] = await answer.json<{ isInStep: number }>();
    if (!row) return "unknown";
    return Number(row.isInStep) === 1 ? "in step" : "behind";
  } catch (error) {
    if (clickhouseErrorType(error) === "ACCESS_DENIED") return "unknown";
    throw error;
  }
}

/** Rows looked at by one question for those from the future: about 10 MB of times. */
const AHEAD_ROWS = limit(
  20_000,
  "archived rows that one step of the refold after an upgrade reads",
  "the next step goes on",
);

interface AheadRow {
  readonly total: number | string;
  readonly last: readonly [channel: number, id: number | string];
  readonly ids: ReadonlyArray<number | string>;
}

/** Times of a row: each as it was written, or in seconds after the one before (`archived-history.ts`). */
export async function readAhead(
  clickhouse: ClickHouseClient,
  { channelId, id }: ArchivePlace,
  rows = AHEAD_ROWS,
): Promise<AheadPage> {
  const second = `if(startsWith(one, '"'),
    toInt64(toUnixTimestamp(parseDateTime64BestEffortOrZero(trim(BOTH '"' FROM one), 0, 'UTC'))),
    known.1 + toInt64OrZero(one))`;
  const latest = `arrayFold((known, one) -> (${second}, greatest(known.2, ${second})),
    JSONExtractArrayRaw(occurred), (toInt64(0), toInt64(0))).2`;
  const answer = await clickhouse.query({
    query: `SELECT count() AS total, max((channel, id)) AS last,
              groupArrayIf(id, updated > 0 AND ${latest} > updated + ${whole(AHEAD_MS / 1000)}) AS ids
            FROM (SELECT channel, id, updated, occurred FROM ${TABLE}
              WHERE channel > ${whole(channelId)} OR (channel = ${whole(channelId)} AND id > ${whole(id)})
              ORDER BY channel, id LIMIT ${whole(rows)})
            SETTINGS max_threads = 1`,
    format: "JSONEachRow",
  });
  const [row] = await answer.json<AheadRow>();
  if (!row || Number(row.total) === 0) return { ids: [], next: null };
  const [channel, last] = row.last;
  const next = Number(row.total) < rows ? null : { channelId: channel, id: Number(last) };
  return { ids: [...new Set(row.ids.map(Number))], next };
}

/** @throws when the row was not written by us, or is damaged */
export function openRow(
  vault: Pick<Vault, "keyFor">,
  { company: companyId, id, batch, ...stored }: SealedRow,
): ArchivedShipment {
  const whole = openParts(vault, { companyId, id, batch }, stored);
  const facts = factsOfWhole(whole);
  if (!facts) throw new Error(`the archived shipment ${id} is not whole`);
  return { companyId, batch, whole, facts };
}

/** On disk, of this replica, with the index. */
export async function readBytes(clickhouse: ClickHouseClient): Promise<number> {
  const answer = await clickhouse.query({
    query: `SELECT sum(total_bytes) AS bytes FROM system.tables
            WHERE database = currentDatabase() AND name IN ('${TABLE}', '${INDEX_TABLE}')`,
    format: "JSONEachRow",
  });
  const [row] = await answer.json<{ bytes: number | string }>();
  return Number(row?.bytes ?? 0);
}

export function countingRows({ batch, floor, absentRows, absentBatches }: Counting): string[] {
  const where = [`batch <= ${whole(batch)}`];
  if (floor > 0) where.push(`batch >= ${whole(floor)}`);
  if (absentBatches.length > 0) where.push(`batch NOT IN (${listed(absentBatches)})`);
  if (absentRows.length > 0) {
    where.push(`(id, batch) NOT IN (${pairs(absentRows)})`);
  }
  return where;
}

/** The rows that do not count: any of these conditions. */
export function absentRows({ batch, floor, ...named }: Counting): string[] {
  const either = [`batch > ${whole(batch)}`];
  if (floor > 0) either.push(`batch < ${whole(floor)}`);
  return either.concat(namedRows(named));
}

function namedRows({
  absentRows: rows,
  absentBatches,
}: Pick<Counting, "absentRows" | "absentBatches">): string[] {
  const either: string[] = [];
  if (absentBatches.length > 0) either.push(`batch IN (${listed(absentBatches)})`);
  if (rows.length > 0) either.push(`(id, batch) IN (${pairs(rows)})`);
  return either;
}

/** @param rows `id batch` */
function pairs(rows: readonly string[]): string {
  return rows.map((row) => `(${listed(row.split(" ").map(Number))})`).join(",");
}

export function listed(numbers: readonly number[]): string {
  return numbers.length === 0 ? "NULL" : numbers.map(whole).join(",");
}

/** @throws for what is no whole number: nothing else may stand in a statement */
export function whole(number: number): string {
  if (!Number.isSafeInteger(number)) throw new RangeError(`${number} is no whole number`);
  return String(number);
}

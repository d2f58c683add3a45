/** Questions to the table of archived shipments. Numbers alone go into a statement's text; there is nothing else to ask by. */
import { createHash } from "node:crypto";
import type { ClickHouseClient } from "@clickhouse/client";
import { STATUSES } from "#core/domain/statuses/status.ts";
import type { ExactField, IndexOrder } from "#core/redis/client/keys.ts";
import type { ArchivedHit, ArchiveQuestion } from "#core/redis/search/archive-search.ts";
import type { Counting } from "#core/redis/shipments/archive-summary.ts";
import { DAY_SHIFT } from "#core/redis/shipments/columns.ts";
import type { ArchivedShipment } from "#core/redis/shipments/restore-shipments.ts";
import type { Vault } from "#core/secrets.ts";
import {
  ARCHIVED_SHIPMENTS,
  openParts,
  type StoredParts,
  VALUE_COLUMNS,
  valueHash,
} from "./archive-rows.ts";
import { isRefusal } from "./insert-rows.ts";
import type { Row } from "./rows.ts";

const { name: TABLE, columns: COLUMNS } = ARCHIVED_SHIPMENTS;

const ORDER_COLUMNS: Readonly<Record<IndexOrder, string>> = {
  id: "id",
  ship: "shipped",
  upd: "updated",
};

/** The same rows again, after an answer that was lost, insert nothing. */
export async function insertArchived(
  clickhouse: ClickHouseClient,
  rows: readonly Row[],
): Promise<void> {
  const text = rows.map((row) => JSON.stringify(row)).join("\n");
  const token = createHash("sha256").update(text).digest("base64url");
  await clickhouse.command({
    query: `INSERT INTO ${TABLE} (${COLUMNS}) FORMAT JSONCompactEachRow\n${text}`,
    clickhouse_settings: { insert_deduplication_token: token },
  });
}

/**
 * The same, without rows that ClickHouse refuses: they are found by bisection.
 * @returns those, and why
 * @throws while it is unavailable
 */
export async function insertSound(
  clickhouse: ClickHouseClient,
  rows: readonly Row[],
): Promise<Map<Row, string>> {
  const refused = new Map<Row, string>();
  if (rows.length === 0) return refused;
  try {
    await insertArchived(clickhouse, rows);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const [only] = rows;
    if (rows.length === 1 && only) return new Map([[only, error.message]]);
    const middle = Math.ceil(rows.length / 2);
    for (const half of [rows.slice(0, middle), rows.slice(middle)]) {
      for (const [row, reason] of await insertSound(clickhouse, half)) refused.set(row, reason);
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
  const absent = countingRows({
    batch: 0,
    floor: 0,
    absentRows: rows,
    absentBatches: batches,
  }).slice(1);
  const condition = `company = ${whole(companyId)} AND NOT (${absent.join(" AND ")})`;
  await clickhouse.command({ query: `DELETE FROM ${TABLE} WHERE ${condition}` });
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

/** @throws when the row was not written by us */
export function openRow(
  vault: Pick<Vault, "keyFor">,
  { company: companyId, id, batch, ...stored }: SealedRow,
): ArchivedShipment {
  return { companyId, batch, whole: openParts(vault, { companyId, id, batch }, stored) };
}

/** Shipments that match, from a position on. */
export async function readHits(
  clickhouse: ClickHouseClient,
  vault: Pick<Vault, "keyFor">,
  question: ArchiveQuestion,
  offset: number,
  limit: number,
): Promise<ArchivedHit[]> {
  const { column, order, shift } = sortingOf(question);
  const query = `SELECT id, ${column} AS score FROM ${TABLE} WHERE ${matching(vault, question)}
            ORDER BY ${order} LIMIT ${whole(limit)} OFFSET ${whole(offset)}`;
  return askForHits(clickhouse, query, shift);
}

async function askForHits(
  clickhouse: ClickHouseClient,
  query: string,
  shift: number,
): Promise<ArchivedHit[]> {
  const answer = await clickhouse.query({ query, format: "JSONEachRow" });
  const rows = await answer.json<ArchivedHit>();
  return rows.map(({ id, score }) => ({ id, score: score - shift }));
}

export async function countHits(
  clickhouse: ClickHouseClient,
  vault: Pick<Vault, "keyFor">,
  question: ArchiveQuestion,
): Promise<number> {
  const answer = await clickhouse.query({
    query: `SELECT count() AS total FROM ${TABLE} WHERE ${matching(vault, question)}`,
    format: "JSONEachRow",
  });
  const [row] = await answer.json<{ total: number }>();
  return row?.total ?? 0;
}

/** On disk, of this replica. */
export async function readBytes(clickhouse: ClickHouseClient): Promise<number> {
  const answer = await clickhouse.query({
    query: `SELECT sum(bytes_on_disk) AS bytes FROM system.parts
            WHERE database = currentDatabase() AND table = '${TABLE}' AND active`,
    format: "JSONEachRow",
  });
  const [row] = await answer.json<{ bytes: number | string }>();
  return Number(row?.bytes ?? 0);
}

/** Every `distance`-th shipment that matches, up to a position. */
export async function readMarks(
  clickhouse: ClickHouseClient,
  vault: Pick<Vault, "keyFor">,
  question: ArchiveQuestion,
  distance: number,
  end: number,
): Promise<ArchivedHit[]> {
  const { column, order, shift } = sortingOf(question);
  const query = `SELECT id, score FROM (
              SELECT id, ${column} AS score, row_number() OVER (ORDER BY ${order}) AS place FROM (
                SELECT ${column === "id" ? "id" : `id, ${column}`} FROM ${TABLE} WHERE ${matching(vault, question)}
                ORDER BY ${order} LIMIT ${whole(end)}))
            WHERE (place - 1) % ${whole(distance)} = 0 ORDER BY place`;
  return askForHits(clickhouse, query, shift);
}

function sortingOf({ query }: ArchiveQuestion) {
  const { by, descending } = query.order;
  const column = ORDER_COLUMNS[by];
  const direction = descending ? "DESC" : "ASC";
  const order = by === "id" ? `id ${direction}` : `${column} ${direction}, id ${direction}`;
  return { column, order, shift: by === "ship" ? DAY_SHIFT : 0 };
}

function matching(vault: Pick<Vault, "keyFor">, { query, counting }: ArchiveQuestion): string {
  const { companyId, channelIds, trackingNumber, exact } = query;
  const { shipFrom, shipTo, statuses, updatedFrom } = query;
  const hash = (field: ExactField | "number", value: string) =>
    valueHash(vault, companyId, field, value);
  const where = [`channel IN (${listed(channelIds)})`, ...countingRows(counting)];
  if (trackingNumber !== null) where.push(`has(numbers, ${hash("number", trackingNumber)})`);
  for (const [field, value] of Object.entries(exact) as [ExactField, string][]) {
    where.push(`${VALUE_COLUMNS[field]} = ${hash(field, value)}`);
  }
  if (shipFrom !== null) where.push(`shipped >= ${whole(shipFrom + DAY_SHIFT)}`);
  if (shipTo !== null) where.push(`shipped <= ${whole(shipTo + DAY_SHIFT)}`);
  if (updatedFrom !== null) where.push(`updated >= ${whole(Math.max(1, updatedFrom))}`);
  if (statuses !== null) {
    where.push(`status IN (${listed(statuses.map((status) => STATUSES.indexOf(status)))})`);
  }
  return where.join(" AND ");
}

/** The first of them is the last batch that counts. */
export function countingRows({ batch, floor, absentRows, absentBatches }: Counting): string[] {
  const where = [`batch <= ${whole(batch)}`];
  if (floor > 0) where.push(`batch >= ${whole(floor)}`);
  if (absentBatches.length > 0) where.push(`batch NOT IN (${listed(absentBatches)})`);
  if (absentRows.length > 0) {
    const pairs = absentRows.map((row) => `(${listed(row.split(" ").map(Number))})`);
    where.push(`(id, batch) NOT IN (${pairs.join(",")})`);
  }
  return where;
}

export function listed(numbers: readonly number[]): string {
  return numbers.length === 0 ? "NULL" : numbers.map(whole).join(",");
}

/** @throws for what is no whole number: nothing else may stand in a statement */
export function whole(number: number): string {
  if (!Number.isSafeInteger(number)) throw new RangeError(`${number} is no whole number`);
  return String(number);
}

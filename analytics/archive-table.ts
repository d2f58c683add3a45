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
import { ARCHIVED_SHIPMENTS, unseal, VALUE_COLUMNS, valueHash } from "./archive-rows.ts";
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

/** @param rows `id batch` */
export async function deleteRows(
  clickhouse: ClickHouseClient,
  companyId: number,
  rows: readonly string[],
  batches: readonly number[],
): Promise<void> {
  const absent = countingRows({ batch: 0, absentRows: rows, absentBatches: batches }).slice(1);
  const condition = `company = ${whole(companyId)} AND NOT (${absent.join(" AND ")})`;
  await clickhouse.command({ query: `DELETE FROM ${TABLE} WHERE ${condition}` });
}

/** A shipment in a row, still encrypted. */
export interface SealedRow {
  readonly company: number;
  readonly id: number;
  readonly batch: number;
  readonly text: string;
}

/** Every row of these shipments. */
export async function readRows(
  clickhouse: ClickHouseClient,
  ids: readonly number[],
  channelIds: readonly number[],
): Promise<SealedRow[]> {
  const answer = await clickhouse.query({
    query: `SELECT company, id, batch, base64Encode(sealed) AS text FROM ${TABLE}
            WHERE channel IN (${listed(channelIds)}) AND id IN (${listed(ids)})`,
    format: "JSONEachRow",
  });
  return answer.json<SealedRow>();
}

/** @throws when the row was not written by us */
export function openRow(
  vault: Pick<Vault, "keyFor">,
  { company: companyId, id, batch, text }: SealedRow,
): ArchivedShipment {
  return { companyId, batch, whole: unseal(vault, { companyId, id, batch }, text) };
}

/** Shipments that match, from a position on. */
export async function readHits(
  clickhouse: ClickHouseClient,
  vault: Pick<Vault, "keyFor">,
  question: ArchiveQuestion,
  offset: number,
  limit: number,
): Promise<ArchivedHit[]> {
  const { by, descending } = question.query.order;
  const column = ORDER_COLUMNS[by];
  const direction = descending ? "DESC" : "ASC";
  const order = by === "id" ? `id ${direction}` : `${column} ${direction}, id ${direction}`;
  const answer = await clickhouse.query({
    query: `SELECT id, ${column} AS score FROM ${TABLE} WHERE ${matching(vault, question)}
            ORDER BY ${order} LIMIT ${whole(limit)} OFFSET ${whole(offset)}`,
    format: "JSONEachRow",
  });
  const shift = by === "ship" ? DAY_SHIFT : 0;
  const rows = await answer.json<ArchivedHit>();
  return rows.map(({ id, score }) => ({ id, score: score - shift }));
}

/** @param before counts only those that stand before this one in the order; null = all */
export async function countHits(
  clickhouse: ClickHouseClient,
  vault: Pick<Vault, "keyFor">,
  question: ArchiveQuestion,
  before: ArchivedHit | null,
): Promise<number> {
  const { by, descending } = question.query.order;
  const where = [matching(vault, question)];
  if (before) {
    const sign = descending ? ">" : "<";
    const score = whole(before.score + (by === "ship" ? DAY_SHIFT : 0));
    const bound = `(${ORDER_COLUMNS[by]}, id) ${sign} (${score}, ${whole(before.id)})`;
    where.push(by === "id" ? `id ${sign} ${whole(before.id)}` : bound);
  }
  const answer = await clickhouse.query({
    query: `SELECT count() AS total FROM ${TABLE} WHERE ${where.join(" AND ")}`,
    format: "JSONEachRow",
  });
  const [row] = await answer.json<{ total: number }>();
  return row?.total ?? 0;
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

function countingRows({ batch, absentRows, absentBatches }: Counting): string[] {
  const where = [`batch <= ${whole(batch)}`];
  if (absentBatches.length > 0) where.push(`batch NOT IN (${listed(absentBatches)})`);
  if (absentRows.length > 0) {
    const pairs = absentRows.map((row) => `(${listed(row.split(" ").map(Number))})`);
    where.push(`(id, batch) NOT IN (${pairs.join(",")})`);
  }
  return where;
}

function listed(numbers: readonly number[]): string {
  return numbers.length === 0 ? "NULL" : numbers.map(whole).join(",");
}

/** @throws for what is no whole number: nothing else may stand in a statement */
function whole(number: number): string {
  if (!Number.isSafeInteger(number)) throw new RangeError(`${number} is no whole number`);
  return String(number);
}

/**
 * Searches of archived shipments: which rows of the index answer one, and in what order they are read. While the index is being
 * filled the table itself is asked. Numbers alone go into a statement's text.
 */
import type { ClickHouseClient } from "@clickhouse/client";
import type { ExactField, IndexOrder } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import type { ArchivedHit, ArchiveQuestion } from "#core/search/store/archive-search.ts";
import { DAY_SHIFT } from "#core/shipments/store/columns.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import { engineOf, ONE_MOMENT } from "./archive-engine.ts";
import { INDEX_TABLE, isIndexComplete } from "./archive-index.ts";
import { ARCHIVED_SHIPMENTS, VALUE_COLUMNS, valueHash } from "./archive-rows.ts";
import { absentRows, countingRows, listed, whole } from "./archive-table.ts";

const DAY_MS = 86_400_000;
/** 10 bytes each in a statement, which may have 256 KiB. */
const NAMED_IDS = limit(
  10_000,
  "shipments found by part that the archive is asked for",
  "the newest of them",
);
/** With this many matches, and this many times the end of the page, reading in the requested order soon finds a page. */
export const MANY = limit(
  20_000,
  "matches from which a page of the archive is read in its order",
  "fewer matches are sorted",
);
const MANY_PAGES = limit(
  20,
  "pages that matches fill, from which a page of the archive is read in its order",
  "fewer matches are sorted",
);
/** Channels that are read in order one by one; of more, all that matches is sorted. */
export const CHANNELS_IN_ORDER = limit(
  16,
  "channels of a search that are read in order one by one",
  "all that matches is sorted",
);
export const ABSENT_IN_ORDER = limit(
  10_000,
  "archived rows that do not count, named for a search that reads in order",
  "all that matches is sorted",
);

type ValueName = "number" | ExactField;
/** Rows of the index that stand in the order of one column (`schema/archived-index.sql`). */
export type Kind = IndexOrder | ValueName;

const KINDS: readonly Kind[] = [
  ...(["id", "ship", "upd", "number"] as const),
  ...(["orderReference", "custom1", "custom2", "custom3"] as const),
];
const ORDER_COLUMNS: Readonly<Record<IndexOrder, string>> = {
  id: "id",
  ship: "shipped",
  upd: "updated",
};

type Keys = Pick<Vault, "keyFor">;

/** Shipments that match, from a position on. */
export async function readHits(
  clickhouse: ClickHouseClient,
  vault: Keys,
  question: ArchiveQuestion,
  offset: number,
  limit: number,
): Promise<ArchivedHit[]> {
  const end = offset + limit;
  const { text, order, settings } = await inOrder(clickhouse, vault, question, end);
  const query = `${text} ORDER BY ${order} LIMIT ${whole(limit)} OFFSET ${whole(offset)} ${settings}`;
  return askForHits(clickhouse, query, question);
}

/** Every `distance`-th shipment that matches, up to a position. */
export async function readMarks(
  clickhouse: ClickHouseClient,
  vault: Keys,
  question: ArchiveQuestion,
  distance: number,
  end: number,
): Promise<ArchivedHit[]> {
  const { text, order, settings } = await inOrder(clickhouse, vault, question, end);
  const first = `${text} ORDER BY ${order} LIMIT ${whole(end)}`;
  if (distance === 1) return askForHits(clickhouse, `${first} ${settings}`, question);
  const query = `SELECT id, score FROM (
              SELECT id, score, row_number() OVER (ORDER BY ${order}) AS place FROM (
                ${first}))
            WHERE (place - 1) % ${whole(distance)} = 0 ORDER BY place ${settings}`;
  return askForHits(clickhouse, query, question);
}

/**
 * All rows that match, minus those of them that do not count. The former are often whole ranges of the sort key, whose sizes the
 * engine knows; the latter are found by the lowest and highest batch of each granule.
 */
export async function countHits(
  clickhouse: ClickHouseClient,
  vault: Keys,
  question: ArchiveQuestion,
): Promise<number> {
  const kind = (await isIndexComplete(clickhouse)) ? kindOf(question.query) : null;
  const where = matching(vault, question, kind, question.query.channelIds);
  const from = `FROM ${tableOf(kind)} WHERE ${where.join(" AND ")}`;
  const query = (await engineOf(clickhouse)).readsOneMoment
    ? `SELECT sum(total) AS total FROM (
         SELECT toInt64(count()) AS total ${from}
         UNION ALL SELECT -toInt64(count()) ${from} AND (${absentRows(question.counting).join(" OR ")}))
       SETTINGS ${ONE_MOMENT} = 1, optimize_move_to_prewhere = 0`
    : `SELECT count() AS total ${from} AND ${countingRows(question.counting).join(" AND ")}`;
  const answer = await clickhouse.query({ query, format: "JSONEachRow" });
  const [row] = await answer.json<{ total: number | string }>();
  return Number(row?.total ?? 0);
}

interface Columns {
  readonly id: readonly number[];
  readonly score: readonly number[];
}

async function askForHits(
  clickhouse: ClickHouseClient,
  query: string,
  question: ArchiveQuestion,
): Promise<ArchivedHit[]> {
  const shift = question.query.order.by === "ship" ? DAY_SHIFT : 0;
  const answer = await clickhouse.query({ query, format: "JSONColumnsWithMetadata" });
  const { data }: { data: Columns } = JSON.parse(await answer.text());
  return data.id.map((id, at) => ({ id, score: (data.score[at] as number) - shift }));
}

/** A query for `id` and `score` of what matches, without its order, which has at least the first ones. */
async function inOrder(
  clickhouse: ClickHouseClient,
  vault: Keys,
  question: ArchiveQuestion,
  end: number,
): Promise<{ text: string; order: string; settings: string }> {
  const { order: sort, channelIds } = question.query;
  const absent = channelIds.length * question.counting.absentRows.length;
  const { by, descending } = sort;
  const kind = (await isIndexComplete(clickhouse)) ? kindInOrder(question, end) : null;
  const isInOrder = kind === by;
  const direction = descending ? "DESC" : "ASC";
  const score = columnOf(kind, by);
  const select = (own: readonly number[]) => {
    const where = matching(vault, question, kind, own).concat(countingRows(question.counting));
    return `SELECT id, ${score} AS score FROM ${tableOf(kind)} WHERE ${where.join(" AND ")}`;
  };
  const order = `score ${direction}, id ${direction}`;
  const isOneByOne = channelIds.length <= CHANNELS_IN_ORDER && absent <= ABSENT_IN_ORDER;
  if (!isInOrder || (channelIds.length > 1 && !isOneByOne)) {
    return { text: select(channelIds), order, settings: "" };
  }
  // Where fewer match, all rows are looked at, which is better done by several threads.
  const { total = 0 } = question;
  const settings = total >= end ? (await engineOf(clickhouse)).blockByBlock : "";
  if (channelIds.length === 1) return { text: select(channelIds), order, settings };
  // Rows of several channels stand in order in each of them.
  const heads = channelIds.map(
    (id) =>
      `(${select([id])} ORDER BY ${kind === "id" ? "" : `value ${direction}, `}id ${direction} LIMIT ${whole(end)})`,
  );
  return { text: `SELECT id, score FROM (${heads.join(" UNION ALL ")})`, order, settings };
}

/** The rows in the requested order if few of them have to be skipped, else the smallest set. */
export function kindInOrder({ query, total = 0 }: ArchiveQuestion, end: number): Kind {
  const { order, trackingNumber, exact } = query;
  const isMany = total >= MANY && total >= MANY_PAGES * end;
  // Rows in these orders have the other values.
  const isComplete = trackingNumber === null && exact.orderReference === undefined;
  return isComplete && isMany ? order.by : kindOf(query);
}

/** @param nowMs by which the shorter of two ranges is guessed; either answers */
function kindOf(query: ArchiveQuestion["query"], nowMs = Date.now()): Kind {
  const { order, trackingNumber, exact, shipFrom, shipTo, updatedFrom } = query;
  if (trackingNumber !== null) return "number";
  const first = KINDS.find((kind) => kind in exact);
  if (first) return first;
  if (shipFrom === null && shipTo === null) return updatedFrom === null ? order.by : "upd";
  if (updatedFrom === null) return "ship";
  const today = nowMs / DAY_MS;
  const shipDays = Math.min(shipTo ?? today, today) - (shipFrom ?? 0);
  return today - (updatedFrom * 1_000) / DAY_MS < shipDays ? "upd" : "ship";
}

function tableOf(kind: Kind | null): string {
  return kind === null ? ARCHIVED_SHIPMENTS.name : INDEX_TABLE;
}

/** The sort key of the rows, where they stand in this order. */
function columnOf(kind: Kind | null, by: IndexOrder): string {
  return kind === by && by !== "id" ? "value" : ORDER_COLUMNS[by];
}

/** Conditions of the rows that match, whether they count or not. @param kind null = in the table itself */
function matching(
  vault: Keys,
  { query, from, to }: ArchiveQuestion,
  kind: Kind | null,
  channelIds: readonly number[],
): string[] {
  const { shipFrom, shipTo, statuses, updatedFrom, updatedTo, idTo, ids, order } = query;
  const where = [`channel ${oneOf(channelIds)}`];
  if (kind !== null) where.push(`kind = ${KINDS.indexOf(kind)}`);
  // This condition tells the engine that these rows are in the order of their ids.
  if (kind === "id") where.push("value = 0");
  where.push(...valuesOf(vault, query, kind));
  const [shipped, updated] = [columnOf(kind, "ship"), columnOf(kind, "upd")];
  if (shipFrom !== null) where.push(`${shipped} >= ${whole(shipFrom + DAY_SHIFT)}`);
  if (shipTo !== null) where.push(`${shipped} <= ${whole(shipTo + DAY_SHIFT)}`);
  if (updatedFrom !== null) where.push(`${updated} >= ${whole(Math.max(1, updatedFrom))}`);
  if (statuses !== null) {
    where.push(`status IN (${listed(statuses.map((status) => STATUSES.indexOf(status)))})`);
  }
  if (updatedTo !== undefined) where.push(`${updated} <= ${whole(updatedTo)}`);
  if (idTo !== undefined) where.push(`id <= ${whole(idTo)}`);
  if (ids) where.push(`id IN (${listed(newestOf(channelIds, ids))})`);
  const score = columnOf(kind, order.by);
  const shift = order.by === "ship" ? DAY_SHIFT : 0;
  const [after, before] = order.descending ? ["<", ">"] : [">", "<"];
  if (from) where.push(beyond(score, after, from, shift));
  if (to) where.push(beyond(score, before, to, shift));
  return where;
}

function newestOf(
  channelIds: readonly number[],
  ids: ReadonlyMap<number, readonly number[]>,
): number[] {
  const all = channelIds.flatMap((channelId) => ids.get(channelId) ?? []);
  return all.sort((one, other) => other - one).slice(0, NAMED_IDS);
}

/** This position of the order, or further in a direction. The first condition is one that the sort key knows. */
function beyond(score: string, direction: string, hit: ArchivedHit, shift: number): string {
  const value = whole(hit.score + shift);
  if (score === "id") return `id ${direction}= ${whole(hit.id)}`;
  return `${score} ${direction}= ${value} AND (${score} ${direction} ${value} OR id ${direction}= ${whole(hit.id)})`;
}

function valuesOf(
  vault: Keys,
  { companyId, trackingNumber, exact }: ArchiveQuestion["query"],
  kind: Kind | null,
): string[] {
  const hash = (field: ValueName, value: string) => valueHash(vault, companyId, field, value);
  const where: string[] = [];
  if (trackingNumber !== null) {
    const number = hash("number", trackingNumber);
    where.push(kind === "number" ? `value = ${number}` : `has(numbers, ${number})`);
  }
  for (const [field, value] of Object.entries(exact) as [ExactField, string][]) {
    where.push(`${kind === field ? "value" : VALUE_COLUMNS[field]} = ${hash(field, value)}`);
  }
  return where;
}

/** Rows of one channel are known to stand in the order of their other columns. */
function oneOf(numbers: readonly number[]): string {
  const [only = 0] = numbers;
  return numbers.length === 1 ? `= ${whole(only)}` : `IN (${listed(numbers)})`;
}

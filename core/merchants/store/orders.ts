/** Orders in the company's partition: one store for the setup file, the panel and the parcels of orders. */

import { plainReference } from "#core/events/rules/reference.ts";
import {
  erasedOrder,
  naturalKey,
  naturalKeyAsGiven,
  type OrderInput,
  type OrderRecord,
  orderFingerprint,
  orderRecord,
} from "#core/merchants/rules/order.ts";
import { chunks, chunksBySize } from "#core/platform/process/chunks.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition, indexMember } from "#core/platform/redis/keys.ts";
import { idAt, idDigits, idPartition } from "#core/platform/redis/partitions.ts";
import { readFields } from "#core/platform/redis/read-fields.ts";
import saveSource from "./save-orders.lua" with { type: "text" };

const saveScript = script(saveSource);

/** Orders one script call reads or writes: keeps a call under about 5 ms of Redis. */
const ORDERS_PER_CALL = 100;
/** The same for large orders, with hundreds of parcels and items. */
const CHARACTERS_PER_CALL = 512 * 1024;
/** For a page, whose orders may have about 300 KiB each. */
const ORDERS_PER_READ = 25;
/** Readings of an order that others change at the same time; every round at least one of them is done. */
const TRIES = 100;
/** After each further failure the wait is longer, so that another process gets through. */
const BACKOFF_MS = 2;

export interface OrderOwner {
  readonly companyId: number;
  readonly channelId: number;
}

export interface StoredOrder {
  readonly id: number;
  readonly version: number;
  readonly record: OrderRecord;
}

type Natural = Pick<OrderInput, "source" | "reference">;

/** The order with each source and reference, deleted ones included; null where there is none. */
async function findOrders(
  redis: Redis,
  { companyId, channelId }: OrderOwner,
  naturals: readonly Natural[],
): Promise<(StoredOrder | null)[]> {
  const partition = companyPartition(companyId);
  const fields = naturals.flatMap(({ source, reference }) => [
    naturalKey(source, reference),
    naturalKeyAsGiven(source, reference),
  ]);
  // An order never changes its id.
  const found = await redis.hmGet(companyKeys(partition).orderNaturals(channelId), fields);
  const ids = naturals.map((_, at) => found[2 * at] ?? found[2 * at + 1] ?? null);
  const orders = await readOrders(
    redis,
    ids.flatMap((id) => (id === null ? [] : [Number(id)])),
  );
  const byId = new Map(orders.map((order) => [order.id, order]));
  return ids.map((id) => byId.get(Number(id ?? 0)) ?? null);
}

/** Null when the channel has no such order or has deleted it. */
export async function findOrder(
  redis: Redis,
  owner: OrderOwner,
  source: string,
  reference: string,
): Promise<StoredOrder | null> {
  const [found] = await findOrders(redis, owner, [{ source, reference }]);
  return found && !found.record.input.deleted ? found : null;
}

interface Saving {
  readonly before: StoredOrder | null;
  readonly record: OrderRecord;
}

/** @returns for each order its id; null when it was changed in between. Natural keys are distinct. */
async function saveOrders(
  redis: Redis,
  { companyId, channelId }: OrderOwner,
  savings: readonly Saving[],
): Promise<(number | null)[]> {
  const partition = companyPartition(companyId);
  const keys = companyKeys(partition);
  const dealt = await dealIds(redis, partition, savings.filter(({ before }) => !before).length);
  const ids = savings.map(({ before }) => before?.id ?? dealt.shift() ?? 0);
  const names = [
    keys.orderNaturals(channelId),
    keys.orderDates(channelId),
    keys.orderParcels(channelId),
    ...ids.map((id) => keys.order(id)),
  ];
  const perOrder = savings.flatMap(({ before, record }, at) => [
    naturalKey(record.input.source, record.input.reference),
    String(ids[at]),
    String(before?.version ?? 0),
    String(record.createdAtMs),
    record.input.deleted ? "1" : "0",
    JSON.stringify(record),
    JSON.stringify(parcelChange(before, record)),
  ]);
  const reply = await run<number[]>(redis, saveScript, names, [String(idDigits()), ...perOrder]);
  return reply.map((id) => (id === 0 ? null : id));
}

/** Unique ids; unused ones are skipped. */
async function dealIds(redis: Redis, partition: number, count: number): Promise<number[]> {
  if (count === 0) return [];
  const last = await redis.incrBy(companyKeys(partition).orderIds, count);
  return Array.from({ length: count }, (_, at) => idAt(last - count + 1 + at, partition));
}

/** A deleted order's parcels are found no more. */
function parcelChange(before: StoredOrder | null, record: OrderRecord) {
  const old = before?.record.parcels.map(({ hash }) => hash) ?? [];
  const now = record.input.deleted ? [] : record.parcels.map(({ hash }) => hash);
  const added = now.filter((hash) => !old.includes(hash) || before?.record.input.deleted);
  return { added, removed: old.filter((hash) => !now.includes(hash)) };
}

export interface PutOutcome {
  readonly outcome: "created" | "updated" | "unchanged" | "deleted";
  readonly id: number;
}

/**
 * Puts orders by their natural keys; the same order twice in one call: the later one counts. What has come in unchanged is
 * not written, so that a resend neither moves `updatedAt` nor undoes what was done to its parcels since.
 * @returns in the order given
 */
export async function putOrders(
  redis: Redis,
  owner: OrderOwner,
  inputs: readonly OrderInput[],
  nowMs: number,
): Promise<PutOutcome[]> {
  const outcomes: PutOutcome[] = new Array(inputs.length);
  const turn = turns();
  const rounds: { input: OrderInput; at: number; natural: string; size: number }[] = [];
  for (const [at, input] of inputs.entries()) {
    const size = Math.max(JSON.stringify(input).length, CHARACTERS_PER_CALL / ORDERS_PER_CALL);
    rounds.push({ input, at, natural: naturalOf(input), size });
    if (turn.due()) await turn.take();
  }
  for (const share of chunksBySize(rounds, CHARACTERS_PER_CALL, ({ size }) => size)) {
    let open = share;
    for (let tries = 0; open.length > 0; tries += 1) {
      if (tries > TRIES + ORDERS_PER_CALL) throw new Error("orders keep changing");
      // Of lines with one key the first is put alone, then the next.
      const first = open.filter(
        ({ natural }, at) => open.findIndex((other) => other.natural === natural) === at,
      );
      const done = await putRound(redis, owner, first, nowMs);
      first.forEach(({ at }, position) => {
        const outcome = done[position];
        if (outcome) outcomes[at] = outcome;
      });
      open = open.filter(({ at }) => outcomes[at] === undefined);
    }
  }
  return outcomes;
}

function naturalOf({ source, reference }: OrderInput): string {
  return naturalKey(source, reference);
}

async function putRound(
  redis: Redis,
  owner: OrderOwner,
  items: ReadonlyArray<{ readonly input: OrderInput; readonly natural: string }>,
  nowMs: number,
): Promise<(PutOutcome | null)[]> {
  const found = await findOrders(
    redis,
    owner,
    items.map(({ input }) => input),
  );
  const outcomes: (PutOutcome | null)[] = new Array(items.length).fill(null);
  const savings: (Saving & { readonly at: number })[] = [];
  items.forEach(({ input }, at) => {
    const before = found[at] ?? null;
    if (before?.record.fingerprint === orderFingerprint(input)) {
      outcomes[at] = { outcome: "unchanged", id: before.id };
      return;
    }
    const record = orderRecord(owner.channelId, input, before?.record ?? null, nowMs);
    savings.push({ at, before, record });
  });
  if (savings.length === 0) return outcomes;
  const ids = await saveOrders(redis, owner, savings);
  savings.forEach(({ at, before, record }, position) => {
    const id = ids[position] ?? null;
    const changed = before && !before.record.input.deleted ? "updated" : "created";
    if (id !== null) outcomes[at] = { id, outcome: record.input.deleted ? "deleted" : changed };
  });
  return outcomes;
}

/** @returns the order's id, or null when the channel has one with this natural key already */
export async function createOrder(
  redis: Redis,
  owner: OrderOwner,
  record: OrderRecord,
): Promise<number | null> {
  const { source, reference } = record.input;
  const [before] = await findOrders(redis, owner, [{ source, reference }]);
  if (before && !before.record.input.deleted) return null;
  const [id] = await saveOrders(redis, owner, [{ before: before ?? null, record }]);
  return id ?? null;
}

/**
 * Changes an order as it is now, however often others get in between.
 * @param change the new record; null = nothing to do
 * @returns the order as it now is; null when `change` found nothing to do or there is no such order
 */
export async function changeOrder(
  redis: Redis,
  owner: OrderOwner,
  id: number,
  change: (record: OrderRecord) => OrderRecord | null,
): Promise<StoredOrder | null> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const [before] = await readOrders(redis, [id]);
    if (!before || before.record.channelId !== owner.channelId) return null;
    const record = before.record.input.deleted ? null : change(before.record);
    if (record === null) return null;
    const [saved] = await saveOrders(redis, owner, [{ before, record }]);
    if (saved) return { id, version: before.version + 1, record };
    await Bun.sleep(Math.random() * tries * BACKOFF_MS);
  }
  throw new Error("the order keeps changing");
}

/** Fields of the index of natural keys that one call looks at. */
const NATURALS_PER_SCAN = 1_000;

/** Forgets the recipient of the channel's orders with a reference, whatever their source; deleted ones too. */
export async function forgetOrders(
  redis: Redis,
  owner: OrderOwner,
  reference: string,
): Promise<void> {
  const { orderNaturals } = companyKeys(companyPartition(owner.companyId));
  const key = orderNaturals(owner.channelId);
  const ids = new Set<number>();
  const ends = [plainReference(reference), reference].map((text) => `:${text}`);
  let cursor = "0";
  do {
    const page = await redis.hScan(key, cursor, { COUNT: NATURALS_PER_SCAN });
    for (const { field, value } of page.entries) {
      if (ends.some((end) => field.endsWith(end))) ids.add(Number(value));
    }
    cursor = String(page.cursor);
  } while (cursor !== "0");
  for (const id of ids) await forgetOrder(redis, owner, id, reference);
}

async function forgetOrder(
  redis: Redis,
  owner: OrderOwner,
  id: number,
  reference: string,
): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const [before] = await readOrders(redis, [id]);
    if (!before || plainReference(before.record.input.reference) !== plainReference(reference))
      return;
    const [saved] = await saveOrders(redis, owner, [
      { before, record: erasedOrder(before.record) },
    ]);
    if (saved) return;
    await Bun.sleep(Math.random() * tries * BACKOFF_MS);
  }
  throw new Error("the order keeps changing");
}

/** Every order that exists among the ids of one partition, in their order. */
export async function readOrders(redis: Redis, ids: readonly number[]): Promise<StoredOrder[]> {
  const [first] = ids;
  if (first === undefined) return [];
  const keys = companyKeys(idPartition(first));
  const names = ids.map((id) => keys.order(id));
  const rows = await readFields<[string | null, string | null]>(redis, names, ["v", "d"]);
  const turn = turns();
  const orders: StoredOrder[] = [];
  for (const [at, id] of ids.entries()) {
    const [version, record] = rows[at] ?? [];
    if (record) orders.push({ id, version: Number(version), record: JSON.parse(record) });
    if (turn.due()) await turn.take();
  }
  return orders;
}

/**
 * Null when the channel has no such order or has deleted it. Whose it is is looked up in the channel's index, so that a foreign
 * order, which may be large, is not read: it costs what a missing one costs.
 */
export async function readOwnOrder(
  redis: Redis,
  { companyId, channelId }: OrderOwner,
  id: number,
): Promise<StoredOrder | null> {
  const dates = companyKeys(companyPartition(companyId)).orderDates(channelId);
  if ((await redis.zScore(dates, dateMember(id))) === null) return null;
  const [order] = await readOrders(redis, [id]);
  // Deleted since the index was read.
  return order && !order.record.input.deleted ? order : null;
}

/** Of an order in the index by date, as `save-orders.lua` writes it. */
function dateMember(id: number): string {
  return indexMember(id);
}

/** A page of a channel's orders, newest order date first, ties by the higher id. */
export async function listOrders(
  redis: Redis,
  { companyId, channelId }: OrderOwner,
  offset: number,
  limit: number,
): Promise<{ readonly total: number; readonly orders: readonly StoredOrder[] }> {
  const dates = companyKeys(companyPartition(companyId)).orderDates(channelId);
  const [members, total] = await Promise.all([
    redis.zRange(dates, offset, offset + limit - 1, { REV: true }),
    redis.zCard(dates),
  ]);
  const orders: StoredOrder[] = [];
  for (const ids of chunks(members.map(Number), ORDERS_PER_READ)) {
    orders.push(...(await readOrders(redis, ids)));
  }
  // Deleted since the index was read.
  return { total, orders: orders.filter(({ record }) => !record.input.deleted) };
}

/** The order of a parcel's hash; null when the channel has no such parcel. */
export async function orderOfParcel(
  redis: Redis,
  { companyId, channelId }: OrderOwner,
  hash: string,
): Promise<StoredOrder | null> {
  const parcels = companyKeys(companyPartition(companyId)).orderParcels(channelId);
  const id = await redis.hGet(parcels, hash);
  if (!id) return null;
  const [found] = await readOrders(redis, [Number(id)]);
  return found ?? null;
}

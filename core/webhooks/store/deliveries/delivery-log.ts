/** The delivery log of an endpoint (document 3, "Delivery"): pages of it, newest first, and what belongs to one shipment. */
import type { Redis } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  companyPartition,
  numberKeys,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import {
  DELIVERY_LIFE_MS,
  type Delivery,
  type DeliveryState,
  deliveryIdOf,
  readDecisions,
  readDeliveries,
} from "./deliveries.ts";

/** Deliveries looked at for one page; a page that finds fewer than its limit by then tells where to go on. */
const SCAN_LIMIT = 5_000;
const CHUNK = 200;
/** Shipments of one order reference that are looked at. */
const SHIPMENTS_LIMIT = 100;

export interface LogPage {
  readonly fromMs: number;
  readonly toMs: number;
  /** Where the page before ended; null = the newest. */
  readonly cursor: LogCursor | null;
  readonly limit: number;
  /** Absent = any. */
  readonly state?: DeliveryState;
}

export interface LogCursor {
  readonly beforeMs: number;
  /** Deliveries created in exactly that millisecond that were looked at already. */
  readonly skip: number;
}

export interface LogResult {
  readonly deliveries: Delivery[];
  /** Null on the last page. */
  readonly cursor: LogCursor | null;
}

interface Row {
  readonly id: string;
  readonly createdAtMs: number;
}

/** Rows from the cursor on, newest first. */
type ReadRows = (from: LogCursor, count: number) => Promise<readonly Row[]>;

/** One page of an endpoint's log. */
export function listDeliveries(
  redis: Redis,
  companyId: number,
  endpointId: string,
  page: LogPage,
  nowMs: number,
): Promise<LogResult> {
  const keys = webhookKeys(companyPartition(companyId));
  const key = page.state === "failed" ? keys.failed(endpointId) : keys.log(endpointId);
  const windowMs = nowMs - DELIVERY_LIFE_MS + 1;
  const range = (from: string, { beforeMs, skip }: LogCursor, oldestMs: number, count: number) => {
    const order = { BY: "SCORE", REV: true, LIMIT: { offset: skip, count } } as const;
    return redis.zRangeWithScores(from, beforeMs, oldestMs, order);
  };
  const read: ReadRows = async (cursor, count) => {
    const rows = await range(key, cursor, Math.max(page.fromMs, windowMs), count);
    if (rows.length < count) {
      // Older ones are there only as late replays.
      const late = cursor.beforeMs < windowMs ? cursor : { beforeMs: windowMs - 1, skip: 0 };
      rows.push(...(await range(keys.late(endpointId), late, page.fromMs, count - rows.length)));
    }
    return rows.map(({ value, score }) => ({ id: String(value), createdAtMs: score }));
  };
  return collect(redis, page, read, nowMs);
}

/** What a log is searched by; given together they must all hold. */
export interface LogSearch {
  readonly eventId?: string;
  readonly trackingNumber?: string;
  readonly orderReference?: string;
}

/** One page of the deliveries of an endpoint that belong to an event id, a tracking number or an order reference. */
export async function searchDeliveries(
  redis: Redis,
  owner: { readonly companyId: number; readonly channelId: number; readonly endpointId: string },
  search: LogSearch,
  page: LogPage,
  nowMs: number,
): Promise<LogResult> {
  const ids = await findIds(redis, owner, search);
  const found = (await readDeliveries(redis, ids, nowMs))
    .filter(({ createdAtMs }) => createdAtMs >= page.fromMs)
    .sort((one, other) => other.createdAtMs - one.createdAtMs)
    .map(({ deliveryId, createdAtMs }) => ({ id: deliveryId, createdAtMs }));
  const read: ReadRows = async ({ beforeMs, skip }, count) =>
    found.filter(({ createdAtMs }) => createdAtMs <= beforeMs).slice(skip, skip + count);
  return collect(redis, page, read, nowMs);
}

async function findIds(
  redis: Redis,
  { companyId, channelId, endpointId }: Parameters<typeof searchDeliveries>[1],
  { eventId, trackingNumber, orderReference }: LogSearch,
): Promise<string[]> {
  const partition = companyPartition(companyId);
  const keys = companyKeys(partition);
  const named = eventId === undefined ? null : [deliveryIdOf(partition, endpointId, eventId)];
  const lists: string[][] = [];
  if (trackingNumber !== undefined) {
    const named = numberKeys(keys, channelId, trackingNumber).map((key) => redis.hVals(key));
    lists.push([...new Set((await Promise.all(named)).flat())]);
  }
  if (orderReference !== undefined) {
    lists.push(await redis.sMembers(keys.exact(channelId, "orderReference", orderReference)));
  }
  const [first = [], ...rest] = lists;
  if (lists.length === 0) return named ?? [];
  const shipments = first
    .filter((id) => rest.every((list) => list.some((other) => Number(other) === Number(id))))
    .slice(0, SHIPMENTS_LIMIT);
  const decisions = await Promise.all(shipments.map((id) => readDecisions(redis, Number(id))));
  const own = decisions
    .flat()
    .filter(({ verdicts }) =>
      verdicts.some(([id, verdict]) => id === endpointId && verdict === "send"),
    )
    .map((decision) => deliveryIdOf(partition, endpointId, decision.eventId));
  return named === null ? own : own.filter((id) => named.includes(id));
}

async function collect(
  redis: Redis,
  page: LogPage,
  read: ReadRows,
  nowMs: number,
): Promise<LogResult> {
  const deliveries: Delivery[] = [];
  let cursor = page.cursor ?? { beforeMs: Math.min(page.toMs, Number.MAX_SAFE_INTEGER), skip: 0 };
  for (let looked = 0; looked < SCAN_LIMIT; looked += CHUNK) {
    const rows = await read(cursor, CHUNK);
    const ids = rows.map(({ id }) => id);
    const found = new Map(
      (await readDeliveries(redis, ids, nowMs)).map((one) => [one.deliveryId, one]),
    );
    for (const { id, createdAtMs } of rows) {
      const skip = createdAtMs === cursor.beforeMs ? cursor.skip + 1 : 1;
      cursor = { beforeMs: createdAtMs, skip };
      const delivery = found.get(id);
      if (!delivery || (page.state !== undefined && delivery.state !== page.state)) continue;
      deliveries.push(delivery);
      if (deliveries.length === page.limit) {
        const [next] = await read(cursor, 1);
        return { deliveries, cursor: next ? cursor : null };
      }
    }
    if (rows.length < CHUNK) return { deliveries, cursor: null };
  }
  return { deliveries, cursor };
}

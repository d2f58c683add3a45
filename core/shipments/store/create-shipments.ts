/**
 * Creates shipments in the company's partition. `create.lua` declares the keys of shipments that do not exist yet, so the
 * process passes the numbers they will get and the blocks of their rows, as it last saw them. If other processes were
 * faster, the script changes nothing and returns the current values, and the call is repeated.
 */

import { chunks } from "#core/platform/process/chunks.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import { type Redis, run } from "#core/platform/redis/client.ts";
import { type DeclaredKeys, declaredKeys } from "#core/platform/redis/declared-keys.ts";
import {
  companyKeys,
  companyPartition,
  type ExactField,
  logCountsKey,
} from "#core/platform/redis/keys.ts";
import { type ListItem, packList } from "#core/platform/redis/packed-list.ts";
import { idAt, idDigits, idStride } from "#core/platform/redis/partitions.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { initialState } from "#core/shipments/rules/fold.ts";
import { type ShipmentMeta, type ShipmentRecord, shipDay } from "#core/shipments/rules/shipment.ts";
import exactPart from "#core/shipments/store/parts/exact-values.lua" with { type: "text" };
import rowLog from "#core/shipments/store/parts/row-log.lua" with { type: "text" };
import { STATUSES } from "#core/statuses/rules/status.ts";
import { DAY_SHIFT, MANY_OF_ONE_VALUE, ROWS_PER_BLOCK } from "./columns.ts";
import createSource from "./create.lua" with { type: "text" };
import { encodeHot, encodeRecord } from "./shipment-codec.ts";

const createScript = scriptOfParts(createSource, {
  "row-log": rowLog,
  "exact-values": exactPart,
});

/** Keeps a call below about 5 ms of Redis time. The new rows span at most two blocks. */
const CREATED_PER_CALL = limit(100, "shipments of a creation call", "the next call");
/** Attempts before giving up because others are faster. */
const ROUNDS = 20;
/** Numbers skipped from the third call on, more each time, so that a slow process gets ahead of the others. */
const LEAP = 200;

export type NewShipment = Omit<ShipmentRecord, "id">;

export interface CreatedShipment {
  readonly id: number;
  /** False: the channel had it before. */
  readonly isNew: boolean;
}

interface Creation {
  readonly record: NewShipment;
  readonly meta: ShipmentMeta;
}

const STATE = initialState("WAITING_TO_COMPUTE");

/** What a process last saw of a store. */
interface Seen {
  /** By partition: the last number used. */
  readonly numbers: Map<number, number>;
  /** By channel: the block of its next row, or an earlier one. */
  readonly blocks: Map<number, number>;
}

const seenOf = new WeakMap<Redis, Seen>();

/**
 * The record without its id, and what the lane needs.
 * @returns in the order given
 */
export async function createShipments(
  redis: Redis,
  companyId: number,
  shipments: readonly Creation[],
): Promise<CreatedShipment[]> {
  const created: CreatedShipment[] = [];
  for (const part of chunks(shipments, CREATED_PER_CALL)) {
    const reply = await createPart(redis, companyPartition(companyId), await packed(part));
    for (const id of reply) created.push({ id: Math.abs(id), isNew: id > 0 });
  }
  return created;
}

interface PackedCreation extends Creation {
  readonly hot: string | Buffer;
  readonly packedRecord: string | Buffer;
}

/** A record with hundreds of order lines takes some milliseconds to pack: others are served in between. */
async function packed(creations: readonly Creation[]): Promise<PackedCreation[]> {
  const turn = turns();
  const done: PackedCreation[] = [];
  for (const { record, meta } of creations) {
    done.push({
      record,
      meta,
      hot: encodeHot(meta, STATE),
      packedRecord: encodeRecord(record, meta),
    });
    if (turn.due()) await turn.take();
  }
  return done;
}

async function createPart(
  redis: Redis,
  partition: number,
  shipments: readonly PackedCreation[],
): Promise<number[]> {
  const seen = seenOf.get(redis) ?? { numbers: new Map(), blocks: new Map() };
  seenOf.set(redis, seen);
  const channelIds = [...new Set(shipments.map(({ record }) => record.channelId))];
  const limits = [partition, idStride(), ROWS_PER_BLOCK, MANY_OF_ONE_VALUE].map(String);
  let dealt = 0;
  let before = -1;
  for (let round = 0; round < ROUNDS; round += 1) {
    // Concurrent calls run one after the other. If only the blocks were out of date, the numbers are most likely unused still.
    if (before < dealt) {
      before = seen.numbers.get(partition) ?? 0;
      seen.numbers.set(partition, before + shipments.length);
    }
    const { keys, list } = callOf(partition, shipments, before, channelIds, seen.blocks);
    const args = [...limits, String(before), list, String(idDigits())];
    const reply = await run<number[]>(redis, createScript, keys, args);
    if (reply[0] !== -1) {
      announce(redis, "change");
      return reply;
    }
    const [, counter = 0, ...ranks] = reply;
    dealt = counter;
    const leap = before < dealt ? Math.max(0, round - 1) * LEAP : 0;
    const next = dealt + leap;
    seen.numbers.set(partition, Math.max(seen.numbers.get(partition) ?? 0, next));
    channelIds.forEach((id, at) => {
      seen.blocks.set(id, Math.floor((ranks[at] ?? 0) / ROWS_PER_BLOCK));
    });
  }
  throw new Unavailable("other processes keep creating shipments");
}

/** Keys and list in the form that `create.lua` takes. */
function callOf(
  partition: number,
  shipments: readonly PackedCreation[],
  before: number,
  channelIds: readonly number[],
  blocks: ReadonlyMap<number, number>,
): { readonly keys: string[]; readonly list: Buffer } {
  const { shipmentIds, changes, shipment, rowLog, index, block, rows } = companyKeys(partition);
  const own = shipments.map((_, at) => shipment(idAt(before + at + 1, partition)));
  const keys = declaredKeys([shipmentIds, changes, logCountsKey(changes), ...own]);
  const items: ListItem[] = [channelIds.length, shipments.length];
  for (const id of channelIds) {
    const first = blocks.get(id) ?? 0;
    const orders = (["id", "ship", "upd"] as const).map((order) => index(id, order));
    const two = [block(id, first), block(id, first + 1)];
    items.push(keys.declareRun(rowLog(id), ...orders, ...two, rows(id)), first);
  }
  for (const one of shipments) addShipment(items, keys, partition, one, channelIds);
  return { keys: keys.declared, list: packList(items) };
}

function addShipment(
  items: ListItem[],
  { declare, declareRun }: DeclaredKeys,
  partition: number,
  { record, meta, hot, packedRecord }: PackedCreation,
  channelIds: readonly number[],
): void {
  const { numbers, numbersAsGiven, exact, exactBits } = companyKeys(partition);
  const { channelId, courier, trackingNumber } = record;
  const day = shipDay(record.shipDate);
  const values = exactValues(record).map(([field, value]) =>
    declareRun(exact(channelId, field, value), exactBits(channelId, field, value)),
  );
  const number = declare(numbers(channelId, trackingNumber));
  const asGiven = declare(numbersAsGiven(channelId, trackingNumber));
  items.push(
    ...[channelIds.indexOf(channelId) + 1, number, asGiven, courier],
    ...[day + DAY_SHIFT, day, hot, packedRecord],
    ...[JSON.stringify(meta), STATUSES.indexOf(STATE.pair.status), values.length, ...values],
  );
}

/** The values of a shipment that search finds it by. */
export function exactValues(record: NewShipment): readonly (readonly [ExactField, string])[] {
  const { orderReference, customAttributes } = record;
  const values: readonly (readonly [ExactField, string | undefined])[] = [
    ["orderReference", orderReference],
    ["custom1", customAttributes?.custom1],
    ["custom2", customAttributes?.custom2],
    ["custom3", customAttributes?.custom3],
  ];
  return values.flatMap(([field, value]) => (value ? [[field, value]] : []));
}

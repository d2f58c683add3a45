/** Shipments on their way to the archive: reads them whole, and removes them once the archive has them. */

import { binary, type Redis, run, script } from "#core/platform/redis/client.ts";
import { type DeclaredKeys, declaredKeys } from "#core/platform/redis/declared-keys.ts";
import {
  companyKeys,
  companyPartition,
  indexMember,
  numberKeys,
  shipmentPartition,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { type ListItem, packList } from "#core/platform/redis/packed-list.ts";
import { readFields } from "#core/platform/redis/read-fields.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { shipDay } from "#core/shipments/rules/shipment.ts";
import { DAY_SHIFT, GONE, ROWS_PER_BLOCK } from "#core/shipments/store/columns.ts";
import { exactValues } from "#core/shipments/store/create-shipments.ts";
import numberRowsSource from "#core/shipments/store/number-rows.lua" with { type: "text" };
import rowLog from "#core/shipments/store/parts/row-log.lua" with { type: "text" };
import sideDigest from "#core/shipments/store/parts/side-digest.lua" with { type: "text" };
import readWholeSource from "#core/shipments/store/read-whole.lua" with { type: "text" };
import { STATUSES } from "#core/statuses/rules/status.ts";
import {
  factsOfTexts,
  type Hot,
  type LeavingFacts,
  type ShipmentFacts,
  type WholeShipment,
} from "./archived-shipment.ts";
import { type Texts, textsOf } from "./archived-texts.ts";
import removeSource from "./remove.lua" with { type: "text" };

const readWholeScript = scriptOfParts(readWholeSource, { "side-digest": sideDigest });
const removeScript = scriptOfParts(removeSource, {
  "row-log": rowLog,
  "side-digest": sideDigest,
});
const numberRowsScript = script(numberRowsSource);

/** Shipments that one call reads or removes, and a batch of the archive holds: about 2 ms of Redis. */
export const REMOVED_PER_CALL = limit(
  100,
  "archived shipments removed from Redis by one call",
  "the next call",
);
/** Rows that one call numbers: about 1 ms of Redis. */
const NUMBERED_PER_CALL = limit(1_000, "archived rows numbered by one call", "the next call");
/** Far longer than the creation of a shipment may take after a look at its references. */
export const NUMBER_TAKEN_MS = limit(
  10 * 60_000,
  "time that a tracking number stays taken in Redis after its shipment has moved",
  "its reference tells of the archive",
);

/** What the removal of a shipment needs. */
export interface Removal {
  readonly whole: Pick<WholeShipment, "id" | "numbers" | "accounts">;
  readonly facts: LeavingFacts;
  /** Of what is kept beside the shipment, as `side-digest.lua` computes it. */
  readonly sideDigest: string;
}

/** A shipment that may go. */
export interface Leaving extends Removal {
  readonly whole: WholeShipment;
  /** Of its hash. */
  readonly texts: Texts;
}

export interface ReadingTerms {
  readonly isWanted: (hot: Hot) => boolean;
  /** What is called for a shipment that cannot be read; without it the fault is thrown. */
  readonly onFault: (shipmentId: number, fault: unknown) => void;
}

function raise(_: number, fault: unknown): never {
  throw fault;
}

/**
 * The shipments among these whose webhook decisions are no longer kept, with all that is kept of them.
 * @param ids of one partition, at most `REMOVED_PER_CALL`
 */
export async function readLeaving(
  redis: Redis,
  ids: readonly number[],
  { isWanted = () => true, onFault = raise }: Partial<ReadingTerms> = {},
): Promise<Leaving[]> {
  const partition = shipmentPartition(ids[0] ?? 0);
  const names = ids.flatMap((id) => keysOf(partition, id));
  const reply = await run<(Buffer[] | Buffer | number)[]>(
    redis,
    readWholeScript,
    names,
    [],
    binary(redis),
  );
  const found = ids.flatMap((id, at): Leaving[] => {
    const [fields, messages, releases, topics, digest, isDecided] = reply.slice(6 * at) as [
      ...[fields: Buffer[], messages: Buffer[], releases: Buffer[], topics: Buffer[]],
      ...[digest: Buffer, isDecided: number],
    ];
    if (isDecided === 1 || fields.length === 0) return [];
    let texts: Texts;
    let facts: LeavingFacts | null;
    try {
      texts = textsOf(fields);
      facts = factsOfTexts(id, texts, isWanted);
    } catch (error) {
      onFault(id, error);
      return [];
    }
    if (!facts) return [];
    const beside = { messages: messages.map(String), releases: releases.map(String) };
    const none = { numbers: [], accounts: [] };
    const whole = { id, fields, ...beside, ...none, topics: topics.map(String) };
    return [{ whole, texts, facts, sideDigest: String(digest) }];
  });
  return withNumbers(redis, partition, found);
}

function keysOf(partition: number, id: number): string[] {
  const { shipment, notifications, releases, topics } = companyKeys(partition);
  const { verdicts } = webhookKeys(partition);
  return [shipment(id), notifications(id), releases(id), topics(id), verdicts(id)];
}

/** Its own tracking number and those that couriers have announced, as far as no other shipment has them. */
async function withNumbers(
  redis: Redis,
  partition: number,
  found: readonly Leaving[],
): Promise<Leaving[]> {
  if (found.length === 0) return [];
  const names = companyKeys(partition);
  const asked = found.map(({ facts: { shipment } }) => {
    const { channelId, trackingNumber } = shipment.record;
    const all = [...new Set([trackingNumber, ...shipment.state.aliases])];
    return all.flatMap((number) =>
      numberKeys(names, channelId, number).map((key) => ({ number, key })),
    );
  });
  const couriers = [...new Set(found.map(({ facts }) => facts.shipment.record.courier))];
  const keys = asked.flatMap((own) => own.map(({ key }) => key));
  const owners = await readFields<readonly (string | null)[]>(redis, keys, couriers);
  let at = 0;
  return found.map((one, place) => {
    const courier = couriers.indexOf(one.facts.shipment.record.courier);
    const id = String(one.whole.id);
    const own = (asked[place] ?? []).filter(() => owners[at++]?.[courier] === id);
    const numbers = [...new Set(own.map(({ number }) => number))];
    return { ...one, whole: { ...one.whole, numbers } };
  });
}

/**
 * Removes shipments of one company that stand in a batch of the archive, and settles the batch.
 * @returns by shipment whether it was removed; null if the batch came too late and does not count
 */
export async function removeShipments(
  redis: Redis,
  companyId: number,
  batch: number,
  leaving: readonly Removal[],
): Promise<boolean[] | null> {
  const names = companyKeys(companyPartition(companyId));
  const { archived, absentRows, absentBatches } = names;
  const common = [archived(companyId), absentRows(companyId), absentBatches(companyId)];
  const keys = declaredKeys(common);
  const channelIds = [...new Set(leaving.map(({ facts }) => facts.shipment.record.channelId))];
  const items: ListItem[] = [channelIds.length, leaving.length];
  for (const id of channelIds) items.push(String(id), placesOfChannel(keys, names, id));
  for (const one of leaving) addLeaving(items, keys, names, one, channelIds);
  const numbers = [batch, NUMBER_TAKEN_MS, ROWS_PER_BLOCK, GONE].map(String);
  const args = [...numbers, packList(items)];
  const reply = await run<number[]>(redis, removeScript, keys.declared, args);
  return reply.length < leaving.length ? null : reply.map((one) => one === 1);
}

type Names = ReturnType<typeof companyKeys>;

/** @returns the place of what has left the channel's rows; its indices and its row log follow */
export function placesOfChannel(
  { declareRun }: DeclaredKeys,
  { rows, index, rowLog: log }: Names,
  channelId: number,
): number {
  const orders = (["id", "ship", "upd"] as const).map((order) => index(channelId, order));
  return declareRun(rows(channelId), ...orders, log(channelId));
}

function addLeaving(
  items: ListItem[],
  keys: DeclaredKeys,
  names: Names,
  { whole, facts, sideDigest: digest }: Removal,
  channelIds: readonly number[],
): void {
  const { id, numbers } = whole;
  const { record, state } = facts.shipment;
  const { channelId, courier, shipDate } = record;
  const [first = "", ...others] = keysOf(shipmentPartition(id), id);
  const sets = placesOfValues(keys, names, record);
  const owned = placesOfNumbers(keys, names, record, numbers);
  items.push(
    ...[String(id), indexMember(id), facts.head, digest, channelIds.indexOf(channelId) + 1],
    keys.declareRun(first, ...others),
    keys.declare(names.block(channelId, Math.floor(facts.rank / ROWS_PER_BLOCK))),
    ...[facts.rank, STATUSES.indexOf(state.pair.status)],
    ...[updatedOf(facts), shipDay(shipDate) + DAY_SHIFT, sets.length, owned.length, ...sets],
    ...owned.flatMap((place) => [place, courier]),
  );
}

/** statusUpdatedAt in seconds since 1970; 0 = never. */
export function updatedOf({ shipment }: Pick<ShipmentFacts, "shipment">): number {
  return (shipment.statusUpdatedAtMs ?? 0) / 1_000;
}

export function placesOfValues(
  { declareRun }: DeclaredKeys,
  { exact, exactBits }: Names,
  record: Parameters<typeof exactValues>[0],
): number[] {
  const { channelId } = record;
  return exactValues(record).map(([field, value]) =>
    declareRun(exact(channelId, field, value), exactBits(channelId, field, value)),
  );
}

/** Of the tracking numbers that a shipment has on its channel. */
export function placesOfNumbers(
  { declare }: DeclaredKeys,
  names: Names,
  { channelId }: { readonly channelId: number },
  numbers: readonly string[],
): number[] {
  return numbers
    .flatMap((number) => numberKeys(names, channelId, number))
    .map((key) => declare(key));
}

/** Prepares a channel for shipments that leave its indices: done once, repeating it changes nothing. */
export async function numberRows(
  redis: Redis,
  companyId: number,
  channelId: number,
): Promise<void> {
  const { index, rows } = companyKeys(companyPartition(companyId));
  const keys = [index(channelId, "id"), rows(channelId)];
  for (let from = 0; ; from += NUMBERED_PER_CALL) {
    const args = [from, NUMBERED_PER_CALL].map(String);
    if ((await run<number>(redis, numberRowsScript, keys, args)) === 1) return;
  }
}

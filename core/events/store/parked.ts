/**
 * Parked events of unknown parcels (document 2, "Unknown-tracking set-aside"). An event stands under each reference that it
 * names, so that whichever of them finds a shipment finds it too.
 */

import type { CourierEvent } from "#core/events/rules/event.ts";
import parkedCounts from "#core/events/store/parts/parked-counts.lua" with { type: "text" };
import parkedReferences from "#core/events/store/parts/parked-references.lua" with { type: "text" };
import { chunks } from "#core/platform/process/chunks.ts";
import { perPartition, type Redis, run } from "#core/platform/redis/client.ts";
import {
  parkedCountsKey,
  parkedDueKey,
  type Reference,
  withAsGiven,
} from "#core/platform/redis/keys.ts";
import { partitionsOf, shareOf } from "#core/platform/redis/partitions.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { limit } from "#core/platform/schema/limit.ts";
import expireSource from "./expire-parked.lua" with { type: "text" };
import parkSource from "./park.lua" with { type: "text" };
import unparkSource from "./unpark.lua" with { type: "text" };

const PARTS = { "parked-counts": parkedCounts, "parked-references": parkedReferences };
const parkScript = scriptOfParts(parkSource, PARTS);
const unparkScript = scriptOfParts(unparkSource, PARTS);
const expireScript = scriptOfParts(expireSource, PARTS);

/** Document 2, "Limits": set-aside of unknown-tracking events. Counted from the last time an event was sent. */
export const PARKED_MS = limit(
  7 * 86_400_000,
  "for how long an event stays parked after it was last sent",
  "deleted",
);
/**
 * How long one stays stored at most, counted the same way: whether its 7 days were over is decided by when its shipment's first
 * event was received, and that event may wait for processors for as long as the rest of this.
 */
export const PARKED_KEPT_MS = limit(
  30 * 86_400_000,
  "for how long a parked event is stored at most, while the processors are behind or away",
  "deleted",
);
export const PARKED_PER_REFERENCE = limit(
  100,
  "parked events of a reference",
  "the one that was sent longest ago is removed, counted in a metric",
);
/**
 * Events held over all partitions, once for each of their references, about 500 MB; further ones are answered the same and not
 * kept.
 */
export const PARKED_LIMIT = limit(
  1_000_000,
  "parked events in all, once for each reference, in equal shares of the partitions",
  "answered the same, not kept, counted in a metric",
);
/** Events that one call parks or forgets: each may be under a reference of its own, which holds 100. */
export const PARKED_PER_CALL = limit(50, "events parked or forgotten by one call", "the next call");
/** Whole references that one call reads, for the event to displace or for those that are over: 100 events of 3 KB take 3 ms. */
export const REFERENCES_PER_CALL = limit(
  2,
  "whole references that one call reads, because they are at their limit or their events are over",
  "the next call",
);

export interface ParkedEvent {
  readonly factKey: string;
  readonly event: CourierEvent;
  /** When it was received first. */
  readonly receivedAtMs: number;
  /** When it was received last: its 7 days begin then. */
  readonly sentAtMs: number;
  readonly messageIndex: number;
}

/** An event to be parked under one of its references. */
export interface ParkItem {
  readonly reference: Reference;
  /** What the reference held when the event was classified (`fingerprintOf`). */
  readonly fingerprint: string;
  readonly parked: Omit<ParkedEvent, "receivedAtMs" | "sentAtMs">;
}

/** "displaced": it was parked, and an older one of its reference went. */
export type ParkOutcome = "parked" | "known_now" | "full" | "displaced";
const OUTCOMES: readonly ParkOutcome[] = ["known_now", "parked", "full", "displaced"];
const FOR_NEXT_CALL = 4;

/**
 * Parks every event under its reference; outcomes in the order given.
 * @param limit events held over all partitions; each holds its equal share
 */
export async function parkEvents(
  redis: Redis,
  items: readonly ParkItem[],
  nowMs: number,
  limit = PARKED_LIMIT,
): Promise<ParkOutcome[]> {
  const share = shareOf("t", limit);
  const head = [nowMs, PARKED_KEPT_MS, PARKED_PER_REFERENCE, share, REFERENCES_PER_CALL].map(
    String,
  );
  const outcomes: ParkOutcome[] = [];
  const indexed = items.map((item, at) => ({ ...item, at }));
  const groups = Map.groupBy(indexed, ({ reference }) => reference.partition);
  await perPartition(groups, async (partition, group) => {
    for (const part of chunks(group, PARKED_PER_CALL)) {
      let left = part;
      while (left.length > 0) {
        const reply = await callPark(redis, partition, head, left);
        left.forEach(({ at }, position) => {
          outcomes[at] = OUTCOMES[reply[position] ?? 1] ?? "parked";
        });
        left = left.filter((_, position) => reply[position] === FOR_NEXT_CALL);
      }
    }
  });
  return outcomes;
}

function callPark(
  redis: Redis,
  partition: number,
  head: readonly string[],
  items: readonly ParkItem[],
): Promise<number[]> {
  const references = items.flatMap(({ reference }) => [reference.key, reference.parkedKey]);
  const keys = [parkedCountsKey(partition), parkedDueKey(partition), ...references];
  const fields = items.flatMap(({ parked: { factKey, event, messageIndex }, fingerprint }) => [
    ...[factKey, String(messageIndex), JSON.stringify(event), fingerprint],
  ]);
  return run<number[]>(redis, parkScript, keys, [...head, ...fields]);
}

/** Whether an event may still be released to a shipment whose first event was received at `atMs`. */
export function isInTime({ sentAtMs }: Pick<ParkedEvent, "sentAtMs">, atMs: number): boolean {
  return atMs - sentAtMs < PARKED_MS;
}

/** Events parked under the references, by reference key, also those whose 7 days are over. */
export async function readParked(
  redis: Redis,
  references: readonly Reference[],
): Promise<Map<string, ParkedEvent[]>> {
  const hashes = await Promise.all(
    references.map((reference) =>
      Promise.all(withAsGiven([reference]).map(({ parkedKey }) => redis.hGetAll(parkedKey))),
    ),
  );
  const found = new Map<string, ParkedEvent[]>();
  references.forEach(({ key }, at) => {
    const all = (hashes[at] ?? []).flatMap((hash) => Object.entries(hash));
    const events = all.map(([factKey, text]) => {
      const [receivedAtMs, messageIndex, event, sentAtMs = receivedAtMs] = JSON.parse(text);
      return { factKey, receivedAtMs, sentAtMs, messageIndex, event };
    });
    if (events.length > 0) found.set(key, events);
  });
  return found;
}

/** Forgets events under the references given; what else is parked there stays. */
export async function dropParked(
  redis: Redis,
  events: ReadonlyArray<{ factKey: string; references: readonly Reference[] }>,
): Promise<void> {
  const parkedOnes = events.flatMap(({ references, factKey }) =>
    withAsGiven(references).map((reference) => ({ reference, factKey })),
  );
  await perPartition(
    Map.groupBy(parkedOnes, ({ reference }) => reference.partition),
    async (partition, group) => {
      for (const part of chunks(group, PARKED_PER_CALL)) {
        const hashes = part.map(({ reference }) => reference.parkedKey);
        const fields = part.map(({ factKey }) => factKey);
        await run(redis, unparkScript, [parkedCountsKey(partition), ...hashes], fields);
      }
    },
  );
}

/**
 * Deletes parked events whose 7 days were over at `untilMs`.
 * @returns how many
 */
export async function expireParked(redis: Redis, untilMs: number): Promise<number> {
  const deleted = await Promise.all(
    partitionsOf("t").map((n) => expirePartition(redis, n, untilMs)),
  );
  return deleted.reduce((sum, count) => sum + count, 0);
}

async function expirePartition(redis: Redis, partition: number, untilMs: number): Promise<number> {
  const due = parkedDueKey(partition);
  const dueMs = untilMs - PARKED_MS + PARKED_KEPT_MS;
  const args = [untilMs, PARKED_MS, PARKED_KEPT_MS].map(String);
  const limit = { offset: 0, count: REFERENCES_PER_CALL };
  let deleted = 0;
  for (;;) {
    const hashes = await redis.zRange(due, "-inf", String(dueMs), { BY: "SCORE", LIMIT: limit });
    if (hashes.length === 0) return deleted;
    const keys = [parkedCountsKey(partition), due, ...hashes];
    deleted += await run<number>(redis, expireScript, keys, args);
  }
}

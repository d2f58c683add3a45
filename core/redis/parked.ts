/** Set-aside events of unknown parcels (document 2, "Unknown-tracking set-aside"). */
import type { CourierEvent } from "#core/domain/event.ts";
import { perPartition, type Redis, run, script } from "./client.ts";
import { PARTITIONS, parkedCountsKey, type Reference } from "./keys.ts";
import parkSource from "./scripts/park.lua" with { type: "text" };
import unparkSource from "./scripts/unpark.lua" with { type: "text" };

const parkScript = script(parkSource);
const unparkScript = script(unparkSource);
const DAY_MS = 86_400_000;

/** Document 2, "Limits": set-aside of unknown-tracking events. */
export const PARKED_MS = 7 * 86_400_000;
/** Events one reference may hold; further ones are answered the same and not kept. */
export const PARKED_PER_REFERENCE = 100;
/** Events held over all partitions, some 500 MB; further ones are answered the same and not kept. */
export const PARKED_LIMIT = 1_000_000;

export interface ParkedEvent {
  readonly factKey: string;
  readonly event: CourierEvent;
  readonly receivedAtMs: number;
  readonly place: number;
}

export type ParkOutcome = "parked" | "known_now" | "full";
const OUTCOMES: readonly ParkOutcome[] = ["known_now", "parked", "full"];

/**
 * Parks every event under its reference; outcomes in the order given.
 * @param limit events held over all partitions; each holds its equal share
 */
export async function parkEvents(
  redis: Redis,
  items: ReadonlyArray<{ reference: Reference; parked: ParkedEvent }>,
  nowMs: number,
  limit = PARKED_LIMIT,
): Promise<ParkOutcome[]> {
  const share = Math.ceil(limit / PARTITIONS);
  const head = [nowMs, PARKED_MS, PARKED_PER_REFERENCE, share].map(String);
  const outcomes: ParkOutcome[] = [];
  const indexed = items.map((item, at) => ({ ...item, at }));
  const groups = Map.groupBy(indexed, ({ reference }) => reference.partition);
  await perPartition(groups, async (partition, group) => {
    const references = group.flatMap(({ reference }) => [reference.key, reference.parkedKey]);
    const keys = [parkedCountsKey(partition), ...references];
    const fields = group.flatMap(({ parked: { factKey, event, receivedAtMs, place } }) => [
      factKey,
      JSON.stringify([receivedAtMs, place, event]),
    ]);
    const reply = await run<number[]>(redis, parkScript, keys, [...head, ...fields]);
    group.forEach(({ at }, position) => {
      outcomes[at] = OUTCOMES[reply[position] ?? 1] ?? "parked";
    });
  });
  return outcomes;
}

/** Events parked under the references and not older than 7 days at `nowMs`. */
export async function readParked(
  redis: Redis,
  references: readonly Reference[],
  nowMs: number,
): Promise<ParkedEvent[]> {
  const hashes = await Promise.all(references.map(({ parkedKey }) => redis.hGetAll(parkedKey)));
  return hashes.flatMap((hash) =>
    Object.entries(hash).flatMap(([factKey, text]) => {
      const [receivedAtMs, place, event] = JSON.parse(text);
      return nowMs - receivedAtMs < PARKED_MS ? [{ factKey, receivedAtMs, place, event }] : [];
    }),
  );
}

/** Forgets applied events; what else is parked under the references stays. */
export async function dropParked(
  redis: Redis,
  groups: ReadonlyArray<{ references: readonly Reference[]; events: readonly ParkedEvent[] }>,
): Promise<void> {
  const places = groups.flatMap(({ references, events }) =>
    references.flatMap((reference) => events.map((event) => ({ reference, event }))),
  );
  await perPartition(
    Map.groupBy(places, ({ reference }) => reference.partition),
    (partition, group) => {
      const keys = [
        parkedCountsKey(partition),
        ...group.map(({ reference }) => reference.parkedKey),
      ];
      const fields = group.flatMap(({ event: { factKey, receivedAtMs } }) => [
        factKey,
        String(Math.floor(receivedAtMs / DAY_MS)),
      ]);
      return run(redis, unparkScript, keys, fields);
    },
  );
}

/** Set-aside events of unknown parcels (document 2, "Unknown-tracking set-aside"). */
import type { CourierEvent } from "#core/domain/event.ts";
import { perPartition, type Redis, run, script } from "./client.ts";
import type { Reference } from "./keys.ts";
import parkSource from "./scripts/park.lua" with { type: "text" };

const parkScript = script(parkSource);

/** Document 2, "Limits": set-aside of unknown-tracking events. */
export const PARKED_MS = 7 * 86_400_000;
/** Events one reference may hold; further ones are answered the same and not kept. */
export const PARKED_PER_REFERENCE = 100;

export interface ParkedEvent {
  readonly factKey: string;
  readonly event: CourierEvent;
  readonly receivedAtMs: number;
  readonly place: number;
}

export type ParkOutcome = "parked" | "known_now" | "full";
const OUTCOMES: readonly ParkOutcome[] = ["known_now", "parked", "full"];

/** Parks every event under its reference; outcomes in the order given. */
export async function parkEvents(
  redis: Redis,
  items: ReadonlyArray<{ reference: Reference; parked: ParkedEvent }>,
): Promise<ParkOutcome[]> {
  const outcomes: ParkOutcome[] = [];
  const indexed = items.map((item, at) => ({ ...item, at }));
  const groups = Map.groupBy(indexed, ({ reference }) => reference.partition);
  await perPartition(groups, async (_, group) => {
    const keys = group.flatMap(({ reference }) => [reference.key, reference.parkedKey]);
    const fields = group.flatMap(({ parked: { factKey, event, receivedAtMs, place } }) => [
      factKey,
      JSON.stringify([receivedAtMs, place, event]),
    ]);
    const limits = [String(PARKED_MS), String(PARKED_PER_REFERENCE)];
    const reply = await run<number[]>(redis, parkScript, keys, [...limits, ...fields]);
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
  await Promise.all(
    groups.flatMap(({ references, events }) => {
      const fields = events.map(({ factKey }) => factKey);
      return references.map(({ parkedKey }) => redis.hDel(parkedKey, fields));
    }),
  );
}

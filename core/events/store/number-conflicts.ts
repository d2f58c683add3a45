/**
 * Tracking number changes that point to the number of another live shipment. They take effect like any other and are
 * reported, since either the courier is wrong or the other shipment was created with a wrong number.
 */
import { chunks } from "#core/platform/process/chunks.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { NUMBER_CONFLICT_KEYS } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import noteSource from "./note-conflicts.lua" with { type: "text" };

const noteScript = script(noteSource);

export const CONFLICTS_LISTED = limit(1_000, "number conflicts listed", "the oldest are removed");
/** Conflicts that one call notes: a batch may bring 1,600. */
export const CONFLICTS_PER_CALL = limit(100, "number conflicts noted by one call", "the next call");

export interface NumberConflict {
  readonly courier: string;
  readonly eventId: string;
  /** The shipment whose number changes. */
  readonly shipmentId: number;
  readonly newTrackingNumber: string;
  /** Live shipments that have the new number already. */
  readonly otherShipmentIds: readonly number[];
  /** When the event was received, UTC milliseconds. */
  readonly atMs: number;
}

/** @returns those that were not listed before */
export async function noteConflicts(
  redis: Redis,
  conflicts: readonly NumberConflict[],
  limit = CONFLICTS_LISTED,
): Promise<NumberConflict[]> {
  const { list, byTime } = NUMBER_CONFLICT_KEYS;
  const noted: NumberConflict[] = [];
  for (const part of chunks(conflicts, CONFLICTS_PER_CALL)) {
    const args = part.flatMap((conflict) => [
      JSON.stringify([conflict.shipmentId, conflict.newTrackingNumber]),
      String(conflict.atMs),
      JSON.stringify(conflict),
    ]);
    const reply = await run<number[]>(redis, noteScript, [list, byTime], [String(limit), ...args]);
    noted.push(...part.filter((_, at) => reply[at] === 1));
  }
  return noted;
}

/** The newest first. */
export async function listConflicts(
  redis: Redis,
  offset: number,
  limit: number,
): Promise<{ readonly conflicts: readonly NumberConflict[]; readonly total: number }> {
  const { list, byTime } = NUMBER_CONFLICT_KEYS;
  const [names, total] = await Promise.all([
    redis.zRange(byTime, offset, offset + limit - 1, { REV: true }),
    redis.zCard(byTime),
  ]);
  const texts = names.length === 0 ? [] : await redis.hmGet(list, names);
  const conflicts = texts.flatMap((text) => (text ? [JSON.parse(text) as NumberConflict] : []));
  return { conflicts, total };
}

export function countConflicts(redis: Redis): Promise<number> {
  return redis.zCard(NUMBER_CONFLICT_KEYS.byTime);
}

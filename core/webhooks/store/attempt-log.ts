/**
 * Webhook attempts on their way to ClickHouse: a log in each company partition, one entry for all attempts that one call of
 * `finish.lua` records, in the same step as their effect. A mark bounds what waits: past it attempts are counted and not
 * logged, since deliveries matter more than their statistics.
 */
import type { AttemptRow } from "#core/benchmarks/rules/attempt-row.ts";
import type { LogItem } from "#core/platform/log/consumer.ts";
import raiseSource from "#core/platform/log/raise-field.lua" with { type: "text" };
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { attemptCountsKey, webhookKeys } from "#core/platform/redis/keys.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { limit } from "#core/platform/schema/limit.ts";

const raiseScript = script(raiseSource);

/** Over all partitions, in equal shares: about 190 MB. */
export const ATTEMPTS_WAITING = limit(
  1_000_000,
  "webhook attempts waiting for ClickHouse, in equal shares of the partitions",
  "counted, not logged; deliveries go on",
);

/** A line of an entry. Its texts are ids and words of ours, none of which JSON would write in another way. */
export function encodeAttempt(row: AttemptRow): string {
  const { deliveryId, endpointId, channelId, eventId, generation, attempt } = row;
  const { atMs, httpStatus, error, latencyMs, outcome } = row;
  const ids = `"${deliveryId}","${endpointId}",${channelId},"${eventId}"`;
  const what = `${httpStatus},${error === null ? null : `"${error}"`},${latencyMs},"${outcome}"`;
  return `[${ids},${generation},${attempt},${atMs},${what}]`;
}

/** @throws when the entry is none of ours */
export function decodeAttempts({ fields }: Pick<LogItem, "fields">): AttemptRow[] {
  return (fields["a"] ?? "").split("\n").map((line) => {
    const [deliveryId, endpointId, channelId, eventId, generation, attempt, ...rest] =
      JSON.parse(line);
    const [atMs, httpStatus, error, latencyMs, outcome] = rest;
    return {
      deliveryId,
      endpointId,
      channelId,
      eventId,
      generation,
      attempt,
      atMs,
      httpStatus,
      error,
      latencyMs,
      outcome,
    };
  });
}

/** Tells the logs how far they have been taken over; entries taken again, dead letters of long ago too, change nothing. */
export async function markTaken(redis: Redis, entries: readonly LogItem[]): Promise<void> {
  const furthest = new Map<string, number>();
  for (const { key, fields } of entries) {
    furthest.set(key, Math.max(furthest.get(key) ?? 0, Number(fields["n"] ?? 0)));
  }
  await Promise.all(
    [...furthest].map(([key, logged]) =>
      run(redis, raiseScript, [attemptCountsKey(key)], ["taken", String(logged)]),
    ),
  );
}

export interface AttemptCounts {
  readonly logged: number;
  readonly waiting: number;
  readonly dropped: number;
}

/** Over all partitions. */
export async function readAttemptCounts(redis: Redis): Promise<AttemptCounts> {
  const hashes = await Promise.all(
    partitionsOf("k").map((n) => redis.hGetAll(webhookKeys(n).attemptCounts)),
  );
  const sum = (field: string) =>
    hashes.reduce((total, hash) => total + Number(hash[field] ?? 0), 0);
  const logged = sum("logged");
  return { logged, waiting: logged - sum("taken"), dropped: sum("dropped") };
}

/**
 * Erasures of recipients that are repeated: what was on its way at the moment of the erasure has arrived by then. And the mails
 * about them, which other processes may have written into their outbox.
 */
import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys, ERASED_MAILS_KEY, shipmentPartition } from "#core/platform/redis/keys.ts";
import { partitionsOf, shareOf } from "#core/platform/redis/partitions.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** No request that was under way at the erasure still is; no retry; hardly an outage of a store. */
const FIRST_REPETITION_MS = limit(
  60_000,
  "time to the first repetition of an erasure",
  "what a store that was away for longer brings back is erased by the next one",
);
const SECOND_REPETITION_MS = limit(
  3_600_000,
  "time to the second repetition of an erasure",
  "what a store that was away for longer brings back is erased by the last one",
);
const LAST_REPETITION_MS = limit(
  86_400_000,
  "time to the last repetition of an erasure",
  "what a store that was away for longer brings back is erased by another call",
);
const REPETITIONS_MS = [FIRST_REPETITION_MS, SECOND_REPETITION_MS, LAST_REPETITION_MS] as const;
/** A process that writes an outbox and was down for longer keeps its files. */
const ERASED_MAILS_KEPT_MS = limit(
  30 * 86_400_000,
  "time in which other processes delete the mails of erased recipients",
  "a process that was down for longer keeps its files",
);
const ERASURES_PER_ROUND = limit(
  160,
  "repeated erasures in one round, in equal shares of the partitions",
  "the next round",
);

export async function planRepetitions(
  redis: Redis,
  shipmentId: number,
  nowMs: number,
): Promise<void> {
  const { erasures } = companyKeys(shipmentPartition(shipmentId));
  const members = REPETITIONS_MS.map((afterMs, at) => ({
    score: nowMs + afterMs,
    value: `${shipmentId}:${at}`,
  }));
  await redis.zAdd(erasures, members);
}

/** Repeats what is due in all partitions, and forgets each one once it was repeated. */
export async function repeatDue(
  redis: Redis,
  nowMs: number,
  repeat: (shipmentId: number) => Promise<void>,
): Promise<void> {
  const limit = { offset: 0, count: shareOf("k", ERASURES_PER_ROUND) };
  const keys = partitionsOf("k").map((n) => companyKeys(n).erasures);
  const due = await Promise.all(
    keys.map((key) => redis.zRange(key, "-inf", String(nowMs), { BY: "SCORE", LIMIT: limit })),
  );
  for (const [at, key] of keys.entries()) {
    for (const member of due[at] ?? []) {
      await repeat(Number.parseInt(member, 10));
      await redis.zRem(key, member);
    }
  }
}

export async function noteErasedMails(
  redis: Redis,
  messageIds: readonly string[],
  nowMs: number,
): Promise<void> {
  if (messageIds.length === 0) return;
  await redis.zRemRangeByScore(ERASED_MAILS_KEY, "-inf", nowMs - ERASED_MAILS_KEPT_MS);
  const members = messageIds.map((value) => ({ score: nowMs, value }));
  await redis.zAdd(ERASED_MAILS_KEY, members);
}

/** Message ids of mails about recipients that were erased since then. */
export function readErasedMails(redis: Redis, sinceMs: number): Promise<string[]> {
  return redis.zRange(ERASED_MAILS_KEY, String(sinceMs), "+inf", { BY: "SCORE" });
}

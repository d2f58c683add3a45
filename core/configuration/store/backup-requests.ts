/**
 * `npx waybill backup` asks the process that has the embedded ClickHouse open to fix one moment of both stores. The answer says where
 * ClickHouse keeps the parts of that moment.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "#core/platform/redis/client.ts";
import { BACKUP_REQUESTS_KEY, backupAnswerKey } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";

const LIFE_SECONDS = 300;
const POLL_MS = 100;
/** A request that nobody has taken by then is withdrawn. */
const TAKEN_LIMIT_MS = 5_000;
/** A batch of rows may have to be written first. */
const BACKUP_LIMIT_MS = limit(180_000, "wait of a backup for its moment", "the backup fails");

export type FrozenTables = Readonly<Record<string, readonly string[]>>;

export type BackupAnswer =
  /** By table, the folders of its parts. */
  { readonly tables: FrozenTables } | { readonly fault: string };

/** @returns null if no process has the embedded ClickHouse open */
export async function requestBackup(redis: Redis): Promise<BackupAnswer | null> {
  const id = randomUUID();
  await redis
    .multi()
    .rPush(BACKUP_REQUESTS_KEY, id)
    .expire(BACKUP_REQUESTS_KEY, LIFE_SECONDS)
    .exec();
  const fromMs = performance.now();
  let isTaken = false;
  for (;;) {
    const text = await redis.getDel(backupAnswerKey(id));
    if (text !== null) return JSON.parse(text);
    const waitedMs = performance.now() - fromMs;
    if (!isTaken && waitedMs > TAKEN_LIMIT_MS) {
      if ((await redis.lRem(BACKUP_REQUESTS_KEY, 0, id)) > 0) return null;
      isTaken = true;
    }
    if (waitedMs > BACKUP_LIMIT_MS) {
      return { fault: "the process that has ClickHouse open does not answer" };
    }
    await Bun.sleep(POLL_MS);
  }
}

/** @returns the id of the oldest request, taken out; null = there is none */
export function takeBackupRequest(redis: Redis): Promise<string | null> {
  return redis.lPop(BACKUP_REQUESTS_KEY);
}

export async function answerBackupRequest(
  redis: Redis,
  id: string,
  answer: BackupAnswer,
): Promise<void> {
  await redis.set(backupAnswerKey(id), JSON.stringify(answer), { EX: LIFE_SECONDS });
}

/**
 * What was erased stands in Redis' append-only file until the file is rewritten, which its size alone may never bring about. Whoever
 * erases leaves a mark, and the embedded Redis is asked for a rewrite within a day. Many erasures share one.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "#core/platform/redis/client.ts";
import { FILE_REWRITE_KEY } from "#core/platform/redis/keys.ts";
import { swapField } from "#core/platform/redis/swap-field.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** After the first erasure that is not covered yet: others follow, and a rewrite writes all that Redis holds. */
export const REWRITE_AFTER_MS = limit(
  12 * 3_600_000,
  "from an erasure to the rewrite of the embedded append-only file",
  "the rewrite is asked for again until it succeeds",
);
const SINCE = "since";
const LATEST = "latest";

/** Something is erased, or was, that must not stay readable. */
async function noteErased(redis: Redis, nowMs: number): Promise<void> {
  await redis
    .multi()
    .hSetNX(FILE_REWRITE_KEY, SINCE, String(nowMs))
    .hSet(FILE_REWRITE_KEY, LATEST, randomUUID())
    .exec();
}

/**
 * Erases, and marks it twice: before, so that the mark of a process which dies in the middle is there, and after, since a rewrite
 * may have begun in between.
 */
export async function erasing<T>(redis: Redis, nowMs: number, erase: () => Promise<T>): Promise<T> {
  await noteErased(redis, nowMs);
  const erased = await erase();
  await noteErased(redis, nowMs);
  return erased;
}

/** What was erased may still stand in the file. */
export async function isFileRewriteMarked(redis: Redis): Promise<boolean> {
  return Boolean(await redis.hGet(FILE_REWRITE_KEY, LATEST));
}

/** A rewrite that was asked for. */
interface Rewrite {
  /** The erasure up to which it covers all. */
  readonly latest: string;
  /** Of the server: one that was restarted meanwhile may not have ended it. */
  readonly runId: string;
}

/** @returns looks once: asks for a rewrite that is due, and removes the mark when it has ended well */
export function openFileRewrites(redis: Redis): (nowMs: number) => Promise<void> {
  let asked: Rewrite | null = null;

  async function ask(nowMs: number): Promise<void> {
    const [since, latest] = await redis.hmGet(FILE_REWRITE_KEY, [SINCE, LATEST]);
    if (!latest || nowMs < Number(since ?? 0) + REWRITE_AFTER_MS) return;
    const info = await readInfo(redis);
    // One under way may have begun before the erasure.
    if (info.isBusy) return;
    await redis.sendCommand(["BGREWRITEAOF"]);
    asked = { latest, runId: info.runId };
  }

  return async (nowMs) => {
    if (asked === null) {
      await ask(nowMs);
      return;
    }
    const info = await readInfo(redis);
    if (info.isBusy) return;
    const { latest, runId } = asked;
    asked = null;
    if (info.runId !== runId) return;
    if (!info.isWell) throw new Error("Redis could not rewrite its append-only file");
    // A mark without a beginning is due at once, so that an erasure between the two steps is never forgotten.
    const swap = { from: latest, to: "" };
    if (await swapField(redis, FILE_REWRITE_KEY, LATEST, swap))
      await redis.hDel(FILE_REWRITE_KEY, SINCE);
    else await redis.hSet(FILE_REWRITE_KEY, SINCE, String(nowMs));
  };
}

async function readInfo(redis: Redis) {
  const text = String(await redis.sendCommand(["INFO", "everything"]));
  const fieldOf = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(text)?.[1] ?? "";
  return {
    isBusy: fieldOf("aof_rewrite_in_progress") === "1" || fieldOf("aof_rewrite_scheduled") === "1",
    isWell: fieldOf("aof_last_bgrewrite_status") === "ok",
    runId: fieldOf("run_id"),
  };
}

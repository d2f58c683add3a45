/**
 * One writer of the configuration at a time: setup files and panel calls of all processes. An account is no part of it: it is
 * read whenever it is used, has a lock of its own, and nobody is told of its changes.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import {
  accountLockKey,
  NEW_ACCOUNT_LOCK_KEY,
  SETUP_LOCK_KEY,
  SYSTEM_KEY,
} from "#core/platform/redis/keys.ts";
import { type Lock, LockLost, type LockTerms, takeLock } from "#core/platform/redis/lock.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { lockParty } from "./change-context.ts";

/** Processes that start together apply the same file one after the other. */
export const SETUP_LOCK_TERMS = {
  leaseMs: limit(
    5_000,
    "lease of the setup lock",
    "renewed after a third; others wait for as long if the holder is killed",
  ),
  waitLimitMs: limit(30_000, "wait for the setup lock", "503 with `Retry-After`"),
};
const BUSY_RETRY_SECONDS = "5";
/** Of the system's hash: something may have been written that no process knows of yet. */
const UNANNOUNCED_FIELD = "unannounced";

const held = new AsyncLocalStorage<Lock>();

/**
 * An entity that `work` reads, changes and saves cannot lose another writer's change.
 * @throws {Problem} 503 if others hold the lock for the whole wait, or if the lease expired before everything was written
 */
export function underSetupLock<T>(
  redis: Redis,
  work: () => Promise<T>,
  terms: LockTerms = SETUP_LOCK_TERMS,
): Promise<T> {
  const announcing = async () => {
    await announceLeftOver(redis);
    return work();
  };
  return under(redis, { key: SETUP_LOCK_KEY, terms, what: "the configuration" }, announcing);
}

/** As `underSetupLock`, for one account: whoever changes another one, or the configuration, does not wait. */
export function underAccountLock<T>(
  redis: Redis,
  id: string,
  work: () => Promise<T>,
  terms: LockTerms = SETUP_LOCK_TERMS,
): Promise<T> {
  return under(redis, { key: accountLockKey(id), terms, what: "this account" }, work);
}

/** While accounts are counted, and one is added. */
export function underNewAccountLock<T>(redis: Redis, work: () => Promise<T>): Promise<T> {
  return under(
    redis,
    { key: NEW_ACCOUNT_LOCK_KEY, terms: SETUP_LOCK_TERMS, what: "the accounts" },
    work,
  );
}

interface Guarded {
  readonly key: string;
  readonly terms: LockTerms;
  /** For a caller who is told that others are at it. */
  readonly what: string;
}

async function under<T>(
  redis: Redis,
  { key, terms, what }: Guarded,
  work: () => Promise<T>,
): Promise<T> {
  const lock = await takeLock(redis, key, { party: lockParty(), ...terms });
  if (lock === null) throw busy(`Others are changing ${what}.`);
  try {
    return await held.run(lock, work);
  } catch (error) {
    if (error instanceof LockLost) throw busy("The change took too long and may be incomplete.");
    throw error;
  } finally {
    await lock.release();
  }
}

/**
 * Called by everything that writes the configuration, so that no caller can forget it: a holder whose lease has expired
 * must not overwrite what the next one has read.
 * @throws {LockLost}
 */
export async function expectSetupLock(): Promise<void> {
  await held.getStore()?.assertHeld();
}

/** Before every write of the configuration: a process that dies, or loses the store, before it announces the change leaves this. */
export async function markUnannounced(redis: Redis): Promise<void> {
  await redis.hSet(SYSTEM_KEY, UNANNOUNCED_FIELD, "1");
}

/** Notifies every process that the configuration has changed. @returns its new version */
export async function announceChanges(redis: Redis): Promise<number> {
  const announcing = redis
    .multi()
    .hIncrBy(SYSTEM_KEY, "version", 1)
    .hDel(SYSTEM_KEY, UNANNOUNCED_FIELD);
  const [version] = await announcing.exec();
  return Number(version);
}

/**
 * Announces what has been written since the last announcement, if anything. When a change is repeated, what is already written
 * looks like no change, so nothing else would ever announce it.
 * @returns the version in force
 */
export async function announceLeftOver(redis: Redis): Promise<number> {
  const [version, isLeft] = await redis.hmGet(SYSTEM_KEY, ["version", UNANNOUNCED_FIELD]);
  return isLeft === null ? Number(version ?? 0) : announceChanges(redis);
}

function busy(reason: string): Problem {
  return new Problem(503, "CONFIGURATION_BUSY", `${reason} Send it again.`, {
    headers: { "retry-after": BUSY_RETRY_SECONDS },
  });
}

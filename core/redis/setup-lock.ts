/** One writer of the configuration at a time: setup files and panel calls of all processes. */
import { AsyncLocalStorage } from "node:async_hooks";
import { Problem } from "#core/problem.ts";
import type { Redis } from "./client.ts";
import { SETUP_LOCK_KEY } from "./keys.ts";
import { type Lock, LockLost, type LockTerms, takeLock } from "./lock.ts";

/** Processes that start together apply the same file one after the other. */
const TERMS = { leaseMs: 5_000, waitLimitMs: 30_000 };
const BUSY_RETRY_SECONDS = "5";

const held = new AsyncLocalStorage<Lock>();

/**
 * An entity that `work` reads, changes and saves cannot lose another writer's change.
 * @throws {Problem} 503 if others hold the lock for the whole wait, or if the lease expired before everything was written
 */
export async function underSetupLock<T>(
  redis: Redis,
  work: () => Promise<T>,
  terms: LockTerms = TERMS,
): Promise<T> {
  const lock = await takeLock(redis, SETUP_LOCK_KEY, terms);
  if (lock === null) throw busy("Others are changing the configuration.");
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

function busy(reason: string): Problem {
  return new Problem(503, "CONFIGURATION_BUSY", `${reason} Send it again.`, {
    headers: { "retry-after": BUSY_RETRY_SECONDS },
  });
}

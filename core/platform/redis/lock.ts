/**
 * Locks for one process at a time, under a lease that is renewed while the process is alive: if it dies, others wait no
 * longer than the lease. If a holder is delayed, its lease may expire; it checks before it writes, and never releases
 * another process's lock. Those who wait are served in the order in which they came, so that nobody who asks often is ahead of the
 * others, and one of each party in turn, so that nobody who asks over many connections is.
 */
import { limit } from "#core/platform/schema/limit.ts";
import { newToken } from "#core/platform/secrets/secrets.ts";
import { type Redis, run, script } from "./client.ts";
import { lockQueueKeys } from "./keys.ts";
import lockSource from "./lock.lua" with { type: "text" };

const lockScript = script(lockSource);

/** Of the first in the queue; the n-th looks n times more rarely. */
const LOOK_EVERY_MS = 5;
/** Of those far behind. */
const LOOK_SELDOM_MS = 50;
/** A waiter that has not asked for so long is dead, and holds up those behind it no longer. */
export const WAITER_LOST_MS = limit(
  1_000,
  "time without a heartbeat of a waiter",
  "it leaves the queue",
);
export const LOCK_WAITERS = limit(1_000, "waiters of a lock", "503, as after the whole wait");
export const PARTY_WAITERS = limit(
  200,
  "waiters of a lock from one company or courier",
  "503, as after the whole wait",
);
/** Renewals per lease: two may be late before it expires. */
const RENEWALS = 3;

export interface LockTerms {
  /** How long others are kept out if the holder dies. */
  readonly leaseMs: number;
  /** 0 = try once */
  readonly waitLimitMs: number;
  /** Nobody waits for this lock: it is one key, which can be taken while its slot is open between two masters. */
  readonly hasQueue?: false;
  /** For whom: those who wait take turns by it, and of each that is named only some may wait. Without a colon. */
  readonly party?: string;
}

export interface Lock {
  /** The owner token: for scripts that compare it atomically with their writes. */
  readonly owner: string;
  /**
   * Called before a write: afterwards the lock is held for at least half its lease. Needs a round trip only if a renewal is
   * late.
   * @throws {LockLost}
   */
  readonly assertHeld: () => Promise<void>;
  /** Does nothing if another process holds the lock by now. If releasing fails, the lease expires. */
  readonly release: () => Promise<void>;
  /** Keeps the lock for this time; a later `release` does nothing. */
  readonly releaseAfter: (ms: number) => Promise<void>;
}

export class LockLost extends Error {
  constructor() {
    super("the lease of a lock has ended while its holder was at work");
  }
}

/** @returns null if others hold it, or are ahead in the queue, for the whole wait, or if the queue is full */
export async function takeLock(
  redis: Redis,
  key: string,
  { leaseMs, waitLimitMs, party = "", hasQueue }: LockTerms,
): Promise<Lock | null> {
  const owner = newToken(party === "" ? "" : `${party}:`);
  const deadline = performance.now() + waitLimitMs;
  const waitMs = waitLimitMs === 0 ? 0 : WAITER_LOST_MS;
  for (;;) {
    const askedAtMs = performance.now();
    const reply = await change(redis, key, owner, { verb: "take", leaseMs, waitMs, hasQueue });
    if (reply === 1) return hold(redis, key, owner, leaseMs, askedAtMs);
    if (reply === 0) return null;
    if (performance.now() >= deadline) {
      await change(redis, key, owner, { verb: "leave", leaseMs: 0 });
      return null;
    }
    await Bun.sleep(Math.min(-reply * LOOK_EVERY_MS, LOOK_SELDOM_MS, waitLimitMs));
  }
}

/** @param askedAtMs when the request was sent: the lease is counted from here, since the server acted later */
function hold(redis: Redis, key: string, owner: string, leaseMs: number, askedAtMs: number): Lock {
  let renewedAtMs = askedAtMs;
  let isLost = false;

  async function renew(): Promise<void> {
    const atMs = performance.now();
    if ((await change(redis, key, owner, { verb: "renew", leaseMs })) === 1) renewedAtMs = atMs;
    else isLost = true;
  }

  // A failed renewal is made up for by the next one, or by `assertHeld`.
  const timer = setInterval(() => void renew().catch(() => {}), leaseMs / RENEWALS);
  let hasEnded = false;
  async function end(verb: Verb, ms: number): Promise<void> {
    if (hasEnded) return;
    hasEnded = true;
    clearInterval(timer);
    await change(redis, key, owner, { verb, leaseMs: ms }).catch(() => {});
  }

  return {
    owner,
    async assertHeld() {
      if (!isLost && performance.now() - renewedAtMs > leaseMs / 2) await renew();
      if (isLost) throw new LockLost();
    },
    release: () => end("release", 0),
    releaseAfter: (ms) => end("renew", ms),
  };
}

type Verb = "take" | "renew" | "release" | "leave";

interface Change {
  readonly verb: Verb;
  readonly leaseMs: number;
  readonly waitMs?: number;
  readonly hasQueue?: boolean | undefined;
}

/** @returns as `lock.lua` */
function change(
  redis: Redis,
  key: string,
  owner: string,
  { verb, leaseMs, waitMs = 0, hasQueue = verb === "take" || verb === "leave" }: Change,
): Promise<number> {
  const { waiting, alive } = lockQueueKeys(key);
  const keys = hasQueue ? [key, waiting, alive] : [key];
  const most = [LOCK_WAITERS, owner.includes(":") ? PARTY_WAITERS : LOCK_WAITERS];
  const args = [owner, verb, ...[leaseMs, waitMs, ...most].map(String)];
  return run<number>(redis, lockScript, keys, args);
}

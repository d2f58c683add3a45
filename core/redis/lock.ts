/**
 * Locks that one process at a time holds, under a lease that is renewed while it lives: who dies is waited for no longer
 * than that. A lease may end under a holder that was held up; it asks before it writes, and never releases another's lock.
 */
import { newToken } from "#core/secrets.ts";
import { type Redis, run, script } from "./client.ts";
import lockSource from "./scripts/lock.lua" with { type: "text" };

const lockScript = script(lockSource);

const LOOK_EVERY_MS = 50;
/** Renewals of a lease: two may be late before it ends. */
const RENEWALS = 3;

export interface LockTerms {
  /** Whoever dies with the lock keeps others out for so long. */
  readonly leaseMs: number;
  /** 0 = no second look */
  readonly waitLimitMs: number;
}

export interface Lock {
  /** As the lock knows its holder: for scripts that compare it in the same step as they write. */
  readonly owner: string;
  /**
   * Asked before a write: afterwards the lock is held for half its lease at least. Costs a round trip only where a renewal
   * is late.
   * @throws {LockLost}
   */
  readonly assertHeld: () => Promise<void>;
  /** Does nothing where the lock is another's by now. What fails ends with the lease. */
  readonly release: () => Promise<void>;
  /** Nobody takes the lock before this time has passed, and a later `release` does nothing. */
  readonly releaseAfter: (ms: number) => Promise<void>;
}

export class LockLost extends Error {
  constructor() {
    super("the lease of a lock has ended while its holder was at work");
  }
}

/** @returns null when somebody else holds it for the whole wait */
export async function takeLock(
  redis: Redis,
  key: string,
  { leaseMs, waitLimitMs }: LockTerms,
): Promise<Lock | null> {
  const owner = newToken("");
  const deadline = performance.now() + waitLimitMs;
  for (;;) {
    const askedAtMs = performance.now();
    if (await change(redis, key, owner, "take", leaseMs)) {
      return hold(redis, key, owner, leaseMs, askedAtMs);
    }
    if (performance.now() >= deadline) return null;
    await Bun.sleep(Math.min(LOOK_EVERY_MS, waitLimitMs));
  }
}

/** @param askedAtMs the lease runs from when the server did it, which was later */
function hold(redis: Redis, key: string, owner: string, leaseMs: number, askedAtMs: number): Lock {
  let renewedAtMs = askedAtMs;
  let isLost = false;

  async function renew(): Promise<void> {
    const atMs = performance.now();
    if (await change(redis, key, owner, "renew", leaseMs)) renewedAtMs = atMs;
    else isLost = true;
  }

  // A renewal that fails is made up for by the next one, or by whoever asks.
  const timer = setInterval(() => void renew().catch(() => {}), leaseMs / RENEWALS);
  let hasEnded = false;
  async function end(verb: Verb, ms: number): Promise<void> {
    if (hasEnded) return;
    hasEnded = true;
    clearInterval(timer);
    await change(redis, key, owner, verb, ms).catch(() => {});
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

type Verb = "take" | "renew" | "release";

async function change(
  redis: Redis,
  key: string,
  owner: string,
  verb: Verb,
  leaseMs: number,
): Promise<boolean> {
  return (await run<number>(redis, lockScript, [key], [owner, verb, String(leaseMs)])) === 1;
}

/**
 * Locks for one process at a time, under a lease that is renewed while the process is alive: if it dies, others wait no
 * longer than the lease. If a holder is delayed, its lease may expire; it checks before it writes, and never releases
 * another process's lock.
 */
import { newToken } from "#core/secrets.ts";
import { type Redis, run, script } from "./client.ts";
import lockSource from "./lock.lua" with { type: "text" };

const lockScript = script(lockSource);

const LOOK_EVERY_MS = 50;
/** Renewals per lease: two may be late before it expires. */
const RENEWALS = 3;

export interface LockTerms {
  /** How long others are kept out if the holder dies. */
  readonly leaseMs: number;
  /** 0 = try once */
  readonly waitLimitMs: number;
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

/** @returns null if another process holds it for the whole wait */
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

/** @param askedAtMs when the request was sent: the lease is counted from here, since the server acted later */
function hold(redis: Redis, key: string, owner: string, leaseMs: number, askedAtMs: number): Lock {
  let renewedAtMs = askedAtMs;
  let isLost = false;

  async function renew(): Promise<void> {
    const atMs = performance.now();
    if (await change(redis, key, owner, "renew", leaseMs)) renewedAtMs = atMs;
    else isLost = true;
  }

  // A failed renewal is made up for by the next one, or by `assertHeld`.
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

/**
 * The partitions that a consumer has left behind: their store was unavailable when they were read, handled or acknowledged, or their
 * group is gone. What was delivered of them is pending. They are asked for it until all of it is done, beside the others, which go on.
 */
import { createPause, type Pause } from "#core/platform/process/pause.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import type { Outage } from "#core/platform/redis/outage.ts";
import { ensureGroups, isReplyError } from "./streams.ts";

const GONE_WAIT_MS = 500;

export interface Behind {
  readonly has: (key: string) => boolean;
  readonly isEmpty: () => boolean;
  /** @param begunAtMs when the step that has failed was begun */
  readonly add: (key: string, error: unknown, begunAtMs: number) => void;
  readonly stop: () => Promise<void>;
}

export interface BehindDeps {
  readonly redis: Redis;
  readonly outage: Outage;
  /** Does what is pending of a partition. @throws where that cannot be done yet */
  readonly catchUp: (key: string) => Promise<void>;
  /** A partition has caught up. */
  readonly onBack: () => void;
}

interface Following extends BehindDeps {
  /** With how often each was added: what fails during a round needs another one. */
  readonly keys: Map<string, number>;
  readonly pause: Pause;
  isGone: boolean;
  stopping: boolean;
  running: Promise<void> | null;
}

export function followBehind(deps: BehindDeps): Behind {
  const keys = new Map<string, number>();
  const pause = createPause();
  const following: Following = {
    ...deps,
    keys,
    pause,
    isGone: false,
    stopping: false,
    running: null,
  };
  return {
    has: (key) => keys.has(key),
    isEmpty: () => keys.size === 0,
    add(key, error, begunAtMs) {
      // Another process takes over what is pending.
      if (following.stopping) return;
      keys.set(key, (keys.get(key) ?? 0) + 1);
      following.running ??= catchUpAll(following, waitAfter(following, error, begunAtMs));
    },
    async stop() {
      following.stopping = true;
      pause.wake();
      await following.running;
    },
  };
}

async function catchUpAll(following: Following, firstWaitMs: number): Promise<void> {
  const { redis, keys, pause } = following;
  let waitMs = firstWaitMs;
  while (keys.size > 0) {
    await pause.wait(waitMs);
    if (following.stopping) break;
    if (following.isGone) await ensureGroups(redis).catch(() => {});
    following.isGone = false;
    const begunAtMs = performance.now();
    const catchingUp = [...keys.keys()].map((key) => tryOne(following, key));
    const errors = (await Promise.all(catchingUp)).flat();
    // They have one reason in common, as a rule; one of them counts.
    waitMs = errors.length === 0 ? 0 : waitAfter(following, errors[0], begunAtMs);
  }
  following.running = null;
}

/** @returns how long to wait before the next round */
function waitAfter(following: Following, error: unknown, begunAtMs: number): number {
  if (!isReplyError(error, "NOGROUP")) return following.outage.failed(error, begunAtMs);
  following.isGone = true;
  return GONE_WAIT_MS;
}

async function tryOne({ keys, catchUp, onBack }: Following, key: string): Promise<unknown[]> {
  const added = keys.get(key);
  try {
    await catchUp(key);
    if (keys.get(key) !== added) return [];
    keys.delete(key);
    onBack();
    return [];
  } catch (error) {
    return [error];
  }
}

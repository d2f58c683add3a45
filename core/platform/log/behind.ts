/**
 * The partitions that a consumer has left behind: their store was unavailable when they were read, handled or acknowledged, or their
 * group is gone. What was delivered of them is pending. They are asked for it until all of it is done, beside the others, which go on.
 */
import { createPause } from "#core/platform/process/pause.ts";
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

export function followBehind({ redis, outage, catchUp, onBack }: BehindDeps): Behind {
  /** With how often each was added: what fails during a round needs another one. */
  const keys = new Map<string, number>();
  const pause = createPause();
  let isGone = false;
  let stopping = false;
  let running: Promise<void> | null = null;

  /** @returns how long to wait before the next round */
  function note(error: unknown, begunAtMs: number): number {
    if (!isReplyError(error, "NOGROUP")) return outage.failed(error, begunAtMs);
    isGone = true;
    return GONE_WAIT_MS;
  }

  async function tryOne(key: string): Promise<unknown[]> {
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

  async function run(firstWaitMs: number): Promise<void> {
    let waitMs = firstWaitMs;
    while (keys.size > 0) {
      await pause.wait(waitMs);
      if (stopping) break;
      if (isGone) await ensureGroups(redis).catch(() => {});
      isGone = false;
      const begunAtMs = performance.now();
      const errors = (await Promise.all([...keys.keys()].map(tryOne))).flat();
      // They have one reason in common, as a rule; one of them counts.
      waitMs = errors.length === 0 ? 0 : note(errors[0], begunAtMs);
    }
    running = null;
  }

  return {
    has: (key) => keys.has(key),
    isEmpty: () => keys.size === 0,
    add(key, error, begunAtMs) {
      // Another process takes over what is pending.
      if (stopping) return;
      keys.set(key, (keys.get(key) ?? 0) + 1);
      running ??= run(note(error, begunAtMs));
    },
    async stop() {
      stopping = true;
      pause.wake();
      await running;
    },
  };
}

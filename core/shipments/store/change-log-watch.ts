/** Backpressure of the change log: whoever reads it late, ClickHouse above all, makes ingest wait and loses nothing. */

import { readWaiting } from "#core/platform/log/streams.ts";
import type { Redis } from "#core/platform/redis/client.ts";

/** The log is looked at this often and not with every message: it cannot grow by much in between. */
const LOOK_EVERY_MS = 500;

export interface ChangeLogWatch {
  /** Whether so many changes or more wait in the change log, as of half a second ago at most; while it cannot be read, as it was. */
  readonly isFull: () => Promise<boolean>;
  /** The same without a wait, as of the last look; a new one begins, for the next time. Null = there was none yet. */
  readonly wasFull: () => boolean | null;
}

/** @param highWater changes that may wait */
export function watchChangeLog(redis: Redis, highWater: number): ChangeLogWatch {
  let known: boolean | null = null;
  let lookAtMs = 0;
  let looking: Promise<boolean> = Promise.resolve(false);
  async function look(): Promise<boolean> {
    try {
      known = (await readWaiting(redis, "change")) >= highWater;
    } catch {
      // Part of the store is away: what needs it fails by itself, and the rest goes on.
    }
    return known ?? false;
  }
  function isFull(): Promise<boolean> {
    if (performance.now() < lookAtMs) return looking;
    lookAtMs = performance.now() + LOOK_EVERY_MS;
    looking = look();
    return looking;
  }
  return {
    isFull,
    wasFull() {
      void isFull();
      return known;
    },
  };
}

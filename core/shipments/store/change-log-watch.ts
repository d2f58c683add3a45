/** Backpressure of the change log: whoever reads it late, ClickHouse above all, makes ingest wait and loses nothing. */

import { readWaiting } from "#core/platform/log/streams.ts";
import type { Redis } from "#core/platform/redis/client.ts";

/** The log is looked at this often and not with every message: it cannot grow by much in between. */
const LOOK_EVERY_MS = 500;

/** @returns whether `highWater` changes or more wait in the change log, as of half a second ago at most */
export function watchChangeLog(redis: Redis, highWater: number): () => Promise<boolean> {
  let isFull = false;
  let lookAtMs = 0;
  return async () => {
    if (performance.now() < lookAtMs) return isFull;
    lookAtMs = performance.now() + LOOK_EVERY_MS;
    isFull = (await readWaiting(redis, "change")) >= highWater;
    return isFull;
  };
}

/**
 * Deletes parked events whose 7 days are over: nothing is kept then (document 2, "States and transitions"). One whose
 * shipment's first event was accepted in time is still released to it, so nothing is deleted before what was accepted until
 * then has been processed: while no processors are running, or while they are behind, these 7 days stand still.
 */

import type { Live } from "#core/configuration/store/live.ts";
import { expireParked } from "#core/events/store/parked.ts";
import { readOldestOpen } from "#core/platform/log/streams.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";

export interface ExpiryDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
}

/** They are no longer released from the moment they expire; this is how long they may still be stored. */
const EVERY_MS = 60_000;
/**
 * Longer than ingest takes from receiving a message to appending its events, and than the clocks of the machines differ: what was
 * received that long ago is in the log.
 */
const APPENDED_AFTER_MS = 60_000;

/** A moment, on the service clock and on the real one, which the logs are read by. */
interface Moment {
  readonly serviceMs: number;
  readonly realMs: number;
}

export function startParkedExpiry(deps: ExpiryDeps): Ticking {
  const { redis, live, log } = deps;
  let awaited: Moment | null = null;
  return startTickingThroughOutages(log, "parked-expiry", EVERY_MS, async () => {
    await live.refresh();
    // Under load something is always on its way: a moment that has not been reached yet is looked at again with the next tick.
    if (awaited !== null && (await isProcessed(redis, awaited))) {
      await expireParked(redis, awaited.serviceMs - APPENDED_AFTER_MS);
      awaited = null;
    }
    if (awaited !== null) return;
    const now = { serviceMs: live.now(), realMs: Date.now() };
    if (await isProcessed(redis, now)) await expireParked(redis, now.serviceMs - APPENDED_AFTER_MS);
    else awaited = now;
  });
}

/** Whether all that was appended until then has been applied, and what was created until then can be found by its events. */
async function isProcessed(redis: Redis, { realMs }: Moment): Promise<boolean> {
  const oldest = await Promise.all([
    readOldestOpen(redis, "event", "track"),
    readOldestOpen(redis, "change", "references"),
  ]);
  return oldest.every((openMs) => openMs === null || openMs > realMs);
}

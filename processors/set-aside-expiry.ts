/** Deletes set-aside events whose 7 days are over: nothing is kept then (document 2, "States and transitions"). */
import type { Log } from "#core/log.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { startTickingThroughOutages } from "#core/redis/client/outage.ts";
import type { Live } from "#core/redis/config/live.ts";
import { expireParked } from "#core/redis/intake/parked.ts";
import type { Ticking } from "#core/tick.ts";

export interface ExpiryDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
}

/** They are no longer released from the moment they expire; this is how long they may still be stored. */
const EVERY_MS = 60_000;

export function startSetAsideExpiry({ redis, live, log }: ExpiryDeps): Ticking {
  return startTickingThroughOutages(log, "set-aside-expiry", EVERY_MS, async () => {
    await live.refresh();
    await expireParked(redis, live.now());
  });
}

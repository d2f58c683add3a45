/** Has the embedded Redis rewrite its append-only file after erasures. A server of one's own is its operator's affair. */
import type { Log } from "#core/log.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { openFileRewrites } from "#core/redis/client/file-rewrite.ts";
import { startTickingThroughOutages } from "#core/redis/client/outage.ts";
import type { Live } from "#core/redis/config/live.ts";
import type { Ticking } from "#core/tick.ts";

const EVERY_MS = 10_000;

export interface FileRewriteDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
}

export function startFileRewrites({ redis, live, log }: FileRewriteDeps): Ticking {
  const look = openFileRewrites(redis);
  return startTickingThroughOutages(log, "append-only file", EVERY_MS, async () => {
    await live.followTestClock();
    await look(live.now());
  });
}

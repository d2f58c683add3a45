/** Has the embedded Redis rewrite its append-only file after erasures. A server of one's own is its operator's affair. */

import type { Live } from "#core/configuration/store/live.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { openFileRewrites } from "#core/platform/redis/embedded/file-rewrite.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";

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

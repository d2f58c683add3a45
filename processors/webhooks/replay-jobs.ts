/**
 * Moves the replays of whole windows forward, paced: what a merchant missed comes back beside what happens now, not
 * before it.
 *
 * | limit                                    | value | at the limit                                 |
 * |------------------------------------------|-------|----------------------------------------------|
 * | deliveries queued by a replay per second | 50    | the rest follows in the next second          |
 * | first attempts waiting at the endpoint   | 100   | the replay waits until the queue has emptied |
 */

import type { Live } from "#core/configuration/store/live.ts";
import type { Log } from "#core/platform/process/log.ts";
import { internalErrors } from "#core/platform/process/metrics.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import {
  isShardUnavailable,
  unlessShardUnavailable,
} from "#core/platform/redis/unavailable-shard.ts";
import { readQueueDepths } from "#core/webhooks/store/attempt-stats.ts";
import {
  type Replay,
  runningReplays,
  stepReplay,
  stopReplay,
} from "#core/webhooks/store/deliveries/replays.ts";

const PER_STEP = 50;
const STEP_MS = 1_000;
const QUEUED_LIMIT = 100;
const TICK_MS = 1_000;

export interface ReplayDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
}

export function startReplayJobs(deps: ReplayDeps): Ticking {
  return startTickingThroughOutages(deps.log, "replays", TICK_MS, () => stepAll(deps));
}

async function stepAll(deps: ReplayDeps): Promise<void> {
  const ignore = unlessShardUnavailable(deps.redis);
  const replays = await Promise.all(
    partitionsOf("k").map((n) => runningReplays(deps.redis, n).catch(ignore)),
  );
  for (const replay of replays.flatMap((own) => own ?? [])) {
    try {
      await step(deps, replay);
    } catch (error) {
      // Those of the other partitions go on.
      if (isShardUnavailable(error, deps.redis)) continue;
      if (isStoreUnavailable(error, deps.redis)) throw error;
      // It holds up no other replay, and goes on with the next tick.
      internalErrors.inc({ part: "replays" });
      deps.log.error({ err: error, replay: replay.replayId }, "replay retrying");
    }
  }
}

async function step({ redis, live, log }: ReplayDeps, replay: Replay): Promise<void> {
  // The pace is one of real time: a moved test clock makes no burst.
  const realMs = Date.now();
  if (replay.nextAtMs > realMs) return;
  const { endpoints } = await live.refresh();
  const { replayId: id, endpointId, partition } = replay;
  if (!endpoints.get(endpointId)?.active) {
    log.info({ replay: id }, "replay stopped: its endpoint is disabled");
    return stopReplay(redis, replay);
  }
  const { queued } = await readQueueDepths(redis, partition, endpointId);
  if (queued < QUEUED_LIMIT)
    await stepReplay(redis, replay, PER_STEP, realMs + STEP_MS, live.now());
}

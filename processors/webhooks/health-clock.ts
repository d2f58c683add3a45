/**
 * The clocks of failing endpoints (document 3, "Endpoint"): timers, so they need no traffic. They stand in Redis, so a
 * restart stops none; every process may run them, since each step does nothing the second time. What waits for an endpoint
 * that is off, or for webhooks v1 of a channel that has v2, fails with the next tick. They stand still while no processors
 * are running: nothing is delivered then.
 *
 * | since the first failure, without success | what happens                                            |
 * |------------------------------------------|---------------------------------------------------------|
 * | 24 hours                                 | first alert                                             |
 * | 3 days                                   | disabled, second alert, waiting deliveries fail         |
 */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Live } from "#core/configuration/store/live.ts";
import { createRunningTime, type RunningTime } from "#core/platform/log/running-time.ts";
import type { Log } from "#core/platform/process/log.ts";
import { webhookAlerts } from "#core/platform/process/metrics.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyPartition } from "#core/platform/redis/keys.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { V2_TOOK_OVER, v1EndpointId } from "#core/webhooks/rules/webhook-v1.ts";
import { drainQueues } from "#core/webhooks/store/deliveries/deliveries.ts";
import {
  DISABLED_REASON,
  endpointPartition,
  type FailingEndpoint,
  type FailingVerdict,
  raiseAlerts,
  readFailing,
  switchOffFailing,
} from "#core/webhooks/store/endpoints.ts";

const HOUR_MS = 3_600_000;
/** Document 3, "Limits". */
const WARN_AFTER_MS = 24 * HOUR_MS;
const DISABLE_AFTER_MS = 3 * 24 * HOUR_MS;
const TICK_MS = 2_000;

export interface HealthDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
}

export function startHealthClock(deps: HealthDeps): Ticking {
  const running = createRunningTime(deps.redis);
  const ticking = startTickingThroughOutages(deps.log, "webhook health", TICK_MS, () =>
    checkHealth(deps, running),
  );
  return {
    async stop() {
      await ticking.stop();
      await deps.live.followTestClock().catch(() => {});
      await running.end(deps.live.now());
    },
  };
}

/** One look at every clock; repeating it changes nothing. */
export async function checkHealth(
  { redis, live, log }: HealthDeps,
  running: RunningTime,
): Promise<void> {
  const configuration = await live.refresh();
  const nowMs = live.now();
  const failing = await readFailing(redis, nowMs - WARN_AFTER_MS);
  // Only after all partitions have answered: what waits in one that is unavailable is not delivered.
  const runningMs = await running.note(nowMs);
  const verdicts = failing.flatMap((one) =>
    verdictsOf(one, configuration, runningMs(one.sinceMs, nowMs)),
  );
  for (const verdict of verdicts) {
    // Before its alert: if this process dies in between, the next tick finds the clock still running and goes on.
    if (verdict.kind === "disabled") await switchOffFailing(redis, verdict, nowMs);
  }
  const alerts = verdicts.length > 0 ? await raiseAlerts(redis, verdicts, nowMs) : 0;
  webhookAlerts.inc(alerts);
  // An endpoint stays among the verdicts until it recovers; only what is new is worth a line.
  const endpoints = verdicts.map(({ endpointId }) => endpointId);
  if (alerts > 0) log.warn({ endpoints, alerts }, "webhook endpoints are failing");
  await drainDisabled(redis, await live.refresh());
  await drainReplacedV1(redis, await live.refresh());
}

/**
 * An endpoint that is past both thresholds at once gets both alerts.
 * @param forMs how long it has been failing while processors were running
 */
function verdictsOf(
  failing: FailingEndpoint,
  { endpoints }: Configuration,
  forMs: number,
): FailingVerdict[] {
  const endpoint = endpoints.get(failing.endpointId);
  const warning: FailingVerdict = { ...failing, kind: "warning" };
  if (!endpoint) return [{ ...failing, kind: "gone" }];
  if (forMs >= DISABLE_AFTER_MS) return [warning, { ...failing, kind: "disabled" }];
  if (!endpoint.active) return [{ ...failing, kind: "forget" }];
  return forMs >= WARN_AFTER_MS ? [warning] : [];
}

/** Fails what waits for endpoints that are off, whoever switched them and wherever that was interrupted. */
async function drainDisabled(redis: Redis, configuration: Configuration): Promise<void> {
  const off = [...configuration.endpoints.values()].filter(({ active }) => !active);
  const groups = Map.groupBy(off, ({ id }) => endpointPartition(configuration, id));
  for (const [partition, endpoints] of groups) {
    if (partition === null) continue;
    const ids = endpoints.map(({ id }) => id);
    await drainQueues(redis, partition, ids, DISABLED_REASON);
  }
}

/** Document 3, "Versioning": v2 stops v1, also what was waiting for a retry. */
async function drainReplacedV1(redis: Redis, { channels }: Configuration): Promise<void> {
  const replaced = [...channels.values()].filter(
    ({ webhookV1, endpoints }) => webhookV1 && endpoints.length > 0,
  );
  const groups = Map.groupBy(replaced, ({ companyId }) => companyPartition(companyId));
  for (const [partition, own] of groups) {
    const ids = own.map(({ id }) => v1EndpointId(id));
    await drainQueues(redis, partition, ids, V2_TOOK_OVER);
  }
}

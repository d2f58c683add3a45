/** Switching webhook endpoints off and on, and the clocks of failing ones (document 3, "Endpoint"). */
import { perPartition, type Redis, run, script } from "./client.ts";
import type { Configuration } from "./configuration.ts";
import { drainLanes } from "./deliveries.ts";
import { allEntities, bumpVersion, saveEntity } from "./entities.ts";
import { companyPartition, PARTITIONS, webhookKeys } from "./keys.ts";
import alertSource from "./scripts/alert.lua" with { type: "text" };

const alertScript = script(alertSource);

export const DISABLED_REASON = "endpoint disabled";

/** The partition of an endpoint's company; null when the endpoint or its channel is gone. */
export function endpointPartition(configuration: Configuration, endpointId: string): number | null {
  const endpoint = configuration.endpoints.get(endpointId);
  const channel = endpoint && configuration.channels.get(endpoint.channelId);
  return channel ? companyPartition(channel.companyId) : null;
}

/** Manual switch-off: waiting deliveries fail and stay replayable, no events while it lasts, no alert. */
export async function disableEndpoint(
  redis: Redis,
  configuration: Configuration,
  endpointId: string,
): Promise<void> {
  await clearFailing(redis, configuration, endpointId);
  await setActive(redis, endpointId, false);
  await failWaiting(redis, configuration, endpointId);
}

/** Reactivation: clean, without a flood of old events. */
export async function enableEndpoint(
  redis: Redis,
  configuration: Configuration,
  endpointId: string,
): Promise<void> {
  await failWaiting(redis, configuration, endpointId);
  await clearFailing(redis, configuration, endpointId);
  await setActive(redis, endpointId, true);
}

/** Replaces the entity and tells every process; repeating it changes nothing. */
export async function setActive(redis: Redis, endpointId: string, active: boolean): Promise<void> {
  const endpoints = await allEntities(redis, "endpoint");
  const before = endpoints.find(({ id }) => id === endpointId);
  if (!before || before.active === active) return;
  const { previousSecret } = before;
  await saveEntity(redis, "endpoint", endpointId, {
    ...before,
    previousSecret: previousSecret ?? "",
    active,
  });
  await bumpVersion(redis);
}

async function failWaiting(
  redis: Redis,
  configuration: Configuration,
  endpointId: string,
): Promise<void> {
  const partition = endpointPartition(configuration, endpointId);
  if (partition !== null) await drainLanes(redis, partition, [endpointId], DISABLED_REASON);
}

/** The endpoint counts as healthy: a test event succeeded, or it was switched. */
export async function clearFailing(
  redis: Redis,
  configuration: Configuration,
  endpointId: string,
): Promise<void> {
  const partition = endpointPartition(configuration, endpointId);
  if (partition === null) return;
  const { failing, warned } = webhookKeys(partition);
  await redis.multi().zRem(failing, endpointId).sRem(warned, endpointId).exec();
}

export interface FailingEndpoint {
  readonly partition: number;
  readonly endpointId: string;
  /** First failure since the last success, UTC milliseconds. */
  readonly sinceMs: number;
}

/** Endpoints whose first failure was at `untilMs` or before. */
export async function readFailing(redis: Redis, untilMs: number): Promise<FailingEndpoint[]> {
  const partitions = Array.from({ length: PARTITIONS }, (_, n) => n);
  const found = await Promise.all(
    partitions.map((n) =>
      redis.zRangeWithScores(webhookKeys(n).failing, "-inf", untilMs, { BY: "SCORE" }),
    ),
  );
  return found.flatMap((rows, partition) =>
    rows.map(({ value, score }) => ({ partition, endpointId: String(value), sinceMs: score })),
  );
}

/** `forget` stops the clock of an endpoint that was switched off by hand. */
export interface FailingVerdict extends FailingEndpoint {
  readonly kind: "warning" | "disabled" | "forget";
}

/** Puts alerts into the outbox, each exactly once. @returns how many */
export async function raiseAlerts(
  redis: Redis,
  verdicts: readonly FailingVerdict[],
  nowMs: number,
): Promise<number> {
  const groups = Map.groupBy(verdicts, ({ partition }) => partition);
  const counts = await perPartition(groups, (partition, group) => {
    const { failing, warned, alerts } = webhookKeys(partition);
    const args = group.flatMap(({ endpointId, sinceMs, kind }) => [
      endpointId,
      String(sinceMs),
      kind,
    ]);
    return run<number>(redis, alertScript, [failing, warned, alerts], [String(nowMs), ...args]);
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

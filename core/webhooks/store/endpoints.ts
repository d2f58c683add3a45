/**
 * Webhook endpoints: made, changed, switched and deleted, and the clocks of failing ones (document 3, "Endpoint").
 * Every write reads, changes and saves under the setup lock, so that no two of them undo each other.
 */

import type { Disabled, EndpointEntity } from "#core/configuration/rules/entities.ts";
import { refuseStale } from "#core/configuration/store/change-context.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import {
  earlierTargetsAfter,
  hasPreviousSecret,
  rotatedSecret,
} from "#core/configuration/store/endpoint-entity.ts";
import {
  allEntities,
  bumpVersion,
  readEntity,
  removeEntity,
  saveEntity,
} from "#core/configuration/store/entities.ts";
import { expectSetupLock, underSetupLock } from "#core/configuration/store/setup-lock.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { perPartition, type Redis, run, script } from "#core/platform/redis/client.ts";
import {
  companyPartition,
  DELETED_WEBHOOKS_KEY,
  FAILING_FROM,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { type Missing, orMissing } from "#core/platform/redis/unavailable-shard.ts";
import { ENDPOINTS_PER_CHANNEL } from "#core/setup/rules/setup.ts";
import { drainQueues, ITEMS_PER_CALL } from "#core/webhooks/store/deliveries/deliveries.ts";
import alertSource from "./alert.lua" with { type: "text" };
import clearFailingSource from "./clear-failing.lua" with { type: "text" };
import { forgetVerified } from "./verified-endpoints.ts";

const alertScript = script(alertSource);
const clearFailingScript = script(clearFailingSource);

export const DISABLED_REASON = "endpoint disabled";
export const DELETED_REASON = "endpoint deleted";

/** @returns false when the channel has its five endpoints already, disabled ones included */
export function createEndpoint(redis: Redis, endpoint: EndpointEntity): Promise<boolean> {
  return underSetupLock(redis, async () => {
    const own = (await allEntities(redis, "endpoint")).filter(
      ({ channelId }) => channelId === endpoint.channelId,
    );
    if (own.length >= ENDPOINTS_PER_CHANNEL) return false;
    await saveEntity(redis, "endpoint", endpoint.id, endpoint);
    await bumpVersion(redis);
    return true;
  });
}

export type EndpointChange = Partial<Omit<EndpointEntity, "id" | "channelId" | "code">>;

/** Changes what is named. @returns false when there is no such endpoint */
export function changeEndpoint(
  redis: Redis,
  endpointId: string,
  changeOf: (before: EndpointEntity) => EndpointChange,
): Promise<boolean> {
  return underSetupLock(redis, async () => {
    const before = await readEntity(redis, "endpoint", endpointId);
    if (!before) return false;
    const after = { ...before, ...changeOf(before) };
    const earlierTargets = earlierTargetsAfter(before, after);
    const changed = { ...after, earlierTargets };
    const { isWritten } = await saveEntity(redis, "endpoint", endpointId, changed);
    if (isWritten) await bumpVersion(redis);
    return true;
  });
}

export interface Rotation {
  /** The new secret, sealed. */
  readonly sealed: string;
  /** The sealed secret that the caller replaces: of several rotations that begin together only one takes place. */
  readonly replaces: string;
  /** Ends a secret of an earlier rotation that still signs. */
  readonly revokePrevious: boolean;
  readonly nowMs: number;
}

/** `overlapping`: the secret of an earlier rotation still signs; `replaced`: somebody else has rotated in the meantime. */
export type RotationOutcome = "rotated" | "overlapping" | "replaced" | "gone";

/** The new secret signs at once; the one before it signs for 24 hours more (document 3, "Signature rules" 5). */
export async function rotateEndpointSecret(
  redis: Redis,
  endpointId: string,
  { sealed, replaces, revokePrevious, nowMs }: Rotation,
): Promise<RotationOutcome> {
  let outcome: RotationOutcome = "rotated";
  const found = await changeEndpoint(redis, endpointId, (before) => {
    if (before.secret !== replaces) outcome = "replaced";
    else if (!revokePrevious && hasPreviousSecret(before, nowMs)) outcome = "overlapping";
    return outcome === "rotated" ? rotatedSecret(before.secret, sealed, nowMs) : {};
  });
  return found ? outcome : "gone";
}

/** What waits for it fails; the setup file does not bring it back while its entry stays the same. */
export async function deleteEndpoint(
  redis: Redis,
  configuration: Configuration,
  endpointId: string,
): Promise<boolean> {
  const deleted = await underSetupLock(redis, async () => {
    const before = await readEntity(redis, "endpoint", endpointId);
    refuseStale(before);
    if (!before) return false;
    const { channelId, code, fileEntry } = before;
    await expectSetupLock();
    if (fileEntry) await redis.hSet(DELETED_WEBHOOKS_KEY, `${channelId}:${code}`, fileEntry);
    await removeEntity(redis, "endpoint", endpointId);
    await bumpVersion(redis);
    return true;
  });
  if (deleted) {
    await clearFailing(redis, configuration, endpointId, null);
    await forgetVerified(redis, endpointId);
    await failWaiting(redis, configuration, endpointId, DELETED_REASON);
    const partition = endpointPartition(configuration, endpointId);
    if (partition !== null) await forgetAlerted(redis, partition, endpointId);
  }
  return deleted;
}

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
  nowMs: number,
): Promise<void> {
  await clearFailing(redis, configuration, endpointId, null);
  await switchOff(redis, endpointId, { reason: "manual", sinceMs: nowMs, failingSinceMs: null });
  await failWaiting(redis, configuration, endpointId, DISABLED_REASON);
}

/** Reactivation: clean, without a flood of old events. */
export async function enableEndpoint(
  redis: Redis,
  configuration: Configuration,
  endpointId: string,
): Promise<void> {
  await failWaiting(redis, configuration, endpointId, DISABLED_REASON);
  await clearFailing(redis, configuration, endpointId, null);
  await switchOn(redis, endpointId);
}

/** Repeating it changes nothing. */
export async function switchOn(redis: Redis, endpointId: string): Promise<void> {
  await changeEndpoint(redis, endpointId, () => ({ active: true, disabled: null }));
}

/** Disables an endpoint, unless it has succeeded, or begun to fail again, since its clock was read. */
export async function switchOffFailing(
  redis: Redis,
  { partition, endpointId, sinceMs }: FailingEndpoint,
  nowMs: number,
): Promise<void> {
  const stillSinceMs = await redis.zScore(webhookKeys(partition).failing, endpointId);
  if (stillSinceMs !== sinceMs) return;
  const disabled = { reason: "failing", sinceMs: nowMs, failingSinceMs: sinceMs } as const;
  await switchOff(redis, endpointId, disabled);
}

/** An endpoint that is off already stays off for its first reason. */
export async function switchOff(
  redis: Redis,
  endpointId: string,
  disabled: Disabled,
): Promise<void> {
  await changeEndpoint(redis, endpointId, ({ active }) =>
    active ? { active: false, disabled } : {},
  );
}

async function failWaiting(
  redis: Redis,
  configuration: Configuration,
  endpointId: string,
  reason: string,
): Promise<void> {
  const partition = endpointPartition(configuration, endpointId);
  if (partition !== null) await drainQueues(redis, partition, [endpointId], reason);
}

/**
 * The endpoint counts as healthy: a test event succeeded, or it was switched.
 * @param succeededAtMs when it succeeded, which follows an alert up with one that it works again; null = it was switched
 */
export async function clearFailing(
  redis: Redis,
  configuration: Configuration,
  endpointId: string,
  succeededAtMs: number | null,
): Promise<void> {
  const partition = endpointPartition(configuration, endpointId);
  if (partition === null) return;
  const keys = webhookKeys(partition);
  const { failing, warned, firstRing, retryRing, lastFailures, alerted, alerts } = keys;
  await run(
    redis,
    clearFailingScript,
    [
      ...[failing, warned, firstRing, retryRing, lastFailures, alerted, alerts],
      ...[keys.pauses, keys.concurrencies, keys.rates],
    ],
    [endpointId, String(FAILING_FROM), succeededAtMs === null ? "" : String(succeededAtMs)],
  );
}

/** An endpoint that is gone will not work again. */
export async function forgetAlerted(
  redis: Redis,
  partition: number,
  endpointId: string,
): Promise<void> {
  await redis.hDel(webhookKeys(partition).alerted, endpointId);
}

export interface FailingEndpoint {
  readonly partition: number;
  readonly endpointId: string;
  /** First failure since the last success, UTC milliseconds. */
  readonly sinceMs: number;
}

/** The first failure since the last success, UTC milliseconds; null when the endpoint is healthy. */
export async function failingSince(
  redis: Redis,
  configuration: Configuration,
  endpointId: string,
): Promise<number | null> {
  const partition = endpointPartition(configuration, endpointId);
  if (partition === null) return null;
  return redis.zScore(webhookKeys(partition).failing, endpointId);
}

/** Endpoints whose first failure was at `untilMs` or before. */
export async function readFailing(
  redis: Redis,
  untilMs: number,
  missing?: Missing,
): Promise<FailingEndpoint[]> {
  const found = await Promise.all(
    partitionsOf("k").map((n) => {
      const { failing } = webhookKeys(n);
      const reading = redis.zRangeWithScores(failing, "-inf", untilMs, { BY: "SCORE" });
      return reading.catch(orMissing(redis, missing, failing, []));
    }),
  );
  return found.flatMap((rows, partition) =>
    rows.map(({ value, score }) => ({ partition, endpointId: String(value), sinceMs: score })),
  );
}

/** `forget` stops the clock of an endpoint that is off, `gone` that of one that does not exist. */
export interface FailingVerdict extends FailingEndpoint {
  readonly kind: "warning" | "disabled" | "forget" | "gone";
}

/** Puts alerts into the outbox, each exactly once. @returns how many */
export async function raiseAlerts(
  redis: Redis,
  verdicts: readonly FailingVerdict[],
  nowMs: number,
): Promise<number> {
  const groups = Map.groupBy(verdicts, ({ partition }) => partition);
  let put = 0;
  await perPartition(groups, async (partition, group) => {
    const { failing, warned, alerts, alerted, lastFailures } = webhookKeys(partition);
    for (const part of chunks(group, ITEMS_PER_CALL)) {
      const args = part.flatMap((one) => [one.endpointId, String(one.sinceMs), one.kind]);
      put += await run<number>(
        redis,
        alertScript,
        [failing, warned, alerts, alerted, lastFailures],
        [String(nowMs), ...args],
      );
    }
  });
  return put;
}

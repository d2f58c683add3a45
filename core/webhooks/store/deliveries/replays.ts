/**
 * Replays (document 3, "Delivery"): single deliveries that have ended at once, the failed ones of a window paced, as a job that
 * stands in the store. A step of a job queues its deliveries and moves its cursor in one script call, so that neither a
 * crash nor a second process repeats one.
 */

import { randomBytes } from "node:crypto";
import { chunks } from "#core/platform/process/chunks.ts";
import { perPartition, type Redis, run, script } from "#core/platform/redis/client.ts";
import { FAILING_FROM, webhookKeys } from "#core/platform/redis/keys.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  DELIVERY_LIFE_MS,
  type Delivery,
  deliveryPartition,
  ITEMS_PER_CALL,
  readDeliveries,
} from "./deliveries.ts";
import replaySource from "./replay.lua" with { type: "text" };

const replayScript = script(replaySource);

/**
 * All eight attempts of a replayed delivery, even of one replayed on its last day: `Retry-After` may stretch seven waits to 12
 * hours each, and as much again is left for outages and internal errors.
 */
const REPLAYED_LIFE_MS = limit(
  7 * 86_400_000,
  "life of a replayed delivery from its replay",
  "gone, and counted as failed if it still waits",
);
/** Deliveries looked at for one step, beside those of the millisecond in which the step before ended. */
const PAGE = 200;
/** Replays of windows under way in a partition; further ones are refused. */
const REPLAYS_PER_PARTITION = 100;
export const REPLAYS_LISTED = limit(
  20,
  "replays of windows that an endpoint is listed with",
  "the oldest are no longer listed",
);

/**
 * Queues failed and delivered deliveries as new: same event id, next generation, attempts from 1. Those created 30 days ago or
 * more are left out, replayed before or not (document 3, "Limits").
 * @returns those queued
 */
export async function replayDeliveries(
  redis: Redis,
  deliveryIds: readonly string[],
  nowMs: number,
): Promise<string[]> {
  const known = (await readDeliveries(redis, deliveryIds, nowMs)).filter(
    ({ createdAtMs }) => nowMs - createdAtMs < DELIVERY_LIFE_MS,
  );
  const queued: string[] = [];
  const groups = Map.groupBy(known, ({ deliveryId }) => deliveryPartition(deliveryId) ?? 0);
  await perPartition(groups, async (partition, group) => {
    for (const part of chunks(group, ITEMS_PER_CALL)) {
      const items = part.map((one) => ({ ...one, servedOnce: false }));
      const reply = await callReplay(redis, partition, items, null, nowMs);
      queued.push(...part.flatMap(({ deliveryId }, at) => (reply[at] === 1 ? deliveryId : [])));
    }
  });
  if (queued.length > 0) announce(redis, "webhooks");
  return queued;
}

interface ReplayItem extends Pick<Delivery, "deliveryId" | "endpointId" | "shipmentId"> {
  /** The replay sends only one delivery of its shipment. */
  readonly servedOnce: boolean;
}

interface ReplayStep {
  readonly replayId: string;
  readonly at: string;
  readonly after: string;
  readonly isLast: boolean;
}

/** @returns the reply of `replay.lua` */
function callReplay(
  redis: Redis,
  partition: number,
  items: readonly ReplayItem[],
  step: ReplayStep | null,
  nowMs: number,
): Promise<number[]> {
  const keys = webhookKeys(partition);
  const { firstRing, turns, failing, ledger, replays } = keys;
  const window = step && [keys.replay(step.replayId), replays, keys.replayed(step.replayId)];
  const perItem = items.flatMap(({ deliveryId, endpointId, shipmentId }) => [
    ...[keys.delivery(deliveryId), keys.queue(endpointId), keys.failed(endpointId)],
    ...[keys.late(endpointId), keys.verdicts(shipmentId)],
  ]);
  const numbers = [REPLAYED_LIFE_MS, FAILING_FROM, nowMs, DELIVERY_LIFE_MS].map(String);
  const cursor = step ? [step.at, step.after, step.isLast ? step.replayId : ""] : ["", "", ""];
  return run<number[]>(
    redis,
    replayScript,
    [firstRing, turns, failing, ledger, ...(window ?? []), ...perItem],
    [
      ...numbers,
      ...cursor,
      ...items.flatMap(({ deliveryId, endpointId, shipmentId, servedOnce }) => [
        ...[deliveryId, endpointId, servedOnce ? String(shipmentId) : ""],
      ]),
    ],
  );
}

/** `latest_per_shipment`: of each shipment only the newest failed delivery, which carries the shipment as it is now. */
export type ReplayMode = "each" | "latest_per_shipment";

export interface ReplayWindow {
  readonly endpointId: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly mode: ReplayMode;
  readonly startedAtMs: number;
}

export interface Replay extends ReplayWindow {
  readonly replayId: string;
  readonly partition: number;
  readonly state: "running" | "done" | "stopped";
  readonly queued: number;
  /** Not failed any more, or the shipment had its delivery. */
  readonly passedOver: number;
  /** Those among them of a shipment that had its delivery. */
  readonly older: number;
  /** Where it stands. */
  readonly at: string;
  /** Not before this instant, UTC milliseconds. */
  readonly nextAtMs: number;
}

/** @returns its id, or null when too many are under way */
export async function startReplay(
  redis: Redis,
  partition: number,
  window: ReplayWindow,
): Promise<string | null> {
  const keys = webhookKeys(partition);
  if ((await redis.sCard(keys.replays)) >= REPLAYS_PER_PARTITION) return null;
  const replayId = `rpl_${partition.toString(16).padStart(2, "0")}${randomBytes(12).toString("hex")}`;
  const latest = keys.replaysOf(window.endpointId);
  const fields = { window: JSON.stringify(window), state: "running", queued: "0", passedOver: "0" };
  await redis
    .multi()
    .hSet(keys.replay(replayId), { ...fields, at: cursorText(null, 0) })
    .pExpire(keys.replay(replayId), DELIVERY_LIFE_MS)
    .sAdd(keys.replays, replayId)
    .zAdd(latest, { score: window.startedAtMs, value: replayId })
    .zRemRangeByRank(latest, 0, -REPLAYS_LISTED - 1)
    .pExpire(latest, DELIVERY_LIFE_MS)
    .exec();
  return replayId;
}

/** The latest replays of windows of an endpoint, the newest first. */
export async function latestReplays(
  redis: Redis,
  partition: number,
  endpointId: string,
): Promise<Replay[]> {
  const key = webhookKeys(partition).replaysOf(endpointId);
  const ids = await redis.zRange(key, 0, REPLAYS_LISTED - 1, { REV: true });
  const found = await Promise.all(ids.map((id) => readReplay(redis, id)));
  return found.filter((one) => one !== null);
}

/** Null when there is none of this id, or when it was 30 days ago. */
export async function readReplay(redis: Redis, replayId: string): Promise<Replay | null> {
  const digits = /^rpl_([0-9a-f]{2})[0-9a-f]{24}$/.exec(replayId)?.[1];
  if (digits === undefined) return null;
  const partition = Number.parseInt(digits, 16);
  const row = await redis.hGetAll(webhookKeys(partition).replay(replayId));
  const { window, state, queued, passedOver, older = 0, at } = row;
  if (!window || !at) return null;
  return {
    ...(JSON.parse(window) as ReplayWindow),
    replayId,
    partition,
    state: state as Replay["state"],
    queued: Number(queued),
    passedOver: Number(passedOver),
    older: Number(older),
    at,
    nextAtMs: readCursor(at).nextAtMs,
  };
}

/** Replays of a partition that are not done. */
export async function runningReplays(redis: Redis, partition: number): Promise<Replay[]> {
  const { replays } = webhookKeys(partition);
  const running: Replay[] = [];
  for (const id of await redis.sMembers(replays)) {
    const replay = await readReplay(redis, id);
    if (replay?.state === "running") running.push(replay);
    else await redis.sRem(replays, id);
  }
  return running;
}

/** Ends a replay before its time: by hand, or since its endpoint is off or gone. What it has queued stays queued. */
export async function stopReplay(redis: Redis, { partition, replayId }: Replay): Promise<void> {
  const keys = webhookKeys(partition);
  await redis
    .multi()
    .hSet(keys.replay(replayId), "state", "stopped")
    .sRem(keys.replays, replayId)
    .del(keys.replayed(replayId))
    .exec();
}

export interface ReplayCount {
  readonly deliveries: number;
  /** Of the newest `COUNT_READ` deliveries. */
  readonly shipments: number;
  readonly isComplete: boolean;
}

const COUNT_READ = limit(
  5_000,
  "failed deliveries that are read to count the shipments of a replay before it begins",
  "the answer says so",
);

/** What a replay of the window would find now. */
export async function countReplay(
  redis: Redis,
  partition: number,
  { endpointId, fromMs, toMs }: Pick<ReplayWindow, "endpointId" | "fromMs" | "toMs">,
  nowMs: number,
): Promise<ReplayCount> {
  const key = webhookKeys(partition).failed(endpointId);
  const oldestMs = Math.max(fromMs, nowMs - DELIVERY_LIFE_MS + 1);
  const newest = { BY: "SCORE", REV: true, LIMIT: { offset: 0, count: COUNT_READ } } as const;
  const [deliveries, ids] = await Promise.all([
    redis.zCount(key, oldestMs, toMs),
    redis.zRange(key, toMs, oldestMs, newest),
  ]);
  const shipments = new Set<number>();
  for (const part of chunks(ids.map(String), ITEMS_PER_CALL)) {
    for (const one of await readDeliveries(redis, part, nowMs)) shipments.add(one.shipmentId);
  }
  return { deliveries, shipments: shipments.size, isComplete: deliveries <= COUNT_READ };
}

/**
 * Queues the next deliveries of a replay, at most `count`.
 * @param nextAtMs when the step after this one may come, UTC milliseconds
 * @returns how many were queued
 */
export async function stepReplay(
  redis: Redis,
  replay: Replay,
  count: number,
  nextAtMs: number,
  nowMs: number,
): Promise<number> {
  const { partition, replayId, mode } = replay;
  const candidates = await nextCandidates(redis, replay, nowMs);
  const taken = candidates.slice(0, count);
  const ids = taken.map(({ id }) => id);
  const items = (await readDeliveries(redis, ids, nowMs))
    .filter((one) => one.endpointId === replay.endpointId)
    .map((one) => ({ ...one, servedOnce: mode === "latest_per_shipment" }));
  const reply = await callReplay(
    redis,
    partition,
    items,
    {
      replayId,
      at: replay.at,
      after: cursorText(taken.at(-1) ?? readCursor(replay.at).last, nextAtMs),
      isLast: taken.length === candidates.length,
    },
    nowMs,
  );
  const queued = reply.filter((one) => one === 1).length;
  if (queued > 0) announce(redis, "webhooks");
  return queued;
}

interface Row {
  readonly id: string;
  readonly createdAtMs: number;
}

interface ReplayCursor {
  /** The last delivery that was looked at; null at the beginning. */
  readonly last: Row | null;
  readonly nextAtMs: number;
}

function cursorText(last: Row | null, nextAtMs: number): string {
  return JSON.stringify([last?.createdAtMs ?? null, last?.id ?? null, nextAtMs]);
}

function readCursor(text: string): ReplayCursor {
  const [createdAtMs, id, nextAtMs] = JSON.parse(text);
  return { last: id === null ? null : { id, createdAtMs }, nextAtMs };
}

/** Failed deliveries behind the cursor: oldest first, or newest first where each shipment has only its newest. */
async function nextCandidates(
  redis: Redis,
  { partition, endpointId, mode, at, fromMs, toMs }: Replay,
  nowMs: number,
): Promise<Row[]> {
  const isNewestFirst = mode === "latest_per_shipment";
  const { last } = readCursor(at);
  const oldestMs = Math.max(fromMs, nowMs - DELIVERY_LIFE_MS + 1);
  const lower = isNewestFirst ? oldestMs : Math.max(oldestMs, last?.createdAtMs ?? oldestMs);
  const upper = isNewestFirst ? Math.min(toMs, last?.createdAtMs ?? toMs) : toMs;
  const key = webhookKeys(partition).failed(endpointId);
  const ties = last === null ? 0 : await redis.zCount(key, last.createdAtMs, last.createdAtMs);
  const limit = { BY: "SCORE", LIMIT: { offset: 0, count: PAGE + ties } } as const;
  const rows = isNewestFirst
    ? await redis.zRangeWithScores(key, upper, lower, { ...limit, REV: true })
    : await redis.zRangeWithScores(key, lower, upper, limit);
  return rows
    .map(({ value, score }) => ({ id: String(value), createdAtMs: score }))
    .filter(({ id, createdAtMs }) => {
      if (last === null || createdAtMs !== last.createdAtMs) return true;
      // Of one millisecond Redis gives members in byte order, which is that of these hexadecimal ids.
      return isNewestFirst ? id < last.id : id > last.id;
    });
}

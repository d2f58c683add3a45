/**
 * Webhook decisions and deliveries, in the company's partition (document 3, "Delivery").
 *
 * A delivery belongs to one endpoint and one event id; a replay makes its next generation. Each endpoint has two queues:
 * first attempts in the order of their creation and retries by due time. `leases.ts` hands deliveries out,
 * `finish-deliveries.ts` records what came of them. Deliveries and decisions live 30 days.
 */

import { compareIds } from "#core/platform/log/log-entry.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { perPart, type Redis, run, script } from "#core/platform/redis/client.ts";
import { digestOf } from "#core/platform/redis/digest.ts";
import {
  FAILING_FROM,
  SYSTEM_KEY,
  shipmentPartition,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { partitionCount } from "#core/platform/redis/partitions.ts";
import { runTogether } from "#core/platform/redis/run-together.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { ChangeFact } from "#core/shipments/store/change-log.ts";
import type { Trigger, Verdict } from "#core/webhooks/rules/trigger.ts";
import { type Attempt, readAttempts } from "./attempts.ts";
import decideSource from "./decide.lua" with { type: "text" };
import decideCurrentSource from "./decide-current.lua" with { type: "text" };
import drainSource from "./drain.lua" with { type: "text" };
import { type FreshDelivery, passFreshDeliveries } from "./fresh-deliveries.ts";
import readQueuesSource from "./read-queues.lua" with { type: "text" };

const decideScript = script(decideSource);
const decideCurrentScript = scriptOfParts(decideCurrentSource, { decide: decideSource });
const drainScript = script(drainSource);
const readQueuesScript = script(readQueuesSource);

/** Document 3, "Limits": replay window; deliveries and decisions go by themselves after it, unless replayed at its end. */
export const DELIVERY_LIFE_MS = limit(
  30 * 86_400_000,
  "for how long deliveries and webhook decisions are kept",
  "deleted",
);
/** Decisions kept per shipment; further changes are sent like any other, without a trace. */
const DECISIONS_PER_SHIPMENT = limit(
  1_000,
  "recorded webhook decisions of a shipment",
  "later ones are sent and leave no trace",
);
/** Deliveries waiting in the queues of one endpoint; further ones fail at once and stay replayable. */
const QUEUE_LIMIT = limit(1_000_000, "deliveries waiting per endpoint", "failed, replayable");
/** Changes, results or ids one script call takes: keeps a call under about 5 ms of Redis. */
export const ITEMS_PER_CALL = limit(
  100,
  "endpoints of a ring that a round of leasing names, healthy and failing each",
  "the next round",
);
const DRAINED_PER_CALL = 500;
/** Redis time for one change. */
const DECISION_US = 12;

export type DeliveryState = "queued" | "waiting" | "delivered" | "failed";

/** What never changes after the decision. */
export interface FrozenDelivery {
  readonly endpointId: string;
  readonly eventId: string;
  readonly shipmentId: number;
  readonly channelId: number;
  readonly trigger: Trigger;
  readonly fact: ChangeFact;
  readonly createdAtMs: number;
}

export interface Delivery extends FrozenDelivery {
  readonly deliveryId: string;
  readonly generation: number;
  readonly state: DeliveryState;
  /** Attempts made in this generation. */
  readonly attemptsMade: number;
  readonly attempts: readonly Attempt[];
  readonly nextAttemptAtMs: number | null;
  /** Why it failed; null otherwise. */
  readonly reason: string | null;
}

/** One id for all endpoints of the channel and for every repetition: the position of the change in its log. */
export function eventIdOf(logKey: string, entryId: string): string {
  return `evt_${idOf(logKey, entryId)}`;
}

/** Tells the partition, so that the id alone finds the delivery. */
export function deliveryIdOf(partition: number, endpointId: string, eventId: string): string {
  return `dlv_${partition.toString(16).padStart(2, "0")}${idOf(endpointId, eventId)}`;
}

function idOf(one: string, other: string): string {
  return digestOf(`${one}\0${other}`).toString("hex", 0, 16);
}

/** Null when the text is no delivery id. */
export function deliveryPartition(deliveryId: string): number | null {
  const digits = /^dlv_([0-9a-f]{2})[0-9a-f]{32}$/.exec(deliveryId)?.[1];
  const partition = Number.parseInt(digits ?? "ff", 16);
  return partition < partitionCount("k") ? partition : null;
}

/** What was decided about one change, for every endpoint of its channel. */
export interface Decision {
  readonly shipmentId: number;
  readonly channelId: number;
  readonly eventId: string;
  /** Id of the change in its log. */
  readonly entryId: string;
  readonly fact: ChangeFact;
  readonly verdicts: ReadonlyArray<{
    readonly endpointId: string;
    readonly trigger: Trigger;
    readonly verdict: Verdict;
  }>;
}

/**
 * Records decisions and queues their deliveries: one script call a partition (and 100 changes).
 * @param queueLimit deliveries waiting in the queues of one endpoint
 * @returns those that had not been made before
 */
export async function recordDecisions(
  redis: Redis,
  decisions: readonly Decision[],
  nowMs: number,
  queueLimit = QUEUE_LIMIT,
): Promise<Decision[]> {
  return (await recordAll(redis, decisions, nowMs, queueLimit, null)).made;
}

export interface RecordedDecisions {
  readonly made: readonly Decision[];
  /** The configuration is a newer one: those not made are left, and the caller decides again. */
  readonly isStale: boolean;
}

/**
 * The same on one server, where the configuration is still the one that was decided by.
 * @param version of that configuration
 */
export function recordCurrentDecisions(
  redis: Redis,
  version: number,
  decisions: readonly Decision[],
  nowMs: number,
): Promise<RecordedDecisions> {
  return recordAll(redis, decisions, nowMs, QUEUE_LIMIT, version);
}

/** @param version null = whatever the configuration is now */
async function recordAll(
  redis: Redis,
  decisions: readonly Decision[],
  nowMs: number,
  queueLimit: number,
  version: number | null,
) {
  const made: Decision[] = [];
  let isStale = false;
  const fresh: FreshDelivery[] = [];
  const groups = Map.groupBy(decisions, ({ shipmentId }) => shipmentPartition(shipmentId));
  const limits = [nowMs, DELIVERY_LIFE_MS, DECISIONS_PER_SHIPMENT, queueLimit].map(String);
  const cut = (group: readonly Decision[]) => chunks(group, ITEMS_PER_CALL);
  const decide = version === null ? decideScript : decideCurrentScript;
  await perPart(groups, cut, async (partition, part) => {
    const { keys, endpointIds, changes, texts, sends } = decideArguments(partition, part, nowMs);
    const lists = [packList(endpointIds), packList(changes)];
    const args = [...limits, "lane full", String(FAILING_FROM), ...lists, ...texts];
    const costUs = part.length * DECISION_US;
    if (version !== null) {
      keys.push(SYSTEM_KEY);
      args.push(String(version));
    }
    const reply = await runTogether<(number | "stale")[]>(redis, decide, keys, args, costUs);
    if (reply[0] === "stale") {
      isStale = true;
      return;
    }
    made.push(...part.filter((_, at) => reply[at] !== -1));
    fresh.push(...sends.flatMap((one, at) => (Number(reply[at]) > 0 ? one : [])));
  });
  if (fresh.length > 0) {
    passFreshDeliveries(redis, fresh);
    announce(redis, "webhooks");
  }
  return { made, isStale };
}

/** The arguments KEYS, ARGV[7], ARGV[8] and those from ARGV[9] on of `decide.lua`, and the deliveries of each change. */
function decideArguments(partition: number, decisions: readonly Decision[], nowMs: number) {
  const keys = webhookKeys(partition);
  const { firstRing, turns, failing, ledger, queue, retries, log, failed } = keys;
  const endpointIndices = new Map<string, string>();
  const endpointKeys: string[] = [];
  const changeKeys: string[] = [];
  const changes: string[] = [];
  const texts: string[] = [];
  const sends: FreshDelivery[][] = [];
  for (const { shipmentId, channelId, eventId, entryId, fact, verdicts } of decisions) {
    const rows: string[] = [];
    const pairs: string[] = [];
    const frozen: string[] = [];
    const own: FreshDelivery[] = [];
    let factText: string | null = null;
    changeKeys.push(keys.verdicts(shipmentId));
    for (const { endpointId, trigger, verdict } of verdicts) {
      pairs.push(`["${endpointId}","${verdict}"]`);
      rows.push(verdict);
      if (verdict !== "send") continue;
      let endpointIndex = endpointIndices.get(endpointId);
      if (endpointIndex === undefined) {
        endpointIndex = String(endpointIndices.size + 1);
        endpointIndices.set(endpointId, endpointIndex);
        const lists = [queue, retries, log, failed].map((keyOf) => keyOf(endpointId));
        endpointKeys.push(...lists);
      }
      const deliveryId = deliveryIdOf(partition, endpointId, eventId);
      changeKeys.push(keys.delivery(deliveryId));
      rows.push(deliveryId, endpointIndex);
      own.push({ partition, endpointId, deliveryId, shipmentId });
      factText ??= JSON.stringify(fact);
      frozen.push(
        `${endpointId} ${eventId} ${shipmentId} ${channelId} ${trigger} ${nowMs}\n${factText}`,
      );
    }
    const kept = `["${entryId}",${nowMs},${JSON.stringify(fact.key)},[${pairs.join(",")}]]`;
    texts.push(kept, ...frozen);
    changes.push(eventId, String(verdicts.length), ...rows);
    sends.push(own);
  }
  return {
    keys: [firstRing, turns, failing, ledger, ...endpointKeys, ...changeKeys],
    endpointIds: [...endpointIndices.keys()],
    changes,
    texts,
    sends,
  };
}

export interface KeptDecision {
  readonly eventId: string;
  readonly atMs: number;
  /** Key of the fact in the shipment's history. */
  readonly factKey: string;
  readonly verdicts: ReadonlyArray<readonly [endpointId: string, verdict: Verdict]>;
}

/** Every decision about a shipment of the last 30 days, in the order of its changes. */
export async function readDecisions(redis: Redis, shipmentId: number): Promise<KeptDecision[]> {
  const keys = webhookKeys(shipmentPartition(shipmentId));
  const rows = await redis.hGetAll(keys.verdicts(shipmentId));
  return decisionsOf(Object.entries(rows).flat());
}

/** @param rows alternating event ids and decisions, as stored */
export function decisionsOf(rows: readonly string[]): KeptDecision[] {
  const kept = chunks(rows, 2).map(([eventId = "", text = "[]"]) => {
    const [entryId, atMs, factKey, verdicts] = JSON.parse(text);
    return { entryId, decision: { eventId, atMs, factKey, verdicts } };
  });
  kept.sort((one, other) => compareIds(one.entryId, other.entryId));
  return kept.map(({ decision }) => decision);
}

/** What a delivery is but for its fact, as `decideArguments` has written it. */
export function readWords(text: string): Omit<FrozenDelivery, "fact"> {
  const [endpointId = "", eventId = "", shipmentId, channelId, trigger, createdAtMs] =
    text.split(" ");
  return {
    endpointId,
    eventId,
    trigger: trigger as Trigger,
    shipmentId: Number(shipmentId),
    channelId: Number(channelId),
    createdAtMs: Number(createdAtMs),
  };
}

/** A delivery as it is stored: its words on the first line, its fact on the second. */
function readFrozen(stored: string): FrozenDelivery {
  const [words = "", fact = ""] = stored.split("\n", 2);
  return { ...readWords(words), fact: JSON.parse(fact) };
}

/**
 * Fails everything that waits for these endpoints in one partition.
 * @returns how many deliveries
 */
export async function drainQueues(
  redis: Redis,
  partition: number,
  endpointIds: readonly string[],
  reason: string,
): Promise<number> {
  let total = 0;
  let left = [...endpointIds];
  while (left.length > 0) {
    const waiting: string[] = [];
    for (const part of chunks(left, ITEMS_PER_CALL)) {
      for (const [endpointId, ...heads] of await readHeads(redis, partition, part)) {
        waiting.push(endpointId);
        total += await drainHeads(redis, partition, endpointId, heads, reason);
      }
    }
    left = waiting;
  }
  return total;
}

type Heads = readonly [firsts: readonly string[], retries: readonly string[]];

/** Endpoints with waiting deliveries, and the deliveries at the heads of their queues: 500 in all. */
async function readHeads(
  redis: Redis,
  partition: number,
  endpointIds: readonly string[],
): Promise<[endpointId: string, ...Heads][]> {
  const { queue, retries } = webhookKeys(partition);
  const keys = endpointIds.flatMap((id) => [queue(id), retries(id)]);
  const lists = await run<string[][]>(redis, readQueuesScript, keys, [String(DRAINED_PER_CALL)]);
  return endpointIds.flatMap((id, at) => {
    const [firsts = [], due = []] = lists.slice(2 * at, 2 * at + 2);
    return firsts.length + due.length === 0 ? [] : [[id, firsts, due]];
  });
}

function drainHeads(
  redis: Redis,
  partition: number,
  endpointId: string,
  [firsts, due]: Heads,
  reason: string,
): Promise<number> {
  const keys = webhookKeys(partition);
  const ids = [...firsts, ...due];
  const own = [keys.queue, keys.retries, keys.log, keys.failed].map((keyOf) => keyOf(endpointId));
  return run(
    redis,
    drainScript,
    [keys.firstRing, keys.retryRing, keys.ledger, ...own, ...ids.map(keys.delivery)],
    [endpointId, reason, String(firsts.length), ...ids],
  );
}

/** Every delivery among the ids that is not older than 30 days, or was replayed at their end, in their order. */
export async function readDeliveries(
  redis: Redis,
  deliveryIds: readonly string[],
  nowMs: number,
): Promise<Delivery[]> {
  const known = deliveryIds.filter((id) => deliveryPartition(id) !== null);
  const rows = await Promise.all(
    known.map((id) => redis.hGetAll(webhookKeys(deliveryPartition(id) ?? 0).delivery(id))),
  );
  return rows.flatMap((row, at) => {
    const { i, g, s, n, a, d, r, u } = row;
    if (!i || !s) return [];
    const frozen = readFrozen(i);
    if (nowMs >= Math.max(frozen.createdAtMs + DELIVERY_LIFE_MS, Number(u ?? 0))) return [];
    return [
      {
        ...frozen,
        deliveryId: known[at] ?? "",
        generation: Number(g ?? 1),
        state: s as DeliveryState,
        attemptsMade: Number(n ?? 0),
        attempts: readAttempts(a ?? "[]"),
        nextAttemptAtMs: d ? Number(d) : null,
        reason: r || null,
      },
    ];
  });
}

/**
 * Webhook decisions and deliveries, in the company's partition (document 3, "Delivery").
 *
 * A delivery belongs to one endpoint and one event id; a replay makes its next generation. Each endpoint has two lanes:
 * first attempts in the order of their creation and retries by due time. A lease hands a delivery to one process for
 * a while; if that process dies the lease ends and the delivery is sent again. Deliveries and decisions live 30 days.
 */
import { chunks } from "#core/chunks.ts";
import { attemptErrorOf } from "#core/domain/attempt-row.ts";
import { bucketOf } from "#core/domain/latency-buckets.ts";
import type { Trigger, Verdict } from "#core/domain/trigger.ts";
import { ATTEMPTS_WAITING, encodeAttempt } from "./attempt-log.ts";
import type { ChangeFact } from "./change-log.ts";
import { binary, perPartition, type Redis, run, runTogether, script } from "./client.ts";
import { digestOf } from "./digest.ts";
import {
  companyTag,
  PARTITIONS,
  shipmentPartition,
  WEBHOOK_BELL_KEY,
  webhookKeys,
} from "./keys.ts";
import { compareIds } from "./log-entry.ts";
import { packList } from "./packed-list.ts";
import decideSource from "./scripts/decide.lua" with { type: "text" };
import drainSource from "./scripts/drain.lua" with { type: "text" };
import finishSource from "./scripts/finish.lua" with { type: "text" };
import leaseSource from "./scripts/lease.lua" with { type: "text" };
import renewSource from "./scripts/renew.lua" with { type: "text" };
import { type StoredShipment, storedShipment } from "./shipments.ts";

const decideScript = script(decideSource);
const drainScript = script(drainSource);
const finishScript = script(finishSource);
const leaseScript = script(leaseSource);
const renewScript = script(renewSource);

/** Document 3, "Limits": replay window; deliveries and decisions go by themselves after it. */
export const DELIVERY_LIFE_MS = 30 * 86_400_000;
/** Decisions kept per shipment; further changes are sent like any other, without a trace. */
const DECISIONS_PER_SHIPMENT = 1_000;
/** Deliveries waiting in the lanes of one endpoint; further ones fail at once and stay replayable. */
const LANE_LIMIT = 1_000_000;
const HOUR_MS = 3_600_000;
/** Attempts kept of one delivery, newest last: eight of each generation. */
const GENERATIONS_KEPT = 5;
const ATTEMPTS_KEPT = 8 * GENERATIONS_KEPT;
/** Changes, results or ids one script call takes: keeps a call under some 5 ms of Redis. */
export const ITEMS_PER_CALL = 100;
const DRAINED_PER_CALL = 500;
/** Of Redis, for one of each. */
const DECISION_US = 12;
const LEASE_US = 12;
const FINISH_US = 9;

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

export interface Attempt {
  readonly generation: number;
  /** From 1 in each generation. */
  readonly attempt: number;
  readonly atMs: number;
  /** Null when no answer came. */
  readonly httpStatus: number | null;
  readonly durationMs: number;
  readonly error: string | null;
  readonly responseSnippet: string | null;
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

/** One id for all endpoints of the channel and for every repetition: the place of the change in its log. */
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
  return partition < PARTITIONS ? partition : null;
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
 * @returns those that had not been made before
 */
export async function recordDecisions(
  redis: Redis,
  decisions: readonly Decision[],
  nowMs: number,
): Promise<Decision[]> {
  const made: Decision[] = [];
  let queued = 0;
  const groups = Map.groupBy(decisions, ({ shipmentId }) => shipmentPartition(shipmentId));
  await perPartition(groups, async (partition, group) => {
    const { firstRing, turns, ledger } = webhookKeys(partition);
    const limits = [DELIVERY_LIFE_MS, DECISIONS_PER_SHIPMENT, LANE_LIMIT].map(String);
    const head = [companyTag(partition), String(nowMs), ...limits, "lane full"];
    for (const part of chunks(group, ITEMS_PER_CALL)) {
      const changes = packList(part.flatMap((decision) => changeOf(partition, decision, nowMs)));
      const keys = [firstRing, turns, ledger];
      const args = [...head, changes];
      const costUs = part.length * DECISION_US;
      const reply = await runTogether<number[]>(redis, decideScript, keys, args, costUs);
      made.push(...part.filter((_, at) => reply[at] !== -1));
      queued += reply.filter((deliveries) => deliveries > 0).length;
    }
  });
  if (queued > 0) await ringBell(redis);
  return made;
}

/** See ARGV[7] of `decide.lua`. */
function changeOf(partition: number, decision: Decision, nowMs: number): string[] {
  const { shipmentId, channelId, eventId, entryId, fact, verdicts } = decision;
  const rows: string[] = [];
  const pairs: string[] = [];
  let sent = 0;
  for (const { endpointId, trigger, verdict } of verdicts) {
    pairs.push(`["${endpointId}","${verdict}"]`);
    rows.push(verdict);
    if (verdict !== "send") continue;
    rows.push(deliveryIdOf(partition, endpointId, eventId), endpointId, trigger);
    sent += 1;
  }
  const kept = `["${entryId}",${nowMs},${JSON.stringify(fact.key)},[${pairs.join(",")}]]`;
  const told = sent === 0 ? "" : JSON.stringify(fact);
  const count = String(verdicts.length);
  return [String(shipmentId), eventId, kept, String(channelId), told, count, ...rows];
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

/** @param rows event ids and decisions in turn, as stored */
export function decisionsOf(rows: readonly string[]): KeptDecision[] {
  const kept = chunks(rows, 2).map(([eventId = "", text = "[]"]) => {
    const [entryId, atMs, factKey, verdicts] = JSON.parse(text);
    return { entryId, decision: { eventId, atMs, factKey, verdicts } };
  });
  kept.sort((one, other) => compareIds(one.entryId, other.entryId));
  return kept.map(({ decision }) => decision);
}

/** A delivery handed out for one attempt. */
export interface Leased extends Omit<FrozenDelivery, "fact"> {
  readonly partition: number;
  readonly deliveryId: string;
  readonly lease: string;
  readonly generation: number;
  readonly attemptsMade: number;
  /** JSON, as stored: read only where it grows too long. */
  readonly attemptsText: string;
  /** The endpoint has not succeeded since its first failure. */
  readonly failing: boolean;
  /** Read once for all deliveries of its event that were leased together. */
  readonly fact: () => ChangeFact;
  /** As it was when the delivery was leased, unpacked once for all deliveries that share it; null = it is gone. */
  readonly shipment: () => StoredShipment | null;
}

export interface LeaseTerms {
  readonly leaseMs: number;
  readonly perEndpoint: number;
  readonly perFailingEndpoint: number;
  /** Retries may be handed out too. */
  readonly retries: boolean;
}

/** How many deliveries a partition may hand out, and how many of them to failing endpoints. */
export interface Share {
  readonly partition: number;
  readonly wanted: number;
  readonly wantedFailing: number;
}

export interface Handout {
  readonly leased: readonly Leased[];
  /** Partitions that had more first attempts to give. */
  readonly more: ReadonlySet<number>;
}

/** Asks every partition for its share, all in one pipeline; their shipments come with them. */
export async function leaseDeliveries(
  redis: Redis,
  shares: readonly Share[],
  terms: LeaseTerms,
  nowMs: number,
): Promise<Handout> {
  const more = new Set<number>();
  const perShare = await Promise.all(
    shares.map(async ({ partition, wanted, wantedFailing }) => {
      const keys = webhookKeys(partition);
      const { firstRing, retryRing, leases, inFlight, turns, failing, ledger } = keys;
      const numbers = [terms.leaseMs, wanted, wantedFailing, terms.perEndpoint];
      const [left, shipments, rows] = await runTogether<[Buffer, (Buffer | null)[], Buffer]>(
        redis,
        leaseScript,
        [firstRing, retryRing, leases, inFlight, turns, failing, ledger],
        [
          companyTag(partition),
          ...[nowMs, ...numbers, terms.perFailingEndpoint].map(String),
          terms.retries ? "1" : "0",
        ],
        wanted * LEASE_US,
        binary(redis),
      );
      if (String(left) === "1") more.add(partition);
      return rows.length === 0 ? [] : readHandout(partition, shipments, String(rows).split("\n"));
    }),
  );
  return { leased: perShare.flat(), more };
}

const LINES = 9;

/** See the reply in `lease.lua`. */
function readHandout(
  partition: number,
  shipments: readonly (Buffer | null)[],
  lines: readonly string[],
): Leased[] {
  const shared: Leased["shipment"][] = [];
  for (let at = 0; at < shipments.length; at += 4) {
    const [id, ...row] = shipments.slice(at, at + 4);
    shared.push(once(() => storedShipment(Number(String(id)), row)));
  }
  const facts = new Map<string, Leased["fact"]>();
  const leased: Leased[] = [];
  for (let at = 0; at < lines.length; at += LINES) {
    const text = (line: number) => lines[at + line] ?? "";
    const words = readWords(text(6));
    const told = text(7);
    if (told !== "")
      facts.set(
        words.eventId,
        once((): ChangeFact => JSON.parse(told)),
      );
    const fact = facts.get(words.eventId) ?? missingFact;
    leased.push({
      ...words,
      ...{ partition, deliveryId: text(0), lease: text(1), fact, attemptsText: text(8) },
      generation: Number(text(2)),
      attemptsMade: Number(text(3)),
      failing: text(4) === "1",
      shipment: shared[Number(text(5)) - 1] ?? (() => null),
    });
  }
  return leased;
}

/** Thrown when it is asked for: one delivery like this keeps no other from being sent. */
function missingFact(): never {
  throw new Error("a delivery is leased without its fact");
}

/** What a delivery is but for its fact, as `decide.lua` has written it. */
function readWords(text: string): Omit<FrozenDelivery, "fact"> {
  const [endpointId = "", eventId = "", shipmentId, channelId, trigger, createdAtMs] =
    text.split(" ");
  return {
    ...{ endpointId, eventId, trigger: trigger as Trigger },
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

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Lengthens the leases of what is still under way: one script call a partition (and 100 deliveries). */
export async function renewLeases(
  redis: Redis,
  underWay: readonly Leased[],
  leaseMs: number,
): Promise<void> {
  const groups = Map.groupBy(underWay, ({ partition }) => partition);
  await perPartition(groups, async (partition, group) => {
    const { leases } = webhookKeys(partition);
    for (const part of chunks(group, ITEMS_PER_CALL)) {
      const members = part.map((one) => `${one.endpointId} ${one.deliveryId} ${one.lease}`);
      await run(redis, renewScript, [leases], [String(leaseMs), ...members]);
    }
  });
}

/** What came of a leased delivery. `attempt` is null when nothing was sent. */
export interface Finished {
  readonly of: Leased;
  readonly attempt: Attempt | null;
  /** An error of ours kept the attempt from being made: the delivery's log tells of it, and it counts nowhere. */
  readonly isOwnFault?: true;
  readonly state: Exclude<DeliveryState, "queued">;
  readonly nextAttemptAtMs: number | null;
  readonly reason: string | null;
}

/**
 * Records results, one script call a partition (and 100 results). A lease that has ended records nothing.
 * @param attemptsWaiting attempts that may wait for the analytics in a partition
 */
export async function finishDeliveries(
  redis: Redis,
  results: readonly Finished[],
  nowMs: number,
  attemptsWaiting = ATTEMPTS_WAITING,
): Promise<void> {
  const groups = Map.groupBy(results, ({ of }) => of.partition);
  await perPartition(groups, async (partition, group) => {
    const keys = webhookKeys(partition);
    const { firstRing, retryRing, leases, inFlight, turns, failing, warned, ledger } = keys;
    const { attemptLog, attemptCounts } = keys;
    for (const part of chunks(group, ITEMS_PER_CALL)) {
      await runTogether(
        redis,
        finishScript,
        [
          ...[firstRing, retryRing, leases, inFlight, turns, failing, warned, ledger],
          ...[attemptLog, attemptCounts],
        ],
        [
          companyTag(partition),
          ...[nowMs, hourOf(nowMs), DELIVERY_LIFE_MS / 1000, attemptsWaiting].map(String),
          packList(endpointArguments(part)),
        ],
        part.length * FINISH_US,
      );
    }
  });
}

/** Hours since 1970: what attempts are counted by. */
export function hourOf(atMs: number): number {
  return Math.floor(atMs / HOUR_MS);
}

/** Grouped by endpoint: what an endpoint's lanes and health need is done once for all of its results. */
function endpointArguments(results: readonly Finished[]): string[] {
  const args: string[] = [];
  for (const [endpointId, group] of Map.groupBy(results, ({ of }) => of.endpointId)) {
    args.push(endpointId, String(group.length));
    for (const result of group) args.push(...finishArguments(result));
  }
  return args;
}

function finishArguments(result: Finished): string[] {
  const { of, attempt, isOwnFault, state, nextAttemptAtMs, reason } = result;
  const counted = isOwnFault ? null : attempt;
  return [
    of.deliveryId,
    of.lease,
    state,
    String(counted?.attempt ?? of.attemptsMade),
    attempt === null ? of.attemptsText : attemptsText(result, attempt),
    nextAttemptAtMs === null ? "" : String(nextAttemptAtMs),
    reason ?? "",
    counted === null ? "" : bucketOf(counted.durationMs),
    counted === null ? "" : attemptLine(result, counted),
  ];
}

/** Those before and the new one, the oldest left out where they may grow too many. */
function attemptsText({ of, isOwnFault }: Finished, attempt: Attempt): string {
  const { attemptsText: before, generation } = of;
  const text = attemptText(attempt);
  if (before === "[]") return `[${text}]`;
  if (generation <= GENERATIONS_KEPT && !isOwnFault) return `${before.slice(0, -1)},${text}]`;
  return JSON.stringify([...JSON.parse(before), attempt].slice(-ATTEMPTS_KEPT));
}

/** As `JSON.stringify` writes it, at a fifth of its cost: all but two members are numbers. */
function attemptText(one: Attempt): string {
  const { error, responseSnippet } = one;
  return (
    `{"generation":${one.generation},"attempt":${one.attempt},"atMs":${one.atMs}` +
    `,"httpStatus":${one.httpStatus},"durationMs":${one.durationMs}` +
    `,"error":${error === null ? null : JSON.stringify(error)}` +
    `,"responseSnippet":${responseSnippet === null ? null : JSON.stringify(responseSnippet)}}`
  );
}

const OUTCOMES = { delivered: "DELIVERED", waiting: "WAITING", failed: "FAILED" } as const;

function attemptLine({ of, state }: Finished, attempt: Attempt): string {
  return encodeAttempt({
    deliveryId: of.deliveryId,
    endpointId: of.endpointId,
    channelId: of.channelId,
    eventId: of.eventId,
    generation: attempt.generation,
    attempt: attempt.attempt,
    atMs: attempt.atMs,
    httpStatus: attempt.httpStatus,
    error: attemptErrorOf(attempt.error),
    latencyMs: attempt.durationMs,
    outcome: OUTCOMES[state],
  });
}

/** Fails everything that waits for these endpoints of one partition. @returns how many deliveries */
export async function drainLanes(
  redis: Redis,
  partition: number,
  endpointIds: readonly string[],
  reason: string,
): Promise<number> {
  if (endpointIds.length === 0) return 0;
  const { firstRing, retryRing, ledger } = webhookKeys(partition);
  const args = [companyTag(partition), String(DRAINED_PER_CALL), reason, ...endpointIds];
  let total = 0;
  for (;;) {
    const failed = await run<number>(redis, drainScript, [firstRing, retryRing, ledger], args);
    total += failed;
    if (failed < DRAINED_PER_CALL) return total;
  }
}

/** Only hurries idle senders: they look at every partition now and then without it too. */
export async function ringBell(redis: Redis): Promise<void> {
  await redis.incr(WEBHOOK_BELL_KEY);
}

export function readBell(redis: Redis): Promise<string | null> {
  return redis.get(WEBHOOK_BELL_KEY);
}

/** Every delivery among the ids that is not older than 30 days, in their order. */
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
    const { i, g, s, n, a, d, r } = row;
    if (!i || !s) return [];
    const frozen = readFrozen(i);
    if (nowMs - frozen.createdAtMs >= DELIVERY_LIFE_MS) return [];
    return [
      {
        ...frozen,
        deliveryId: known[at] ?? "",
        generation: Number(g ?? 1),
        state: s as DeliveryState,
        attemptsMade: Number(n ?? 0),
        attempts: JSON.parse(a ?? "[]"),
        nextAttemptAtMs: d ? Number(d) : null,
        reason: r || null,
      },
    ];
  });
}

/**
 * The ledger (invariant 10), kept by the scripts in the same step as the effect, read as sums over all partitions.
 *
 * | line                                                  | moved by                                      |
 * |-------------------------------------------------------|-----------------------------------------------|
 * | received = accepted + duplicate + unknown + invalid   | `claim.lua`; `countRefused`                   |
 * | routed = applied + waiting + discarded                | `commit.lua`; the event log, its dead letters |
 * | decided = sent + not sent, by reason                  | `decide.lua`                                  |
 * | sent = delivered + failed + pending                   | `finish.lua`, `drain.lua`, `replay.lua`; queues |
 *
 * `routed` counts an accepted event once for each shipment that it goes to. What was parked and applied later is
 * `released`, also once for each shipment: it was answered UNKNOWN_TRACKING and is no part of accepted.
 * `difference` tells what does not add up: zero at rest. The parts are not read at one instant, so what the counters moved while
 * they were read is allowed for: under load a small difference shows only in a quieter moment.
 */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import { DISCARDED_FIELD } from "#core/platform/log/dead-letters.ts";
import { readWaiting } from "#core/platform/log/streams.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import {
  AUDIT_LOG,
  attemptLogs,
  changeLogs,
  companyKeys,
  deadLetterKey,
  eventKeys,
  eventLogs,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { type Missing, orMissing } from "#core/platform/redis/unavailable-shard.ts";
import type { Verdict } from "#core/webhooks/rules/trigger.ts";
import { VERDICTS } from "#core/webhooks/rules/trigger.ts";
import { endpointPartition } from "#core/webhooks/store/endpoints.ts";
import countPendingSource from "./count-pending.lua" with { type: "text" };

const countPendingScript = script(countPendingSource);

const OUTCOMES = ["received", "accepted", "duplicate", "unknown", "invalid"] as const;
type Outcomes = Readonly<Record<(typeof OUTCOMES)[number], number>>;

export interface CourierLedger extends Outcomes {
  readonly courier: string;
}

/** What counters alone tell. */
export interface Ledger extends Outcomes {
  /** Accepted events, once for each shipment that they go to. */
  readonly routed: number;
  /** Those that are part of their shipment. */
  readonly applied: number;
  /** Dead letters among routed events that an operator has discarded. */
  readonly discarded: number;
  /** Parked events that are part of their shipment. */
  readonly released: number;
  /** Webhook decisions to send, and others by reason. */
  readonly sent: number;
  readonly notSent: Readonly<Partial<Record<Exclude<Verdict, "send">, number>>>;
  readonly delivered: number;
  readonly failed: number;
  readonly couriers: readonly CourierLedger[];
}

/** The ledger and what is under way, and whether it adds up. */
export interface Balance extends Ledger {
  /** Routed events in the event log, or among its dead letters. */
  readonly waiting: number;
  /** Deliveries in the queues of the endpoints, or handed out. */
  readonly pending: number;
  readonly difference: {
    readonly received: number;
    readonly applied: number;
    readonly webhooks: number;
  };
}

const REASONS = VERDICTS.filter((verdict) => verdict !== "send");

/** @param missing unavailable partitions are noted there and left out */
export async function readLedger(redis: Redis, missing?: Missing): Promise<Ledger> {
  const read = (key: string) =>
    redis.hGetAll(key).catch(orMissing<Record<string, string>>(redis, missing, key, {}));
  const [events, companies] = await Promise.all([
    Promise.all(partitionsOf("e").map((n) => read(eventKeys(n).ledger))),
    Promise.all(partitionsOf("k").map((n) => read(companyKeys(n).ledger))),
  ]);
  const sum = (field: string) =>
    companies.reduce((total, hash) => total + Number(hash[field] ?? 0), 0);
  const couriers = readCouriers(events);
  const outcome = (name: keyof Outcomes) =>
    couriers.reduce((total, courier) => total + courier[name], 0);
  return {
    received: outcome("received"),
    accepted: outcome("accepted"),
    duplicate: outcome("duplicate"),
    unknown: outcome("unknown"),
    invalid: outcome("invalid"),
    routed: outcome("accepted") + sumOfFurther(events),
    applied: sum("applied"),
    discarded: events.reduce((total, hash) => total + Number(hash[DISCARDED_FIELD] ?? 0), 0),
    released: sum("released"),
    sent: sum("webhook:send"),
    notSent: Object.fromEntries(REASONS.map((reason) => [reason, sum(`webhook:${reason}`)])),
    delivered: sum("webhook:delivered"),
    failed: sum("webhook:failed"),
    couriers,
  };
}

/** Shipments after the first that accepted events go to: what is ordinary costs no counter. */
function sumOfFurther(hashes: ReadonlyArray<Readonly<Record<string, string>>>): number {
  return hashes
    .flatMap((hash) => Object.entries(hash))
    .filter(([field]) => field.startsWith("further:"))
    .reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Fields are `<outcome>:<courier>`. */
function readCouriers(hashes: ReadonlyArray<Readonly<Record<string, string>>>): CourierLedger[] {
  const couriers = new Map<string, Record<(typeof OUTCOMES)[number], number>>();
  for (const [field, count] of hashes.flatMap((hash) => Object.entries(hash))) {
    const at = field.indexOf(":");
    const name = OUTCOMES.find((one) => one === field.slice(0, at));
    if (name === undefined) continue;
    const courier = field.slice(at + 1);
    const counts = couriers.get(courier) ?? {
      received: 0,
      accepted: 0,
      duplicate: 0,
      unknown: 0,
      invalid: 0,
    };
    counts[name] += Number(count);
    couriers.set(courier, counts);
  }
  return [...couriers]
    .map(([courier, counts]) => ({ courier, ...counts }))
    .sort((one, other) => (one.courier < other.courier ? -1 : 1));
}

/** @param missing unavailable partitions are added to it and left out: the ledger then reports no difference */
export async function readBalance(
  redis: Redis,
  configuration: Configuration,
  missing?: Missing,
): Promise<Balance> {
  const before = await readLedger(redis, missing);
  const waiting = await readUnapplied(redis, missing);
  const pending = await readPending(redis, configuration, missing);
  const ledger = await readLedger(redis, missing);
  const { received, accepted, duplicate, unknown, invalid } = ledger;
  const moved = (...names: MovedCounter[]) =>
    names.reduce((sum, name) => sum + Math.abs(ledger[name] - before[name]), 0);
  const unapplied = ledger.routed - ledger.applied - ledger.discarded;
  const unfinished = ledger.sent - ledger.delivered - ledger.failed;
  return {
    ...ledger,
    waiting,
    pending,
    difference: {
      received: received - accepted - duplicate - unknown - invalid,
      applied: beyond(unapplied - waiting, moved("routed", "applied", "discarded")),
      webhooks: beyond(unfinished - pending, moved("sent", "delivered", "failed")),
    },
  };
}

type MovedCounter = "routed" | "applied" | "discarded" | "sent" | "delivered" | "failed";

/** What of a difference cannot come from what moved while its parts were read. */
function beyond(difference: number, moved: number): number {
  return Math.sign(difference) * Math.max(0, Math.abs(difference) - moved) || 0;
}

async function readUnapplied(redis: Redis, missing?: Missing): Promise<number> {
  const [behind, dead] = await Promise.all([
    readWaiting(redis, "event", missing),
    readLengths(redis, eventLogs().map(deadLetterKey), missing),
  ]);
  return dead.reduce((sum, count) => sum + count, behind);
}

function readLengths(redis: Redis, keys: readonly string[], missing?: Missing): Promise<number[]> {
  return Promise.all(keys.map((key) => redis.xLen(key).catch(orMissing(redis, missing, key, 0))));
}

async function readPending(
  redis: Redis,
  configuration: Configuration,
  missing?: Missing,
): Promise<number> {
  const endpoints = Map.groupBy(configuration.endpoints.keys(), (id) =>
    endpointPartition(configuration, id),
  );
  const counts = await Promise.all(
    partitionsOf("k").map((partition) => {
      const { leases, queue, retries } = webhookKeys(partition);
      const queues = (endpoints.get(partition) ?? []).flatMap((id) => [queue(id), retries(id)]);
      const counting = run<number>(redis, countPendingScript, [leases, ...queues], []);
      return counting.catch(orMissing(redis, missing, leases, 0));
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

export interface QueueDepths {
  /** Events and changes that wait in the logs. */
  readonly eventLog: number;
  readonly changeLog: number;
  readonly deadLetters: number;
}

export async function readQueueDepths(redis: Redis, missing?: Missing): Promise<QueueDepths> {
  const logs = [...eventLogs(), ...changeLogs(), ...attemptLogs(), AUDIT_LOG];
  const [eventLog, changeLog, dead] = await Promise.all([
    readWaiting(redis, "event", missing),
    readWaiting(redis, "change", missing),
    readLengths(redis, logs.map(deadLetterKey), missing),
  ]);
  return { eventLog, changeLog, deadLetters: dead.reduce((sum, n) => sum + n, 0) };
}

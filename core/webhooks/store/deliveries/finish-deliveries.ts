/** Records the results of leased deliveries (document 3, "Delivery"). */

import { attemptErrorOf } from "#core/benchmarks/rules/attempt-row.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { FAILING_FROM, webhookKeys } from "#core/platform/redis/keys.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { shareOf } from "#core/platform/redis/partitions.ts";
import { runTogether } from "#core/platform/redis/run-together.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import {
  AWAY_MS,
  CONCURRENCY_LIFE_MS,
  concurrencyChange,
  type LoadSign,
  START_CONCURRENCY,
} from "#core/webhooks/rules/concurrency.ts";
import { ATTEMPTS_WAITING, encodeAttempt } from "#core/webhooks/store/attempt-log.ts";
import { fieldOf } from "#core/webhooks/store/attempt-stats.ts";
import endpointConcurrency from "#core/webhooks/store/parts/endpoint-concurrency.lua" with {
  type: "text",
};
import endpointHealth from "#core/webhooks/store/parts/endpoint-health.lua" with { type: "text" };
import settleDelivery from "#core/webhooks/store/parts/settle-delivery.lua" with { type: "text" };
import { type Attempt, attemptText, readAttempts } from "./attempts.ts";
import { DELIVERY_LIFE_MS, type DeliveryState, ITEMS_PER_CALL } from "./deliveries.ts";
import finishSource from "./finish.lua" with { type: "text" };
import type { Leased, Slot } from "./leases.ts";

const finishScript = scriptOfParts(finishSource, {
  "endpoint-health": endpointHealth,
  "endpoint-concurrency": endpointConcurrency,
  "settle-delivery": settleDelivery,
});

/** Attempts kept per delivery, newest last: eight of each generation. */
const GENERATIONS_KEPT = 5;
const ATTEMPTS_KEPT = 8 * GENERATIONS_KEPT;
/** Redis time for one result. */
const FINISH_US = 10;

interface Outcome {
  readonly state: Exclude<DeliveryState, "queued">;
  readonly nextAttemptAtMs: number | null;
  readonly reason: string | null;
}

/** The result of a leased delivery. `attempt` is null if nothing was sent. */
export type Finished = Outcome &
  (
    | {
        readonly of: Leased;
        readonly attempt: Attempt;
        /** What it tells about the load of the receiver. */
        readonly sign?: LoadSign;
        /** The receiver asks for a pause of the whole endpoint until then, UTC milliseconds. */
        readonly pausedUntilMs?: number | null;
        /** An internal error prevented the attempt: it is in the delivery's log and counts nowhere. */
        readonly isOwnFault?: true;
      }
    | { readonly of: Slot & Partial<Leased>; readonly attempt: null }
  );

/**
 * Records results, one script call per partition (and per 100 results). A result is discarded if its lease has expired.
 * @param attemptsWaiting attempts that may wait for the analytics over all partitions
 * @returns the results that could not be recorded, each with its reason: an unwritable partition delays no other
 */
export async function finishDeliveries(
  redis: Redis,
  results: readonly Finished[],
  nowMs: number,
  attemptsWaiting = ATTEMPTS_WAITING,
): Promise<ReadonlyMap<Finished, Error>> {
  const left = new Map<Finished, Error>();
  const waiting = shareOf("k", attemptsWaiting);
  const calls = [...Map.groupBy(results, ({ of }) => of.partition)].flatMap(([partition, group]) =>
    chunks(group, ITEMS_PER_CALL).map((part) => ({ partition, part })),
  );
  await Promise.all(
    calls.map(async ({ partition, part }) => {
      try {
        const { keys, list } = finishArguments(partition, part, hourOf(nowMs));
        const numbers = [nowMs, DELIVERY_LIFE_MS / 1000, waiting, FAILING_FROM];
        const concurrencies = [START_CONCURRENCY, CONCURRENCY_LIFE_MS, AWAY_MS];
        const args = [...[...numbers, ...concurrencies].map(String), packList(list)];
        await runTogether(redis, finishScript, keys, args, part.length * FINISH_US);
      } catch (error) {
        for (const result of part) left.set(result, error as Error);
      }
    }),
  );
  announce(redis, "attempt");
  return left;
}

/** Grouped by endpoint, so that the queues and health of an endpoint are updated once for all of its results. */
function finishArguments(partition: number, results: readonly Finished[], hour: number) {
  const own = webhookKeys(partition);
  const { firstRing, retryRing, leases, inFlight, turns, failing, warned, ledger } = own;
  const keys = [firstRing, retryRing, leases, inFlight, turns, failing, warned, ledger];
  keys.push(own.attemptLog, own.attemptCounts, own.lastFailures, own.alerts, own.alerted);
  keys.push(own.concurrencies, own.pauses);
  const list: string[] = [];
  for (const [id, group] of Map.groupBy(results, ({ of }) => of.endpointId)) {
    keys.push(own.queue(id), own.retries(id), own.log(id), own.failed(id), own.attempts(id, hour));
    list.push(id, String(group.length));
    pushSigns(list, group);
    for (const result of group) {
      keys.push(own.delivery(result.of.deliveryId));
      pushResult(list, result);
    }
  }
  return { keys, list };
}

/** What the part `endpoint-concurrency` receives about the results of an endpoint. */
function pushSigns(list: string[], group: readonly Finished[]): void {
  const signs: { sign: LoadSign; atMs: number }[] = [];
  let pausedUntilMs = 0;
  for (const one of group) {
    if (one.attempt === null) continue;
    signs.push({ sign: one.sign ?? null, atMs: one.attempt.atMs });
    pausedUntilMs = Math.max(pausedUntilMs, one.pausedUntilMs ?? 0);
  }
  const { good, factor, fallAtMs } = concurrencyChange(signs);
  list.push(String(group[0]?.of.most ?? 0), String(good));
  list.push(...(factor === null ? ["", ""] : [String(factor), String(fallAtMs)]));
  list.push(pausedUntilMs === 0 ? "" : String(pausedUntilMs));
}

function pushResult(list: string[], result: Finished): void {
  const { of, attempt, state, nextAttemptAtMs, reason } = result;
  const due = nextAttemptAtMs === null ? "" : String(nextAttemptAtMs);
  if (attempt === null) {
    const { attemptsMade = 0, attemptsText: made = "[]" } = of;
    list.push(of.deliveryId, of.lease, state, String(attemptsMade), made, due);
    list.push(reason ?? "", "", "");
    return;
  }
  const isOwnFault = result.isOwnFault ?? false;
  const made = isOwnFault ? of.attemptsMade : attempt.attempt;
  const attempts = attemptsText(of, attempt, isOwnFault);
  list.push(of.deliveryId, of.lease, state, String(made), attempts, due, reason ?? "");
  if (isOwnFault) list.push("", "");
  else list.push(fieldOf(attempt.httpStatus, attempt.durationMs), attemptLine(of, state, attempt));
}

/** The earlier attempts and the new one, without the oldest if there would be too many. */
function attemptsText(
  { attemptsText: before, generation }: Leased,
  attempt: Attempt,
  isOwnFault: boolean,
): string {
  const text = attemptText(attempt);
  if (before === "[]") return `[${text}]`;
  if (generation <= GENERATIONS_KEPT && !isOwnFault) return `${before.slice(0, -1)},${text}]`;
  const kept = [...readAttempts(before), attempt].slice(-ATTEMPTS_KEPT);
  return `[${kept.map(attemptText).join(",")}]`;
}

const OUTCOMES = { delivered: "DELIVERED", waiting: "WAITING", failed: "FAILED" } as const;

function attemptLine(of: Leased, state: Outcome["state"], attempt: Attempt): string {
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

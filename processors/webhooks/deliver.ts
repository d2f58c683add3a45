/**
 * The send loop: leases due deliveries of all partitions together, sends each on its own, records results. A partition whose
 * store does not answer, or is being moved, is left out until it takes writes again; the others go on without it.
 *
 * While the store is unavailable nothing is sent that could not be recorded: no lease is handed out, and what is leased and
 * not begun waits. What receivers have answered meanwhile is kept and recorded when the store is back. Leases may have ended by
 * then, so all processes pause: each records its results, and renews what is still under way, before anybody hands out leases.
 */
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { webhookKeys } from "#core/platform/redis/keys.ts";
import { followPartitions, type PartitionOutages } from "#core/platform/redis/outage.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { openWaker, type Waker } from "#core/platform/redis/wake.ts";
import {
  type Fresh,
  type FreshDeliveries,
  followFreshDeliveries,
} from "#core/webhooks/store/deliveries/fresh-deliveries.ts";
import {
  keepLeases,
  type Leased,
  readLeased,
  renewLeases,
  type Slot,
  takeLeases,
} from "#core/webhooks/store/deliveries/leases.ts";
import { attempt, type SendDeps, unsent } from "./attempt.ts";
import { type DeliverLimits, LIMITS } from "./deliver-limits.ts";
import { endpointTerms } from "./endpoint-terms.ts";
import {
  createFinishQueue,
  type FinishQueue,
  giveUp,
  record,
  recordUnhurried,
} from "./finish-queue.ts";
import type { LatencyWatch } from "./latency-watch.ts";
import {
  answered,
  capacityOfCompany,
  drop,
  gapMs,
  giveBack,
  hold,
  learn,
  newSchedule,
  next,
  nextRound,
  queue,
  type Round,
  recorded,
  type Schedule,
} from "./scheduler.ts";

export interface DeliverDeps extends SendDeps {
  readonly redis: Redis;
  readonly log: Log;
  readonly limits?: Partial<DeliverLimits>;
}

export interface Deliverer {
  /** Leases nothing more, lets what is under way end and records it. */
  readonly stop: () => Promise<void>;
}

/** While something is under way, slots become free by time alone. */
const BUSY_WAIT_MS = 25;
const TROUBLE_WAIT_MS = 250;
/** Leases are renewed three times before they would end. */
const RENEWALS_PER_LEASE = 3;

interface Sender extends Omit<DeliverDeps, "limits"> {
  readonly limits: DeliverLimits;
  readonly schedule: Schedule;
  readonly outages: PartitionOutages;
  readonly results: FinishQueue;
  readonly latency: LatencyWatch;
  readonly waker: Waker;
  readonly fresh: FreshDeliveries;
  /** The last round named endpoints without a look. */
  wasNamed: boolean;
  /** What waits is looked at in the next turn of the event loop, or at a time of its own. */
  soon: ReturnType<typeof setImmediate> | null;
  later: ReturnType<typeof setTimeout> | undefined;
  /** When the latest renewal of what is under way began. */
  renewedAtMs: number;
  readonly renewEveryMs: number;
  /** Called once nothing is under way. */
  onEmpty: () => void;
}

export function startDeliverer(deps: DeliverDeps): Deliverer {
  const { redis, live, log } = deps;
  const limits = { ...LIMITS, ...deps.limits };
  const renewEveryMs = limits.leaseMs / RENEWALS_PER_LEASE;
  const leasesOf = (partition: number) => webhookKeys(partition).leases;
  const schedule = newSchedule(limits, partitionsOf("k"));
  const waker = openWaker(redis, "webhooks", () => {
    schedule.isEager = true;
  });
  const fresh = followFreshDeliveries(redis, () => {
    schedule.isEager = true;
    waker.wake();
  });
  const sender: Sender = {
    ...deps,
    limits,
    schedule,
    outages: followPartitions(redis, log, "webhooks", leasesOf, { ...limits, renewEveryMs }),
    results: createFinishQueue(redis, live, log),
    latency: new Map(),
    waker,
    fresh,
    wasNamed: false,
    soon: null,
    later: undefined,
    renewedAtMs: performance.now(),
    renewEveryMs,
    onEmpty() {},
  };
  const renewal = setInterval(() => void renew(sender), renewEveryMs);
  const running = loop(sender);
  return {
    async stop() {
      schedule.isStopping = true;
      sender.waker.wake();
      await running;
      sender.waker.close();
      sender.fresh.close();
      await finish(sender);
      clearInterval(renewal);
    },
  };
}

async function loop(sender: Sender): Promise<void> {
  const { schedule, outages, waker } = sender;
  while (!schedule.isStopping) {
    waker.reset();
    beginSoon(sender);
    const begunAtMs = performance.now();
    try {
      await comeBack(sender);
      const round = nextRound(schedule, performance.now(), outages.mayLease);
      if (round && round.shares.length > 0) await lease(sender, round);
      await Bun.sleep(gapMs(schedule, performance.now()));
      if (!schedule.isEager) await waker.wait(waitMs(sender));
    } catch (error) {
      outages.failed(partitionsOf("k"), error, begunAtMs);
      await Bun.sleep(TROUBLE_WAIT_MS);
    }
  }
}

/**
 * Leases may have expired: those in progress are renewed, and deliveries not yet begun go back to their queues. A process that stood
 * still would otherwise take what it is sending for what a killed one was sending.
 */
async function comeBack(sender: Sender): Promise<void> {
  const back = new Set(await sender.outages.probe());
  if (back.size > 0) {
    giveBack(sender.schedule, ({ partition }) => back.has(partition));
    void renew(sender);
  }
  if (hasStoodStill(sender)) await renew(sender);
}

/** Two renewals are missing: leases may have ended. */
function hasStoodStill(sender: Sender): boolean {
  return mayHaveEnded(sender, sender.renewedAtMs);
}

/** Whether leases may have ended that were taken or renewed then. */
function mayHaveEnded({ limits, renewEveryMs }: Sender, sinceMs: number): boolean {
  return performance.now() - sinceMs > limits.leaseMs - renewEveryMs;
}

/** Until the next round, unless somebody queues a delivery before. */
function waitMs({ schedule, outages }: Sender): number {
  const untilLookMs = schedule.lookAtMs - performance.now();
  const isBusy = schedule.held.size > 0 || outages.isAnyOut();
  return Math.max(0, Math.min(untilLookMs, isBusy ? BUSY_WAIT_MS : untilLookMs));
}

async function lease(sender: Sender, round: Round): Promise<void> {
  const { redis, live, log, limits, schedule, outages, results } = sender;
  const terms = {
    leaseMs: limits.leaseMs,
    startConcurrency: limits.startConcurrency,
    perFailingEndpoint: limits.inFlightPerFailingEndpoint,
    perSilentEndpoint: limits.silentInFlightPerEndpoint,
    silent: schedule.silentEndpoints,
    endpoint: (endpointId: string) => endpointTerms(live.configuration(), endpointId),
    capacityOfCompany: (companyId: number) =>
      capacityOfCompany(schedule, companyId, performance.now()),
    retries: round.retries,
  };
  const serviceNowMs = live.now();
  const { endpoints, shipments } = sender.fresh.take();
  // Never twice in a row, nor while others wait: a look tells whose turn it is, and what is due besides.
  const isNamed = endpoints.size > 0 && !sender.wasNamed && schedule.busy.size === 0;
  sender.wasNamed = isNamed;
  const named = isNamed ? endpoints : undefined;
  const handout = await takeLeases(redis, round.shares, terms, serviceNowMs, named);
  learn(schedule, round, handout, serviceNowMs);
  for (const [partition, error] of handout.failures) {
    outages.failed([partition], error, round.beganAtMs);
  }
  const { leased, gone, failure } = await readHeld(sender, handout.slots, shipments);
  if (failure) log.warn({ reason: failure.message }, "deliveries wait until their leases expire");
  for (const slot of gone) {
    record(results, unsent(slot, "30 days are over"), () => settle(sender, slot));
  }
  for (const one of await stillOurs(sender, leased, round.beganAtMs)) {
    queue(schedule, one, performance.now());
  }
  beginSoon(sender);
}

/** Leases of which this process hears late may have ended before it could renew them. What it cannot keep is handed out again. */
async function stillOurs(
  sender: Sender,
  leased: readonly Leased[],
  beganAtMs: number,
): Promise<readonly Leased[]> {
  let keptAtMs = beganAtMs;
  while (leased.length > 0 && mayHaveEnded(sender, keptAtMs)) {
    keptAtMs = performance.now();
    if (!(await keepLeases(sender.redis, leased, sender.limits.leaseMs))) return [];
  }
  return leased;
}

/**
 * Leases are renewed while their content is read, which may take as long as a lease. The configuration is read after the leases
 * were taken: an endpoint that was disabled before is seen as such.
 */
async function readHeld(
  { redis, live, schedule }: Sender,
  slots: readonly Slot[],
  shipments: Fresh["shipments"],
) {
  for (const slot of slots) hold(schedule, slot);
  try {
    const [read] = await Promise.all([readLeased(redis, slots, shipments), live.refresh()]);
    return read;
  } finally {
    for (const slot of slots) drop(schedule, slot);
  }
}

/** Nothing is sent that could not be recorded, or that another process may have been given. */
function mayBegin(sender: Sender, partition: number): boolean {
  const { redis, outages } = sender;
  return redis.isReady && !outages.isOut(partition) && !hasStoodStill(sender);
}

function beginSoon(sender: Sender): void {
  const { waiting, waitingSilent } = sender.schedule;
  if (waiting.length + waitingSilent.length === 0) return;
  sender.soon ??= setImmediate(beginNext, sender);
}

function beginNext(sender: Sender): void {
  const { schedule } = sender;
  sender.soon = null;
  clearTimeout(sender.later);
  const nowMs = performance.now();
  const { begin, againAtMs } = next(schedule, nowMs, (partition) => mayBegin(sender, partition));
  for (const leased of begin) void send(sender, leased);
  if (againAtMs !== null && againAtMs <= nowMs) beginSoon(sender);
  else if (againAtMs !== null) sender.later = setTimeout(beginSoon, againAtMs - nowMs, sender);
  tell(sender);
}

async function send(sender: Sender, leased: Leased): Promise<void> {
  const { schedule, results } = sender;
  const beganAtMs = performance.now();
  const result = await attempt(sender, leased);
  const isSent = result.attempt !== null && !result.isOwnFault;
  const isAnswered = isSent ? result.attempt.httpStatus !== null : null;
  answered(schedule, leased, { beganAtMs, endedAtMs: performance.now(), isAnswered });
  beginSoon(sender);
  const keep = leased.silent ? recordUnhurried : record;
  keep(results, result, () => settle(sender, leased));
  tell(sender);
}

function settle(sender: Sender, slot: Slot): void {
  recorded(sender.schedule, slot);
  tell(sender);
}

/** Tells those who wait for what has changed. */
function tell({ schedule, waker, onEmpty }: Sender): void {
  if (schedule.isEager) waker.wake();
  if (schedule.held.size === 0) onEmpty();
}

/**
 * What a killed process was sending is sent again soon, and what takes long is not sent twice. After a stall another process may have
 * what is leased here and not begun: it goes back.
 */
async function renew(sender: Sender): Promise<void> {
  const { redis, limits, schedule, outages } = sender;
  const nowMs = performance.now();
  const isAfterStall = hasStoodStill(sender);
  const sinceMs = isAfterStall ? sender.renewedAtMs : nowMs;
  sender.renewedAtMs = nowMs;
  if (isAfterStall) {
    giveBack(schedule, () => true);
    tell(sender);
  }
  if (schedule.held.size === 0) return;
  beginSoon(sender);
  const failures = await renewLeases(redis, schedule.held, limits.leaseMs);
  for (const [partition, error] of failures) outages.failed([partition], error, sinceMs);
}

/** Lets what is under way end and records it; without a store it gives up after `stopWaitMs`. */
async function finish(sender: Sender): Promise<void> {
  const { limits, schedule, results } = sender;
  const patience = setTimeout(giveUp, limits.stopWaitMs, results);
  beginSoon(sender);
  await new Promise<void>((resolve) => {
    sender.onEmpty = resolve;
    if (schedule.held.size === 0) resolve();
  });
  clearTimeout(patience);
}

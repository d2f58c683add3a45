/** From lease to recorded result: leased deliveries wait for a slot, are sent, and give their slot back. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { type Leased, renewLeases, type Slot } from "#core/webhooks/store/deliveries/leases.ts";
import { attempt, type Watches } from "./attempt.ts";
import type { DeliverLimits } from "./deliver-limits.ts";
import { createFinishQueue, type FinishQueue } from "./finish-queue.ts";
import { watchLatency } from "./latency-watch.ts";
import type { Capacity } from "./lease-rounds.ts";
import type { PartitionOutages } from "./partition-outages.ts";
import { createReadyQueue, type ReadyQueue } from "./ready-queue.ts";
import { type SendDeps, unsent } from "./send.ts";
import { createSendSlots, type SendSlots } from "./send-slots.ts";
import { followSilentEndpoints, type SilentEndpoints } from "./silent-endpoints.ts";
import { createSilentQueue, type SilentQueue } from "./silent-queue.ts";

export interface SendingDeps extends SendDeps {
  readonly redis: Redis;
  readonly log: Log;
  readonly limits: DeliverLimits;
  readonly outages: Pick<PartitionOutages, "isOut" | "isAnyOut" | "failed">;
  readonly isStopping: () => boolean;
  /** More may be leased. */
  readonly onCapacity: () => void;
  /** A request has been answered: its slot is free, and its endpoint has capacity once the result is recorded. */
  readonly onSlot: () => void;
}

export interface Sending {
  readonly silent: SilentEndpoints;
  readonly isBusy: () => boolean;
  readonly capacity: (nowMs: number) => Capacity;
  /** How many slots a company may have besides those that it has. */
  readonly capacityOfCompany: (companyId: number) => number;
  /** What a round has asked for and given to silent endpoints. */
  readonly learnSilent: (wanted: number, given: number) => void;
  /** Renews the leases while their content is read, which may take as long as a lease. */
  readonly whileHeld: <T>(slots: readonly Slot[], read: () => Promise<T>) => Promise<T>;
  readonly add: (leased: Leased, configuration: Configuration) => void;
  /** Records that a delivery no longer exists. */
  readonly addGone: (slot: Slot) => void;
  /** Leased deliveries that have not begun are not renewed and go back to their queues. */
  readonly giveBack: (isMeant: (leased: Leased) => boolean) => void;
  readonly beginSoon: () => void;
  /** What a killed process was sending is sent again soon, and what takes long is not sent twice. */
  readonly renew: () => void;
  /** Lets what is under way end and records it; without a store it gives up after `recoveryMs`. */
  readonly finish: () => Promise<void>;
}

interface Parts extends SendingDeps {
  readonly results: FinishQueue;
  readonly silent: SilentEndpoints;
  readonly watches: Watches;
  readonly silentQueue: SilentQueue;
  readonly slots: SendSlots;
  readonly queue: ReadyQueue;
}

export function startSending(deps: SendingDeps): Sending {
  const parts = openParts(deps);
  const { limits, results, silent, silentQueue, slots } = parts;
  return {
    silent,
    isBusy: () => slots.underWay.size > 0,
    capacity: (nowMs) => capacityOf(parts, nowMs),
    capacityOfCompany: (companyId) => slots.capacityOfCompany(companyId, performance.now()),
    learnSilent: silentQueue.learn,
    async whileHeld(leases, read) {
      for (const lease of leases) slots.hold(lease);
      return read().finally(() => {
        for (const lease of leases) slots.drop(lease);
      });
    },
    add: (leased, configuration) => add(parts, leased, configuration),
    addGone: (slot) => results.record(unsent(slot, "30 days are over"), parts.onCapacity),
    giveBack: (isMeant) => giveBack(parts, isMeant),
    beginSoon: () => beginSoon(parts),
    renew: () => renew(parts),
    async finish() {
      const patience = setTimeout(results.giveUp, limits.recoveryMs);
      beginSoon(parts);
      await slots.whenEmpty();
      clearTimeout(patience);
    },
  };
}

function openParts(deps: SendingDeps): Parts {
  const { redis, live, log, limits, outages, isStopping, onCapacity } = deps;
  const silent = followSilentEndpoints(limits.slowMs);
  const own: Pick<Parts, "redis" | "outages"> = { redis, outages };
  const silentQueue = createSilentQueue({
    most: limits.silentInFlight,
    mayBegin: (leased) => mayBegin(own, leased),
    hasSeveralEndpoints: () => silent.count() > 1,
    isStopping,
    onCapacity,
  });
  const slots = createSendSlots(limits);
  const parts: Parts = {
    ...deps,
    results: createFinishQueue(redis, live, log),
    silent,
    silentQueue,
    slots,
    watches: { silent, latency: watchLatency() },
    queue: createReadyQueue({
      mayBegin: (leased) => mayBegin(own, leased) && slots.mayBegin(leased, performance.now()),
      hasCapacity: () => slots.hasCapacity(performance.now()),
    }),
  };
  return parts;
}

function capacityOf({ silent, silentQueue, slots }: Parts, nowMs: number): Capacity {
  const silentPartitions = silent.partitions(nowMs);
  return {
    free: slots.freeToLease(nowMs),
    freeForOthers: slots.freeForOthers(nowMs),
    freeFailing: slots.freeToLeaseFailing(),
    freeSilent: silentPartitions.size === 0 ? 0 : silentQueue.free(),
    silentPartitions,
  };
}

/** Nothing is sent that could not be recorded. */
function mayBegin(
  { redis, outages }: Pick<Parts, "redis" | "outages">,
  { partition }: Slot,
): boolean {
  return redis.isReady && !outages.isOut(partition);
}

function add(parts: Parts, leased: Leased, configuration: Configuration): void {
  const { silentQueue, slots, queue } = parts;
  slots.hold(leased);
  if (leased.silent) {
    silentQueue.add(leased, () => void sendSilent(parts, leased, configuration));
    return;
  }
  slots.queued(leased);
  queue.add(leased, () => void send(parts, leased, configuration));
}

async function send(parts: Parts, leased: Leased, configuration: Configuration): Promise<void> {
  const { slots, results, watches, onCapacity, onSlot } = parts;
  slots.begun(leased);
  const result = await attempt(parts, watches, leased, configuration);
  slots.answered(leased);
  beginSoon(parts);
  results.record(result, () => {
    slots.drop(leased);
    // Recorded, it makes room for the next one of its endpoint.
    onCapacity();
  });
  onSlot();
}

/** It has no slot to give back: the next round comes when its queue has room for many. */
async function sendSilent(
  parts: Parts,
  leased: Leased,
  configuration: Configuration,
): Promise<void> {
  const result = await attempt(parts, parts.watches, leased, configuration);
  parts.results.recordUnhurried(result, () => forgetSilent(parts, leased));
}

function forgetSilent({ slots, silentQueue }: Parts, leased: Leased): void {
  slots.drop(leased);
  silentQueue.ended();
}

function giveBack(parts: Parts, isMeant: (leased: Leased) => boolean): void {
  const { silentQueue, slots, queue } = parts;
  for (const leased of silentQueue.remove(isMeant)) forgetSilent(parts, leased);
  for (const leased of queue.remove(isMeant)) {
    slots.unqueued(leased);
    slots.drop(leased);
  }
}

/** At the end, what may not begin goes back to its queue. */
function beginSoon(parts: Parts): void {
  const { silentQueue, queue, isStopping } = parts;
  if (isStopping()) giveBack(parts, (leased) => !mayBegin(parts, leased));
  silentQueue.beginSoon();
  queue.beginSoon();
}

function renew(parts: Parts): void {
  const { redis, slots, limits, outages } = parts;
  if (slots.underWay.size === 0) return;
  beginSoon(parts);
  const begunAtMs = performance.now();
  void renewLeases(redis, slots.underWay, limits.leaseMs).then((failures) => {
    for (const [partition, error] of failures) outages.failed([partition], error, begunAtMs);
  });
}

/** How much this process may lease and begin: accounts for every delivery from its lease until its result is recorded. */
import type { Leased, Slot } from "#core/redis/webhooks/leases.ts";
import type { DeliverLimits } from "./deliver-limits.ts";

export interface SendSlots {
  /** Every delivery whose lease is to be renewed. */
  readonly underWay: ReadonlySet<Slot>;
  readonly hold: (slot: Slot) => void;
  /** Recorded, given back or never sent. */
  readonly drop: (slot: Slot) => void;
  /** It waits for a slot. */
  readonly queued: (leased: Leased) => void;
  /** It goes back without having begun. */
  readonly unqueued: (leased: Leased) => void;
  /** It waited for a slot and has one now. */
  readonly begun: (leased: Leased) => void;
  readonly answered: (leased: Leased) => void;
  readonly freeToBegin: (nowMs: number) => number;
  readonly freeToLease: (nowMs: number) => number;
  readonly freeToLeaseFailing: () => number;
  /** Resolves once nothing is under way. */
  readonly whenEmpty: () => Promise<void>;
}

/** @param silentUnderWay how many of those under way belong to silent endpoints, which occupy no slots */
export function createSendSlots(limits: DeliverLimits, silentUnderWay: () => number): SendSlots {
  const { inFlight, slowMs } = limits;
  const ahead = Math.floor(inFlight / 2);
  const underWay = new Set<Slot>();
  /** Begun and without an answer, by when they began: the oldest come first. */
  const unanswered = new Map<Leased, number>();
  let waiting = 0;
  /** Of failing endpoints and without an answer, begun or not. */
  let failing = 0;
  let onEmpty = () => {};

  /** Begun, without an answer and still in their slots. */
  function occupied(nowMs: number): number {
    let slow = 0;
    for (const startMs of unanswered.values()) {
      if (startMs > nowMs - slowMs) break;
      slow += 1;
    }
    return unanswered.size - slow;
  }

  return {
    underWay,
    hold: (slot) => void underWay.add(slot),
    drop(slot) {
      underWay.delete(slot);
      if (underWay.size === 0) onEmpty();
    },
    queued(leased) {
      waiting += 1;
      if (leased.failing) failing += 1;
    },
    unqueued(leased) {
      waiting -= 1;
      if (leased.failing) failing -= 1;
    },
    begun(leased) {
      waiting -= 1;
      unanswered.set(leased, performance.now());
    },
    answered(leased) {
      unanswered.delete(leased);
      if (leased.failing) failing -= 1;
    },
    freeToBegin: (nowMs) => inFlight - occupied(nowMs),
    freeToLease(nowMs) {
      const all = inFlight + ahead;
      const withoutSlot = all + inFlight - (underWay.size - silentUnderWay());
      return Math.min(all - occupied(nowMs) - waiting, withoutSlot);
    },
    freeToLeaseFailing: () => Math.floor(inFlight / 2) - failing,
    whenEmpty() {
      const { promise, resolve } = Promise.withResolvers<void>();
      onEmpty = resolve;
      if (underWay.size === 0) resolve();
      return promise;
    },
  };
}

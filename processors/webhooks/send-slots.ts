/**
 * How much this process may lease and begin: accounts for every delivery from its lease until its result is recorded.
 *
 * A company may use all slots while it is alone. Beyond them there are half as many for those who have less than is still free
 * there: whoever comes while one company holds every slot begins immediately. Of all that may be under way, most of it slow, no
 * company may have more than is still free: half of it if it is alone, a third if there are two.
 */
import type { Leased, Slot } from "#core/webhooks/store/deliveries/leases.ts";
import type { DeliverLimits } from "./deliver-limits.ts";

/** How many times the slots are under way without one: slow requests, and answers that are being recorded. */
const BESIDES = 3;

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
  readonly mayBegin: (leased: Leased, nowMs: number) => boolean;
  /** Whether any may begin. */
  readonly hasCapacity: (nowMs: number) => boolean;
  readonly freeToLease: (nowMs: number) => number;
  /** The same for companies that have little under way. */
  readonly freeForOthers: (nowMs: number) => number;
  readonly freeToLeaseFailing: () => number;
  /** How many of the free ones a company may have. */
  readonly capacityOfCompany: (companyId: number, nowMs: number) => number;
  /** Resolves once nothing is under way. */
  readonly whenEmpty: () => Promise<void>;
}

/** Occurrences by name. */
function createTally(): { add: (name: number, n: 1 | -1) => void; of: (name: number) => number } {
  const counts = new Map<number, number>();
  return {
    add(name, n) {
      const count = (counts.get(name) ?? 0) + n;
      if (count === 0) counts.delete(name);
      else counts.set(name, count);
    },
    of: (name) => counts.get(name) ?? 0,
  };
}

/**
 * Begun and without an answer: those in a slot, and those that have given it back.
 * @param onLeft one of the company has left its slot
 */
function createBegun(slowMs: number, onLeft: (companyId: number) => void) {
  /** By when they began: the oldest come first. */
  const inSlots = new Map<Leased, number>();
  const tally = createTally();

  function leave(leased: Leased): void {
    inSlots.delete(leased);
    tally.add(leased.companyId, -1);
    onLeft(leased.companyId);
  }

  return {
    add(leased: Leased) {
      inSlots.set(leased, performance.now());
      tally.add(leased.companyId, 1);
    },
    answered(leased: Leased) {
      if (inSlots.has(leased)) leave(leased);
    },
    ofCompany: tally.of,
    occupied(nowMs: number): number {
      for (const [leased, startMs] of inSlots) {
        if (startMs > nowMs - slowMs) break;
        leave(leased);
      }
      return inSlots.size;
    },
  };
}

/** With so many more a company has as many as are left free. */
const halfOf = (n: number) => Math.ceil(n / 2);

export function createSendSlots({ inFlight, slowMs }: DeliverLimits): SendSlots {
  const extra = Math.floor(inFlight / 2);
  const [leasable, inAll] = [inFlight + extra, inFlight + extra + BESIDES * inFlight];
  const underWay = new Set<Slot>();
  const ofCompany = createTally();
  const slotsOfCompany = createTally();
  const begun = createBegun(slowMs, (companyId) => slotsOfCompany.add(companyId, -1));
  let waiting = 0;
  let silent = 0;
  /** Of failing endpoints and without an answer, begun or not. */
  let failing = 0;
  let onEmpty = () => {};

  const freeSlots = (nowMs: number) => leasable - begun.occupied(nowMs) - waiting;
  const freeInAll = () => inAll - (underWay.size - silent);
  function move(slot: Slot, n: 1 | -1): void {
    if (slot.silent) silent += n;
    else ofCompany.add(slot.companyId, n);
  }

  function queue(leased: Leased, n: 1 | -1): void {
    waiting += n;
    slotsOfCompany.add(leased.companyId, n);
    if (leased.failing) failing += n;
  }

  return {
    underWay,
    hold(slot) {
      underWay.add(slot);
      move(slot, 1);
    },
    drop(slot) {
      if (underWay.delete(slot)) move(slot, -1);
      if (underWay.size === 0) onEmpty();
    },
    queued: (leased) => queue(leased, 1),
    unqueued: (leased) => queue(leased, -1),
    begun(leased) {
      waiting -= 1;
      begun.add(leased);
    },
    answered(leased) {
      begun.answered(leased);
      if (leased.failing) failing -= 1;
    },
    mayBegin({ companyId }, nowMs) {
      const occupied = begun.occupied(nowMs);
      return occupied < inFlight || begun.ofCompany(companyId) < inFlight + extra - occupied;
    },
    hasCapacity: (nowMs) => begun.occupied(nowMs) < inFlight + extra,
    freeToLease: (nowMs) => Math.min(freeSlots(nowMs), freeInAll()),
    freeForOthers: (nowMs) => Math.min(freeSlots(nowMs) + extra, freeInAll()),
    freeToLeaseFailing: () => Math.floor(inFlight / 2) - failing,
    capacityOfCompany(companyId, nowMs) {
      const free = freeSlots(nowMs);
      const beyond = halfOf(free + extra - slotsOfCompany.of(companyId));
      return Math.max(
        0,
        Math.min(Math.max(free, beyond), halfOf(freeInAll() - ofCompany.of(companyId))),
      );
    },
    whenEmpty: () =>
      new Promise((resolve) => {
        onEmpty = resolve;
        if (underWay.size === 0) resolve();
      }),
  };
}

/**
 * Leased deliveries of silent endpoints: begun one after the other and not together, so that their handshakes hold up nobody,
 * and leased many at a time, since a round for each would cost as much as its request.
 */
import type { Leased } from "#core/webhooks/store/deliveries/leases.ts";

/** A TLS handshake takes about a millisecond: 100 a second, which is what one endpoint needs. */
const GAP_MS = 10;
/** With several silent endpoints: 200 a second. */
const GAP_OF_SEVERAL_MS = 5;
/** Leased ahead; half of it is worth a round. */
const AHEAD = 32;

export interface SilentQueue {
  /** How many may be leased: none, or enough to be worth a round. */
  readonly free: () => number;
  /** What a round has asked for and been given. */
  readonly learn: (wanted: number, given: number) => void;
  readonly add: (leased: Leased, begin: () => void) => void;
  /** Takes out those that have not begun. */
  readonly remove: (isMeant: (leased: Leased) => boolean) => Leased[];
  /** One of those that were added has been recorded or given back. */
  readonly ended: () => void;
  /** Under way or waiting to begin. */
  readonly size: () => number;
  readonly beginSoon: () => void;
}

export interface SilentQueueOptions {
  /** Under way or waiting to begin, at most. */
  readonly most: number;
  readonly mayBegin: (leased: Leased) => boolean;
  readonly hasSeveralEndpoints: () => boolean;
  readonly isStopping: () => boolean;
  /** A round is worth its cost: there is capacity, and there was more to lease. */
  readonly onCapacity: () => void;
}

export function createSilentQueue(options: SilentQueueOptions): SilentQueue {
  const { most, mayBegin, hasSeveralEndpoints, isStopping, onCapacity } = options;
  let waiting: { readonly leased: Leased; readonly begin: () => void }[] = [];
  let size = 0;
  let hasMore = false;
  let pacing = false;
  let nextAtMs = 0;

  function free(): number {
    const capacity = Math.min(AHEAD - waiting.length, most - size);
    return capacity < Math.min(AHEAD / 2, most) ? 0 : capacity;
  }

  function tellCapacity(): void {
    if (hasMore && free() > 0) onCapacity();
  }

  function beginSoon(): void {
    if (pacing || waiting.length === 0) return;
    pacing = true;
    const nowMs = performance.now();
    // From the time that was meant: late timers do not add up.
    nextAtMs = Math.max(nowMs, nextAtMs + (hasSeveralEndpoints() ? GAP_OF_SEVERAL_MS : GAP_MS));
    setTimeout(beginNext, isStopping() ? 0 : nextAtMs - nowMs);
  }

  function beginNext(): void {
    pacing = false;
    const at = waiting.findIndex(({ leased }) => mayBegin(leased));
    const [next] = at < 0 ? [] : waiting.splice(at, 1);
    // Those that may not begin now are checked again at the next call.
    if (!next) return;
    next.begin();
    tellCapacity();
    beginSoon();
  }

  return {
    free,
    learn(wanted, given) {
      if (wanted > 0) hasMore = given >= wanted / 2;
    },
    add(leased, begin) {
      size += 1;
      waiting.push({ leased, begin });
      beginSoon();
    },
    remove(isMeant) {
      const meant = waiting.filter(({ leased }) => isMeant(leased));
      waiting = waiting.filter((one) => !meant.includes(one));
      return meant.map(({ leased }) => leased);
    },
    ended() {
      size -= 1;
      tellCapacity();
    },
    size: () => size,
    beginSoon,
  };
}

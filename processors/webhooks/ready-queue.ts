/** Deliveries that are leased and not begun: while the next lease is asked for, there is work. */
import type { Leased } from "#core/redis/webhooks/leases.ts";

/** Requests begun in one turn of the event loop: more would keep all answers waiting, and then come all at once. */
const BEGUN_PER_TURN = 16;

export interface ReadyQueue {
  readonly add: (leased: Leased, begin: () => void) => void;
  /** Takes out those that have not begun. */
  readonly remove: (isMeant: (leased: Leased) => boolean) => Leased[];
  /** Begins what may begin, in the next turns of the event loop. */
  readonly beginSoon: () => void;
}

export interface ReadyQueueOptions {
  readonly free: () => number;
  readonly mayBegin: (leased: Leased) => boolean;
  /** Whether `mayBegin` is true of all, so that none has to be asked. */
  readonly mayAllBegin: () => boolean;
}

interface Ready {
  readonly leased: Leased;
  readonly begin: () => void;
}

export function createReadyQueue(options: ReadyQueueOptions): ReadyQueue {
  const { free, mayBegin, mayAllBegin } = options;
  let ready: Ready[] = [];
  let beginning = false;

  function beginSoon(): void {
    if (beginning || ready.length === 0) return;
    beginning = true;
    setImmediate(beginSome);
  }

  /** Those that find no slot free wait for the next answer, or for a slow one to give its slot back. */
  function beginSome(): void {
    beginning = false;
    const next = takeReady(Math.max(0, Math.min(free(), BEGUN_PER_TURN)));
    for (const { begin } of next) begin();
    if (next.length > 0) beginSoon();
  }

  function takeReady(most: number): Ready[] {
    if (mayAllBegin()) return ready.splice(0, most);
    const taken = new Set(ready.filter(({ leased }) => mayBegin(leased)).slice(0, most));
    ready = ready.filter((one) => !taken.has(one));
    return [...taken];
  }

  return {
    add(leased, begin) {
      ready.push({ leased, begin });
      beginSoon();
    },
    remove(isMeant) {
      const meant = ready.filter(({ leased }) => isMeant(leased));
      if (meant.length > 0) ready = ready.filter(({ leased }) => !isMeant(leased));
      return meant.map(({ leased }) => leased);
    },
    beginSoon,
  };
}

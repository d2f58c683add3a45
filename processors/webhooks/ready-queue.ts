/** Deliveries that are leased and not begun: while the next lease is asked for, there is work. */
import type { Leased } from "#core/webhooks/store/deliveries/leases.ts";

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
  /** Whether any may begin. */
  readonly hasCapacity: () => boolean;
  readonly mayBegin: (leased: Leased) => boolean;
}

interface Ready {
  readonly leased: Leased;
  readonly begin: () => void;
}

export function createReadyQueue(options: ReadyQueueOptions): ReadyQueue {
  const { hasCapacity, mayBegin } = options;
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
    let begun = 0;
    let seen = 0;
    const left: Ready[] = [];
    for (const one of hasCapacity() ? ready : []) {
      if (begun === BEGUN_PER_TURN) break;
      seen += 1;
      if (mayBegin(one.leased)) {
        begun += 1;
        one.begin();
      } else left.push(one);
    }
    if (begun === 0) return;
    ready.splice(0, seen, ...left);
    beginSoon();
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

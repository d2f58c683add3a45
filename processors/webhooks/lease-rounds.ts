/** Rounds of leasing: when the next one is worth its cost, and what it asks each partition for. */

import { untilTickMs } from "#core/platform/process/tick.ts";
import { PARTITIONS } from "#core/platform/redis/keys.ts";
import type { Handout, LeaseTerms, Share } from "#core/webhooks/store/deliveries/leases.ts";
import { addSilent, shareOut } from "./share-out.ts";

/** Under load a round waits for half of the slots, but not longer than this: few large leases cost least. */
const FULL_ROUND_WAIT_MS = 10;
/** Otherwise rounds are no closer than this: what ends in between shares the next one. */
const ROUND_GAP_MS = 2;
/** Every fifth round retries come first, whatever first attempts there are. Odd, since busy partitions are asked by halves. */
const RETRIES_FIRST_EVERY = 5;
/** Busy partitions asked in one round under load; all others are looked at this often even then. */
const BUSY_PER_ROUND = 8;
const LOOK_AT_ALL_MS = 20;
/** Deliveries that are queued are announced; retries and leases that have ended are found within this time. */
const LOOK_ROUND_MS = 1_000;

/** What may be leased. */
export interface Capacity {
  readonly free: number;
  /** The same for companies that have little under way: they need not wait for the others. */
  readonly freeForOthers: number;
  readonly freeFailing: number;
  readonly freeSilent: number;
  readonly silentPartitions: ReadonlySet<number>;
}

export interface Round {
  readonly beganAtMs: number;
  readonly shares: readonly Share[];
  readonly retries: LeaseTerms["retries"];
}

export interface LeaseRounds {
  /** There is work, or room for it: the next round comes without a wait. */
  readonly hurry: () => void;
  /** A slot is free. @returns whether a round is wanted: slots were short, and not the endpoints' own limits */
  readonly slotFreed: () => boolean;
  readonly isEager: () => boolean;
  /** Whether a round is worth its cost now. */
  readonly isWorth: (capacity: Capacity, nowMs: number) => boolean;
  /** How long to wait before looking again whether a round is worth its cost. */
  readonly gapMs: (nowMs: number) => number;
  /** When the next round comes in any case. */
  readonly nextLookMs: () => number;
  readonly next: (
    capacity: Capacity,
    nowMs: number,
    mayLease: (partition: number) => boolean,
  ) => Round;
  /** @returns how many deliveries were given to silent endpoints */
  readonly learn: (round: Round, handout: Handout, serviceNowMs: number) => number;
}

/** @param slots of this process, for endpoints that are not silent */
export function createLeaseRounds(slots: number): LeaseRounds {
  /** Partitions that had more to give, and those of them that had first attempts, when they were last asked. */
  let busy: ReadonlySet<number> = new Set();
  let withFirsts: ReadonlySet<number> = new Set();
  let turn = 0;
  let eager = true;
  let isLoaded = false;
  /** No slot was free when there was work. */
  let isShort = false;
  let lookRoundAtMs = 0;
  let lookAtAllAtMs = 0;
  let lastRoundAtMs = 0;

  return {
    hurry() {
      eager = true;
    },
    slotFreed() {
      if (busy.size === 0 && !isShort) return false;
      eager = true;
      return true;
    },
    isEager: () => eager,
    gapMs: (nowMs) =>
      Math.max(ROUND_GAP_MS, isLoaded ? lastRoundAtMs + FULL_ROUND_WAIT_MS - nowMs : 0),
    nextLookMs: () => lookRoundAtMs,
    isWorth({ free, freeForOthers, freeSilent }, nowMs) {
      if (freeForOthers <= 0 && freeSilent === 0) {
        eager = false;
        isShort = true;
        return false;
      }
      isLoaded = busy.size > 0 && free < slots / 2;
      if (isLoaded && nowMs < lastRoundAtMs + FULL_ROUND_WAIT_MS) return false;
      return eager || nowMs >= lookRoundAtMs;
    },
    next({ freeForOthers, freeFailing, freeSilent, silentPartitions }, nowMs, mayLease) {
      turn += 1;
      eager = false;
      isShort = false;
      lastRoundAtMs = nowMs;
      lookRoundAtMs = nowMs + untilTickMs(LOOK_ROUND_MS, nowMs);
      const looksAtAll = busy.size <= BUSY_PER_ROUND || nowMs >= lookAtAllAtMs;
      if (looksAtAll) lookAtAllAtMs = nowMs + LOOK_AT_ALL_MS;
      const most = looksAtAll ? PARTITIONS : BUSY_PER_ROUND;
      const dealt = shareOut(freeForOthers, freeFailing, busy, turn, most);
      const shares = addSilent(dealt, freeSilent, silentPartitions, turn);
      return {
        beganAtMs: nowMs,
        shares: shares.filter(({ partition }) => mayLease(partition)),
        retries: retriesOf(turn, withFirsts.size > 0),
      };
    },
    learn({ beganAtMs, shares, retries }, { slots: given, more, cut, nextPauseEndMs }, nowMs) {
      const placed = given.filter((slot) => !slot.silent);
      const asking = shares.filter(({ wanted }) => wanted > 0);
      const asked = new Set(asking.map(({ partition }) => partition));
      withFirsts = withFirsts.difference(asked).union(more);
      busy = busy.difference(asked).union(more).union(fullOf(asking, placed));
      // Endpoints behind those that were named, and retries held back in favour of first attempts, are leased immediately.
      if (placed.length + more.size + cut.size > 0 || retries === "none") eager = true;
      if (nextPauseEndMs !== null) {
        lookRoundAtMs = Math.min(lookRoundAtMs, beganAtMs + Math.max(0, nextPauseEndMs - nowMs));
      }
      return given.length - placed.length;
    },
  };
}

function retriesOf(turn: number, hasFirsts: boolean): LeaseTerms["retries"] {
  if (turn % RETRIES_FIRST_EVERY === 0) return "first";
  return hasFirsts ? "none" : "last";
}

/** Partitions that have given all they were asked for. */
function fullOf(
  asking: readonly Share[],
  placed: readonly { readonly partition: number }[],
): Set<number> {
  const given = Map.groupBy(placed, ({ partition }) => partition);
  const full = asking.filter((share) => given.get(share.partition)?.length === share.wanted);
  return new Set(full.map(({ partition }) => partition));
}

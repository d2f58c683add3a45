import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Handout, Leased } from "#core/webhooks/store/deliveries/leases.ts";
import { mostSilent } from "#processors/webhooks/deliver-limits.ts";
import {
  answered,
  capacityOfCompany,
  giveBack,
  learn,
  newSchedule,
  next,
  nextRound,
  queue,
  recorded,
  type Schedule,
} from "#processors/webhooks/scheduler.ts";

const [IN_FLIGHT, EXTRA, BESIDES] = [10, 5, 30];
const LIMITS = { inFlight: IN_FLIGHT, slowMs: 1_000, silentInFlight: 100 };
const [GREEDY, NEWCOMER] = [1, 2];
const NOW_MS = 5_000;
const PARTITIONS = 16;
const ANYWHERE = () => true;

function leasedOf(some: Partial<Leased> = {}): Leased {
  const slot = { partition: 3, endpointId: "ep", deliveryId: "dlv", lease: "1", most: 256 };
  return { ...slot, failing: false, silent: false, companyId: GREEDY, ...some } as Leased;
}

function lease(state: Schedule, some: Partial<Leased> = {}): Leased {
  const leased = leasedOf(some);
  queue(state, leased, NOW_MS);
  return leased;
}

const many = <T>(n: number, make: () => T): T[] => Array.from({ length: n }, make);
const begunBy = (state: Schedule, nowMs = NOW_MS) => next(state, nowMs, ANYWHERE).begin;
const capacity = (state: Schedule, companyId: number) =>
  capacityOfCompany(state, companyId, NOW_MS);

function roundOf(state: Schedule, nowMs = NOW_MS) {
  return nextRound({ ...state, isEager: true }, nowMs, ANYWHERE);
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

const scheduleOf = (limits: Schedule["limits"], partitions = PARTITIONS) =>
  newSchedule(
    limits,
    Array.from({ length: partitions }, (_, n) => n),
  );

describe("companies", () => {
  test("one that is alone begins as many as there are slots, and leases half as many ahead", () => {
    const state = scheduleOf(LIMITS);
    while (capacity(state, GREEDY) > 0) lease(state);
    expect(state.held.size).toBe(IN_FLIGHT + EXTRA);
    expect(begunBy(state)).toHaveLength(IN_FLIGHT);
    expect(begunBy(state)).toEqual([]);
    expect(capacity(state, GREEDY)).toBe(0);
  });

  test("whoever comes while one company holds every slot may lease and begin at once", () => {
    const state = scheduleOf(LIMITS);
    while (capacity(state, GREEDY) > 0) lease(state);
    begunBy(state);
    expect(capacity(state, NEWCOMER)).toBeGreaterThan(0);
    const newcomer = lease(state, { companyId: NEWCOMER });
    expect(begunBy(state)).toEqual([newcomer]);
  });

  test("slow requests of one company take half of what may be under way, and not one more", () => {
    const state = scheduleOf({ ...LIMITS, slowMs: 0 });
    while (capacity(state, GREEDY) > 0) {
      lease(state);
      begunBy(state);
    }
    expect(state.held.size).toBe(Math.ceil((IN_FLIGHT + EXTRA + BESIDES) / 2));
    expect(capacity(state, NEWCOMER)).toBeGreaterThan(0);
  });

  test("what has ended, or was given back, counts no more", () => {
    const state = scheduleOf(LIMITS);
    many(IN_FLIGHT + EXTRA, () => lease(state, { failing: true }));
    for (const leased of begunBy(state)) {
      answered(state, leased, { beganAtMs: NOW_MS, endedAtMs: NOW_MS, isAnswered: true });
      recorded(state, leased);
    }
    expect(state.held.size).toBe(EXTRA);
    giveBack(state, ANYWHERE);
    expect(capacity(state, GREEDY)).toBe(IN_FLIGHT + EXTRA);
    expect(state).toMatchObject({ waiting: [], failing: 0, heldSilent: 0 });
    expect([state.held.size, state.inSlots.size, state.companies.size]).toEqual([0, 0, 0]);
  });
});

describe("what begins", () => {
  test("begins in the order of the leases, at most 16 in one turn of the event loop", () => {
    const state = scheduleOf({ ...LIMITS, inFlight: 100 });
    const leased = many(17, () => lease(state));
    const first = next(state, NOW_MS, ANYWHERE);
    expect(first).toEqual({ begin: leased.slice(0, 16), againAtMs: NOW_MS });
    expect(next(state, NOW_MS, ANYWHERE)).toEqual({ begin: leased.slice(16), againAtMs: null });
  });

  test("a delivery gives its slot back after a second without an answer", () => {
    const state = scheduleOf(LIMITS);
    const leased = many(IN_FLIGHT + 1, () => lease(state));
    begunBy(state);
    expect(begunBy(state, NOW_MS + LIMITS.slowMs - 1)).toEqual([]);
    expect(begunBy(state, NOW_MS + LIMITS.slowMs)).toEqual(leased.slice(-1));
  });

  test("nothing begins of a partition that could not record it, and others overtake it", () => {
    const state = scheduleOf(LIMITS);
    const [away, silentAway] = [lease(state), lease(state, { silent: true })];
    const others = [lease(state, { partition: 4 }), lease(state, { partition: 4, silent: true })];
    const isThere = (partition: number) => partition === 4;
    expect(next(state, NOW_MS, isThere)).toMatchObject({ begin: others });
    expect(next(state, NOW_MS + 10, isThere)).toEqual({ begin: [], againAtMs: null });
    expect(next(state, NOW_MS + 10, ANYWHERE).begin).toEqual([away, silentAway]);
  });

  test("requests to one silent endpoint begin every 10 ms and to several every 5, late timers or not", () => {
    const state = scheduleOf(LIMITS);
    many(5, () => lease(state, { silent: true }));
    const remembered = { partition: 3, untilMs: Infinity };
    state.silentEndpoints.set("ep", remembered);
    expect(next(state, NOW_MS, ANYWHERE)).toMatchObject({ againAtMs: NOW_MS + 10 });
    expect(next(state, NOW_MS + 9, ANYWHERE)).toEqual({ begin: [], againAtMs: NOW_MS + 10 });
    expect(next(state, NOW_MS + 13, ANYWHERE)).toMatchObject({ againAtMs: NOW_MS + 20 });
    state.silentEndpoints.set("other", remembered);
    expect(next(state, NOW_MS + 20, ANYWHERE)).toMatchObject({ againAtMs: NOW_MS + 25 });
  });

  test("a process that stops begins what it can at once and gives back the rest", () => {
    const state = scheduleOf(LIMITS);
    const [one, two] = many(2, () => lease(state, { silent: true, partition: 4 }));
    many(2, () => lease(state));
    lease(state, { silent: true });
    state.isStopping = true;
    const isThere = (partition: number) => partition === 4;
    expect(next(state, NOW_MS, isThere)).toMatchObject({ begin: [one], againAtMs: NOW_MS });
    expect(next(state, NOW_MS, isThere)).toMatchObject({ begin: [two], againAtMs: null });
    expect([...state.held]).toEqual([one, two] as Leased[]);
  });
});

describe("silent endpoints", () => {
  const ends = (state: Schedule, beganAtMs: number, endedAtMs: number, isAnswered: boolean) =>
    answered(state, leasedOf(), { beganAtMs, endedAtMs, isAnswered });
  const isSilent = (state: Schedule) => state.silentEndpoints.has("ep");

  test("an endpoint is silent once an attempt has timed out, and one that refuses is not", () => {
    const state = scheduleOf(LIMITS);
    ends(state, 0, LIMITS.slowMs - 1, false);
    expect(isSilent(state)).toBe(false);
    ends(state, 0, LIMITS.slowMs, false);
    expect(isSilent(state)).toBe(true);
  });

  test("one that answered another attempt meanwhile is not", () => {
    const state = scheduleOf(LIMITS);
    ends(state, 0, 5_000, true);
    ends(state, 4_000, 14_000, false);
    expect(isSilent(state)).toBe(false);
    ends(state, 5_001, 15_000, false);
    expect(isSilent(state)).toBe(true);
  });

  test("an answer ends it, and so does a minute without a timeout", () => {
    const state = scheduleOf(LIMITS);
    ends(state, 0, 10_000, false);
    ends(state, 0, 10_001, true);
    expect(isSilent(state)).toBe(false);
    ends(state, 10_002, 20_000, false);
    const silentAt = (nowMs: number) => sum(roundOf(state, nowMs)?.shares.map(wantedSilent) ?? []);
    expect(silentAt(79_999)).toBeGreaterThan(0);
    expect(silentAt(80_000)).toBe(0);
    expect(isSilent(state)).toBe(false);
  });

  test("they take no slots, whatever is under way to them", () => {
    const state = scheduleOf(LIMITS);
    const leased = many(LIMITS.silentInFlight, () => lease(state, { silent: true }));
    expect(capacity(state, GREEDY)).toBe(IN_FLIGHT + EXTRA);
    for (const one of leased) recorded(state, one);
    expect([state.held.size, state.heldSilent]).toEqual([0, 0]);
  });

  test.each([
    [null, 2_000],
    [8_000, 2_000],
    [7_999, 1_999],
    [1_024, 256],
  ])("of %p open files at most %i wait for silent endpoints", (openFiles, most) => {
    expect(mostSilent(openFiles)).toBe(most);
  });
});

const wantedSilent = (share: { readonly wantedSilent: number }) => share.wantedSilent;
const partitionsOf = (state: Schedule) =>
  roundOf(state)?.shares.map(({ partition }) => partition) ?? [];

describe("rounds", () => {
  const partitions = fc.uniqueArray(fc.integer({ min: 0, max: PARTITIONS - 1 }));

  test("the shares sum up to what is free, each partition at most once, and silent endpoints take none of it", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(1, 4, PARTITIONS),
        fc.integer({ min: 1, max: 300 }),
        partitions,
        partitions,
        fc.nat(1_000),
        fc.boolean(),
        (count, inFlight, drawnBusy, drawnSilent, turn, isLookDue) => {
          const state = scheduleOf({ ...LIMITS, inFlight }, count);
          const silent = drawnSilent.filter((partition) => partition < count);
          state.busy = new Set(drawnBusy.filter((partition) => partition < count));
          state.turn = turn;
          state.lookAtAllAtMs = isLookDue ? NOW_MS : NOW_MS + 1;
          for (const partition of silent) {
            state.silentEndpoints.set(`ep_${partition}`, { partition, untilMs: Infinity });
          }
          const shares = roundOf(state)?.shares ?? [];
          const half = Math.floor(inFlight / 2);
          expect(sum(shares.map(({ wanted }) => wanted))).toBe(inFlight + 2 * half);
          expect(sum(shares.map(({ wantedFailing }) => wantedFailing))).toBeLessThanOrEqual(half);
          expect(sum(shares.map(wantedSilent))).toBe(silent.length === 0 ? 0 : 32);
          expect(new Set(shares.map(({ partition }) => partition)).size).toBe(shares.length);
          const askedSilent = shares.filter((share) => share.wantedSilent > 0);
          expect(askedSilent.every(({ partition }) => silent.includes(partition))).toBe(true);
        },
      ),
    );
  });

  test("every partition has its turn within 16 rounds, however few slots are free", () => {
    const state = scheduleOf({ ...LIMITS, inFlight: 1 });
    const asked = Array.from({ length: PARTITIONS }, (_, turn) =>
      partitionsOf({ ...state, turn }),
    ).flat();
    expect(asked).toHaveLength(PARTITIONS);
    expect(new Set(asked).size).toBe(PARTITIONS);
  });

  test("busy partitions come first and get most", () => {
    const state = { ...scheduleOf({ ...LIMITS, inFlight: 100 }), busy: new Set([3]) };
    const [first, ...others] = roundOf(state)?.shares ?? [];
    expect(first?.partition).toBe(3);
    expect(first?.wanted).toBeGreaterThan(99);
    expect(others).toHaveLength(PARTITIONS - 1);
  });

  test("while many partitions are busy, 8 are asked in a round and each has its turn in the second", () => {
    const state = scheduleOf({ ...LIMITS, inFlight: 100 });
    state.busy = new Set(Array.from({ length: PARTITIONS }, (_, n) => n));
    state.lookAtAllAtMs = NOW_MS + 1;
    const rounds = [0, 1].map((turn) => partitionsOf({ ...state, turn }));
    expect(rounds.map((asked) => asked.length)).toEqual([8, 8]);
    expect(new Set(rounds.flat()).size).toBe(PARTITIONS);
  });

  test("a partition that is unavailable is not asked", () => {
    const round = nextRound(scheduleOf(LIMITS), NOW_MS, (partition) => partition !== 3);
    expect(round?.shares.map(({ partition }) => partition)).not.toContain(3);
  });

  test("retries come behind first attempts, wait while there are many, and come first in every fifth round", () => {
    const state = scheduleOf(LIMITS);
    const retriesAt = (turn: number) => roundOf({ ...state, turn: turn - 1 })?.retries;
    expect([1, 5].map(retriesAt)).toEqual(["last", "first"]);
    state.withFirsts = new Set([3]);
    expect([6, 7, 8, 9, 10].map(retriesAt)).toEqual(["none", "none", "none", "none", "first"]);
  });

  test("an idle process looks every second, and at once when something is announced", () => {
    const state = scheduleOf(LIMITS);
    expect(nextRound(state, NOW_MS, ANYWHERE)).not.toBeNull();
    expect(nextRound(state, NOW_MS + 999, ANYWHERE)).toBeNull();
    expect(nextRound(state, NOW_MS + 1_000, ANYWHERE)).not.toBeNull();
    state.isEager = true;
    expect(nextRound(state, NOW_MS + 1_001, ANYWHERE)).not.toBeNull();
  });

  test("the end of a pause of an endpoint is a time to look", () => {
    const state = scheduleOf(LIMITS);
    const round = nextRound(state, NOW_MS, ANYWHERE);
    if (round === null) throw new Error("no round");
    learn(state, round, { ...NOTHING_LEASED, nextPauseEndMs: 90_300 }, 90_000);
    expect(nextRound(state, NOW_MS + 299, ANYWHERE)).toBeNull();
    expect(nextRound(state, NOW_MS + 300, ANYWHERE)).not.toBeNull();
  });

  test("without a free slot there is no round until a request is answered", () => {
    const state = scheduleOf(LIMITS);
    many(IN_FLIGHT + 2 * EXTRA, () => lease(state));
    expect(nextRound(state, NOW_MS, ANYWHERE)).toBeNull();
    const [first = leasedOf()] = begunBy(state);
    answered(state, first, { beganAtMs: NOW_MS, endedAtMs: NOW_MS, isAnswered: true });
    expect(nextRound(state, NOW_MS, ANYWHERE)?.shares).toHaveLength(1);
  });

  test("a partition that gave all it was asked for is busy, and no longer when it gives less", () => {
    const state = scheduleOf(LIMITS);
    const round = { beganAtMs: NOW_MS, retries: "last" as const };
    const share = { partition: 3, wanted: 1, wantedFailing: 0, wantedSilent: 0 };
    learn(state, { ...round, shares: [share] }, { ...NOTHING_LEASED, slots: [leasedOf()] }, 0);
    expect([...state.busy]).toEqual([3]);
    learn(state, { ...round, shares: [share] }, NOTHING_LEASED, 0);
    expect([...state.busy]).toEqual([]);
  });
});

const NOTHING_LEASED: Handout = {
  slots: [],
  more: new Set(),
  cut: new Set(),
  nextPauseEndMs: null,
  failures: new Map(),
};

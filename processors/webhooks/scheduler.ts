/**
 * What is sent next, as data: what a round leases from each partition (`nextRound`), and which leased deliveries begin now
 * (`next`). It knows no store, no timer and no clock: `deliver.ts` passes the time of `performance.now()` and does the rest.
 * The queues of the endpoints, with their concurrency and rates, are in the store (`lease.lua`). The functions change the
 * state in place, since each is called for every delivery.
 *
 * | what competes                  | rule                                                                                  |
 * |--------------------------------|---------------------------------------------------------------------------------------|
 * | deliveries that are leased     | begin in the order of their leases, as slots become free; after a second without an   |
 * |                                | answer a delivery gives its slot back                                                 |
 * | companies                      | one may use all slots while it is alone. Beyond them there are half as many for those |
 * |                                | who have less than is still free there, so a newcomer begins immediately. Of all that |
 * |                                | may be under way a company has no more than is still free: half of it if it is alone, |
 * |                                | a third if there are two                                                              |
 * | failing and healthy endpoints  | failing ones have half of the slots at most                                           |
 * | silent and answering endpoints | a request to a silent one takes a socket and no slot; they begin one after the other, |
 * |                                | so that their handshakes delay nobody                                                 |
 * | partitions                     | each has its share of a round; most of it goes to those that had more to give         |
 * | first attempts and retries     | every fifth round begins with retries                                                 |
 *
 * An endpoint is silent after an attempt has timed out and nothing else was answered meanwhile: a receiver that hangs, or
 * an address that nobody listens at. Any answer, or a minute without such an attempt, ends it. One that answers late, or every
 * other time, keeps its slots: they hold back what a slow receiver cannot take. Each process finds out on its own.
 */

import { untilTickMs } from "#core/platform/process/tick.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type {
  Handout,
  Leased,
  LeaseTerms,
  Share,
  Slot,
} from "#core/webhooks/store/deliveries/leases.ts";
import type { DeliverLimits } from "./deliver-limits.ts";

/** How many times the slots are under way without one: slow requests, and answers that are being recorded. */
const BESIDES = limit(
  3,
  "deliveries in flight without a slot, in slots of a process",
  "nothing more is leased; a company has half of it at most",
);
/** Requests begun in one turn of the event loop: more would keep all answers waiting, and then come all at once. */
const BEGUN_PER_TURN = 16;

/** Between two requests to a silent endpoint: 100 a second, which is what one needs. A TLS handshake takes a millisecond. */
const SILENT_GAP_MS = limit(
  10,
  "time between two requests begun to one silent endpoint in a process",
  "the next ones wait for their turn",
);
/** With several silent endpoints: 200 a second. */
const SEVERAL_SILENT_GAP_MS = limit(
  5,
  "time between two requests begun to several silent endpoints in a process",
  "the next ones wait for their turn",
);
/** Leased ahead for silent endpoints; a round is worth its cost for half of it. */
const SILENT_AHEAD = 32;
/** Longer than any request. */
const SILENCE_REMEMBERED_MS = 60_000;

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
/** Deliveries of a company that take slots, or have taken one. */
interface CompanyUse {
  /** Leased. */
  held: number;
  /** In a slot or waiting for one. */
  slots: number;
  /** In a slot. */
  begun: number;
}

export interface Schedule {
  readonly partitions: readonly number[];
  readonly limits: Pick<DeliverLimits, "inFlight" | "slowMs" | "silentInFlight">;
  /** Every delivery from its lease until its result is recorded: its lease is to be renewed. */
  readonly held: Set<Slot>;
  /** Leased and not begun, in order. */
  waiting: Leased[];
  /** The same for silent endpoints. */
  waitingSilent: Leased[];
  /** Begun, without an answer and in a slot, with the time they began: the oldest come first. */
  readonly inSlots: Map<Leased, number>;
  readonly companies: Map<number, CompanyUse>;
  /** Of `held`: those of silent endpoints. */
  heldSilent: number;
  /** Of failing endpoints that are not silent, without an answer, begun or not. */
  failing: number;
  /** When the next request to a silent endpoint may begin. */
  silentDueMs: number;
  /** Silent endpoints had more to give. */
  hasMoreSilent: boolean;
  readonly silentEndpoints: Map<string, { readonly partition: number; readonly untilMs: number }>;
  /** Last answers by endpoint, the oldest first. */
  readonly answeredAtMs: Map<string, number>;
  /** Partitions that had more to give, and those of them that had first attempts, when they were last asked. */
  busy: ReadonlySet<number>;
  withFirsts: ReadonlySet<number>;
  /** Moves on with every round, so that whatever cannot be divided goes round. */
  turn: number;
  /** There is work, or capacity for it: the next round comes without a wait. */
  isEager: boolean;
  isLoaded: boolean;
  /** No slot was free when there was work. */
  isShort: boolean;
  /** Nothing more is leased, and requests to silent endpoints are not paced. */
  isStopping: boolean;
  lastRoundAtMs: number;
  /** When the next round comes in any case. */
  lookAtMs: number;
  lookAtAllAtMs: number;
}

export function newSchedule(
  limits: Schedule["limits"],
  partitions: Schedule["partitions"],
): Schedule {
  return {
    partitions,
    limits,
    held: new Set(),
    waiting: [],
    waitingSilent: [],
    inSlots: new Map(),
    companies: new Map(),
    heldSilent: 0,
    failing: 0,
    silentDueMs: 0,
    hasMoreSilent: false,
    silentEndpoints: new Map(),
    answeredAtMs: new Map(),
    busy: new Set(),
    withFirsts: new Set(),
    turn: 0,
    isEager: true,
    isLoaded: false,
    isShort: false,
    isStopping: false,
    lastRoundAtMs: 0,
    lookAtMs: 0,
    lookAtAllAtMs: 0,
  };
}

// What may begin.

export interface Next {
  readonly begin: readonly Leased[];
  /** When to ask again if nothing else happens; null = not before something does. */
  readonly againAtMs: number | null;
}

/** @param mayBegin whether the store of a partition could record a result */
export function next(
  state: Schedule,
  nowMs: number,
  mayBegin: (partition: number) => boolean,
): Next {
  if (state.isStopping) giveBack(state, ({ partition }) => !mayBegin(partition));
  const begin = beginInSlots(state, nowMs, mayBegin);
  const isMore = begin.length === BEGUN_PER_TURN && state.waiting.length > 0;
  const isDue = state.isStopping || state.silentDueMs <= nowMs;
  const at = isDue ? state.waitingSilent.findIndex((one) => mayBegin(one.partition)) : -1;
  for (const leased of at < 0 ? [] : state.waitingSilent.splice(at, 1)) {
    // From the time that was meant: late timers do not add up.
    const gapMs = state.silentEndpoints.size > 1 ? SEVERAL_SILENT_GAP_MS : SILENT_GAP_MS;
    state.silentDueMs = Math.max(nowMs, state.silentDueMs + gapMs);
    begin.push(leased);
    wantSilent(state);
  }
  const isPaced = state.waitingSilent.length > 0 && !(isDue && at < 0);
  const silentAtMs = state.isStopping ? nowMs : state.silentDueMs;
  return { begin, againAtMs: isMore ? nowMs : isPaced ? silentAtMs : null };
}

/** Those that find no slot free wait for the next answer, or for a slow one to give its slot back. */
function beginInSlots(
  state: Schedule,
  nowMs: number,
  mayBegin: (partition: number) => boolean,
): Leased[] {
  const { waiting, inSlots, limits } = state;
  const slots = limits.inFlight + extraOf(limits);
  const [begin, left]: [Leased[], Leased[]] = [[], []];
  let seen = 0;
  leaveSlow(state, nowMs);
  for (const leased of waiting) {
    if (begin.length === BEGUN_PER_TURN || inSlots.size >= slots) break;
    seen += 1;
    const company = useOf(state, leased.companyId);
    const hasSlot = inSlots.size < limits.inFlight || company.begun < slots - inSlots.size;
    if (hasSlot && mayBegin(leased.partition)) {
      inSlots.set(leased, nowMs);
      company.begun += 1;
      begin.push(leased);
    } else left.push(leased);
  }
  if (begin.length > 0) waiting.splice(0, seen, ...left);
  return begin;
}

/** Slow requests give their slots back. */
function leaveSlow(state: Schedule, nowMs: number): void {
  for (const [leased, beganAtMs] of state.inSlots) {
    if (beganAtMs > nowMs - state.limits.slowMs) break;
    leaveSlot(state, leased);
  }
}

function leaveSlot(state: Schedule, leased: Leased): void {
  if (!state.inSlots.delete(leased)) return;
  const company = useOf(state, leased.companyId);
  company.slots -= 1;
  company.begun -= 1;
}

function useOf({ companies }: Schedule, companyId: number): CompanyUse {
  let use = companies.get(companyId);
  if (use === undefined) {
    use = { held: 0, slots: 0, begun: 0 };
    companies.set(companyId, use);
  }
  return use;
}

// What happens to a delivery, in this order.

/** It has a lease of this process. */
export function hold(state: Schedule, slot: Slot): void {
  state.held.add(slot);
  if (slot.silent) state.heldSilent += 1;
  else useOf(state, slot.companyId).held += 1;
}

/** It is known what is to be sent. */
export function queue(state: Schedule, leased: Leased, nowMs: number): void {
  hold(state, leased);
  if (leased.silent) {
    if (state.waitingSilent.length === 0) state.silentDueMs = Math.max(nowMs, state.silentDueMs);
    state.waitingSilent.push(leased);
    return;
  }
  state.waiting.push(leased);
  useOf(state, leased.companyId).slots += 1;
  if (leased.failing) state.failing += 1;
}

export interface AttemptEnd {
  readonly beganAtMs: number;
  readonly endedAtMs: number;
  /** Whether there was a status line; null = nothing was sent. */
  readonly isAnswered: boolean | null;
}

/** Its attempt has ended: its slot is free, and its endpoint has capacity once the result is recorded. */
export function answered(state: Schedule, leased: Leased, end: AttemptEnd): void {
  if (!leased.silent) {
    leaveSlot(state, leased);
    if (leased.failing) state.failing -= 1;
    // A round is wanted where slots were short, and not the endpoints' own limits.
    if (state.busy.size > 0 || state.isShort) state.isEager = true;
  }
  if (end.isAnswered) noteAnswer(state, leased.endpointId, end.endedAtMs);
  else if (end.isAnswered === false) noteSilence(state, leased, end);
}

/** Recorded, it makes capacity for the next one of its endpoint. */
export function recorded(state: Schedule, slot: Slot): void {
  drop(state, slot);
  if (slot.silent) wantSilent(state);
  else state.isEager = true;
}

/** It is never sent, or not by this process. */
export function drop(state: Schedule, slot: Slot): void {
  if (!state.held.delete(slot)) return;
  if (slot.silent) state.heldSilent -= 1;
  else {
    const company = useOf(state, slot.companyId);
    company.held -= 1;
    if (company.held === 0) state.companies.delete(slot.companyId);
  }
}

/** Leases that have not begun are not renewed: the deliveries go back to their queues. */
export function giveBack(state: Schedule, isMeant: (leased: Leased) => boolean): void {
  const back = [...state.waiting, ...state.waitingSilent].filter(isMeant);
  state.waiting = state.waiting.filter((one) => !isMeant(one));
  state.waitingSilent = state.waitingSilent.filter((one) => !isMeant(one));
  for (const leased of back) {
    if (!leased.silent) {
      useOf(state, leased.companyId).slots -= 1;
      if (leased.failing) state.failing -= 1;
    }
    drop(state, leased);
    if (leased.silent) wantSilent(state);
  }
}

// Silent endpoints.

function noteAnswer(state: Schedule, endpointId: string, atMs: number): void {
  const { silentEndpoints, answeredAtMs } = state;
  silentEndpoints.delete(endpointId);
  answeredAtMs.delete(endpointId);
  answeredAtMs.set(endpointId, atMs);
  for (const [id, lastMs] of answeredAtMs) {
    if (lastMs > atMs - SILENCE_REMEMBERED_MS) break;
    answeredAtMs.delete(id);
  }
}

/** An attempt that ends soon without an answer was refused, and not kept waiting. */
function noteSilence(
  { limits, silentEndpoints, answeredAtMs }: Schedule,
  { endpointId, partition }: Slot,
  { beganAtMs, endedAtMs }: AttemptEnd,
): void {
  if (endedAtMs - beganAtMs < limits.slowMs) return;
  if ((answeredAtMs.get(endpointId) ?? -Infinity) >= beganAtMs) return;
  silentEndpoints.set(endpointId, { partition, untilMs: endedAtMs + SILENCE_REMEMBERED_MS });
}

function silentPartitions({ silentEndpoints }: Schedule, nowMs: number): ReadonlySet<number> {
  for (const [id, { untilMs }] of silentEndpoints) if (untilMs <= nowMs) silentEndpoints.delete(id);
  return new Set([...silentEndpoints.values()].map(({ partition }) => partition));
}

/** How many may be leased for silent endpoints: none, or enough to be worth a round. */
function freeSilent({ limits, waitingSilent, heldSilent }: Schedule): number {
  const most = limits.silentInFlight;
  const free = Math.min(SILENT_AHEAD - waitingSilent.length, most - heldSilent);
  return free < Math.min(SILENT_AHEAD / 2, most) ? 0 : free;
}

/** They have no slot to give back: the next round comes when it can lease many of them. */
function wantSilent(state: Schedule): void {
  if (state.hasMoreSilent && freeSilent(state) > 0) state.isEager = true;
}

// What may be leased.

function extraOf({ inFlight }: Schedule["limits"]): number {
  return Math.floor(inFlight / 2);
}

function freeSlots(state: Schedule, nowMs: number): number {
  leaveSlow(state, nowMs);
  const { limits, inSlots, waiting } = state;
  return limits.inFlight + extraOf(limits) - inSlots.size - waiting.length;
}

function freeInAll({ limits, held, heldSilent }: Schedule): number {
  const most = limits.inFlight + extraOf(limits) + BESIDES * limits.inFlight;
  return most - (held.size - heldSilent);
}

/** With so many more a company has as many as are left free. */
const halfOf = (n: number) => Math.ceil(n / 2);

/** How many slots a company may have besides those that it has. */
export function capacityOfCompany(state: Schedule, companyId: number, nowMs: number): number {
  const free = freeSlots(state, nowMs);
  const { held = 0, slots = 0 } = state.companies.get(companyId) ?? {};
  const beyond = halfOf(free + extraOf(state.limits) - slots);
  return Math.max(0, Math.min(Math.max(free, beyond), halfOf(freeInAll(state) - held)));
}

export interface Round {
  readonly beganAtMs: number;
  readonly shares: readonly Share[];
  readonly retries: LeaseTerms["retries"];
}

/** @returns null if a round is not worth its cost now */
export function nextRound(
  state: Schedule,
  nowMs: number,
  mayLease: (partition: number) => boolean,
): Round | null {
  const { limits, busy } = state;
  const slots = freeSlots(state, nowMs);
  const silent = silentPartitions(state, nowMs);
  const free = {
    // Companies that have little under way need not wait for the others.
    slots: Math.min(slots + extraOf(limits), freeInAll(state)),
    failing: extraOf(limits) - state.failing,
    silent: silent.size === 0 ? 0 : freeSilent(state),
  };
  if (free.slots <= 0 && free.silent === 0) {
    state.isEager = false;
    state.isShort = true;
    return null;
  }
  state.isLoaded = busy.size > 0 && Math.min(slots, freeInAll(state)) < limits.inFlight / 2;
  if (state.isLoaded && nowMs < state.lastRoundAtMs + FULL_ROUND_WAIT_MS) return null;
  if (!state.isEager && nowMs < state.lookAtMs) return null;
  state.turn += 1;
  state.isEager = false;
  state.isShort = false;
  state.lastRoundAtMs = nowMs;
  state.lookAtMs = nowMs + untilTickMs(LOOK_ROUND_MS, nowMs);
  const shares = sharesOf(state, free, silent, partitionsAsked(state, nowMs));
  return {
    beganAtMs: nowMs,
    shares: shares.filter(({ partition }) => mayLease(partition)),
    retries: retriesOf(state),
  };
}

/** How long to wait before looking again whether a round is worth its cost. */
export function gapMs({ isLoaded, lastRoundAtMs }: Schedule, nowMs: number): number {
  return Math.max(ROUND_GAP_MS, isLoaded ? lastRoundAtMs + FULL_ROUND_WAIT_MS - nowMs : 0);
}

/** Partitions that have a share under load: few large ones are cheaper than many small ones. */
function partitionsAsked(state: Schedule, nowMs: number): number {
  if (state.busy.size > BUSY_PER_ROUND && nowMs < state.lookAtAllAtMs) return BUSY_PER_ROUND;
  state.lookAtAllAtMs = nowMs + LOOK_AT_ALL_MS;
  return state.partitions.length;
}

function retriesOf({ turn, withFirsts }: Schedule): LeaseTerms["retries"] {
  if (turn % RETRIES_FIRST_EVERY === 0) return "first";
  return withFirsts.size > 0 ? "none" : "last";
}

/**
 * The shares sum up to what is free exactly, the same for each partition of silent endpoints, which take no slots. A partition
 * without a share is left out of this round.
 */
function sharesOf(
  { partitions, busy, turn }: Schedule,
  free: { readonly slots: number; readonly failing: number; readonly silent: number },
  silentPartitions: ReadonlySet<number>,
  asked: number,
): Share[] {
  // All have their turn one after the other; where only some have, the next ones follow on them.
  const order = rotated(partitions, asked === partitions.length ? turn : turn * asked);
  order.sort((one, other) => Number(busy.has(other)) - Number(busy.has(one)));
  order.splice(asked);
  // A busy partition counts as much as all quiet ones together.
  const weightOf = (partition: number) => (busy.has(partition) ? partitions.length : 1);
  const silentOrder = rotated(
    [...silentPartitions].sort((one, other) => one - other),
    turn,
  );
  const slots = deal(free.slots, order, weightOf);
  const failing = deal(free.failing, order, weightOf);
  const silent = deal(free.silent, silentOrder, () => 1);
  return [...new Set([...slots.keys(), ...silent.keys()])].map((partition) => ({
    partition,
    wanted: slots.get(partition) ?? 0,
    wantedFailing: slots.has(partition) ? (failing.get(partition) ?? 0) : 0,
    wantedSilent: silent.get(partition) ?? 0,
  }));
}

function rotated(partitions: readonly number[], by: number): number[] {
  const offset = by % Math.max(1, partitions.length);
  return [...partitions.slice(offset), ...partitions.slice(0, offset)];
}

/** What each gets; those that get nothing are left out. */
function deal(
  total: number,
  partitions: readonly number[],
  weightOf: (partition: number) => number,
): ReadonlyMap<number, number> {
  const all = Math.max(0, total);
  const sum = partitions.reduce((weights, one) => weights + weightOf(one), 0);
  const dealt = partitions.map((one) => Math.floor((all * weightOf(one)) / sum));
  const odd = all - dealt.reduce((parts, part) => parts + part, 0);
  const given = dealt.map((part, at) => (at < odd ? part + 1 : part));
  return new Map(partitions.flatMap((one, at) => (given[at] ? [[one, given[at]]] : [])));
}

/** @param serviceNowMs the time of the service's clock at which the leases were asked for */
export function learn(
  state: Schedule,
  { beganAtMs, shares, retries }: Round,
  { slots, more, cut, nextPauseEndMs }: Handout,
  serviceNowMs: number,
): void {
  const placed = slots.filter((slot) => !slot.silent);
  const asking = shares.filter(({ wanted }) => wanted > 0);
  const asked = new Set(asking.map(({ partition }) => partition));
  state.withFirsts = state.withFirsts.difference(asked).union(more);
  state.busy = state.busy.difference(asked).union(more).union(fullOf(asking, placed));
  // Endpoints behind those that were named, and retries held back in favour of first attempts, are leased immediately.
  if (placed.length + more.size + cut.size > 0 || retries === "none") state.isEager = true;
  if (nextPauseEndMs !== null) {
    const pauseEndsAtMs = beganAtMs + Math.max(0, nextPauseEndMs - serviceNowMs);
    state.lookAtMs = Math.min(state.lookAtMs, pauseEndsAtMs);
  }
  const wantedSilent = shares.reduce((sum, share) => sum + share.wantedSilent, 0);
  if (wantedSilent > 0) state.hasMoreSilent = slots.length - placed.length >= wantedSilent / 2;
}

/** Partitions that have given all they were asked for. */
function fullOf(asking: readonly Share[], placed: readonly Slot[]): Set<number> {
  const given = Map.groupBy(placed, ({ partition }) => partition);
  const full = asking.filter((share) => given.get(share.partition)?.length === share.wanted);
  return new Set(full.map(({ partition }) => partition));
}

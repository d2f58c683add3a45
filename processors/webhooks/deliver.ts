/**
 * The send loop: leases due deliveries of all partitions together, sends each on its own, records results. A partition whose
 * store does not answer, or is being moved, is left out until it takes writes again; the others go on without it.
 *
 * | limit                                  | value | at the limit                                                   |
 * |----------------------------------------|-------|----------------------------------------------------------------|
 * | places of this process                 | 400   | what is leased waits for a free one                            |
 * | of them for failing endpoints          | half  | the others go first: hanging receivers cannot take every place |
 * | leased ahead of a place                | 200   | no lease until one of them has found its place                 |
 * | a delivery keeps its place             | 1 s   | then it gives it back, as it does once it is answered          |
 * | under way in this process without one  | 400   | slow ones keep their places, answered ones wait to be recorded |
 * | under way per endpoint, all processes  | 10    | the rest waits in the endpoint's own lanes                     |
 * | the same for a failing endpoint        | 2     | until its next success                                         |
 * | under way to silent endpoints          | 2,000 | the rest waits in their lanes, and they are served in turn;    |
 * |                                        |       | fewer where the process may open fewer than 8,000 files        |
 * | the same for one, all processes        | 1,000 | the rest waits in its lanes                                    |
 * | begun for silent endpoints             | 200/s | what is leased waits for its turn; 100/s if there is only one  |
 * | lease, renewed while it is under way   | 6 s   | its process has died: the delivery is sent again               |
 * | pause after an outage of the store     | 3 s   | leases are handed out again                                    |
 * | results without a store at the end     | 3 s   | given up: those deliveries are sent again                      |
 *
 * The schedule holds for a receiver that never answers: 20,000 deliveries at once are 20,000 requests of ten seconds for each
 * of the first three attempts, which are due within six minutes. 1,000 under way are 100 a second: first attempts take less
 * than five minutes, and no retry is later than that. Two places would be one request in five seconds.
 *
 * While the store is unavailable nothing is sent that could not be recorded: no lease is handed out, and what is leased and
 * not begun waits. What receivers have answered meanwhile is kept and recorded when the store is back. Leases may have ended by
 * then, so all processes pause: each records its results, and renews what is still under way, before anybody hands out leases.
 */
import { V2_TOOK_OVER, v1ChannelId } from "#core/domain/webhooks/webhook-v1.ts";
import type { Log } from "#core/log.ts";
import { internalErrors } from "#core/metrics.ts";
import { createPause } from "#core/pause.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { PARTITIONS } from "#core/redis/client/keys.ts";
import type { Configuration } from "#core/redis/config/configuration.ts";
import { readWakeCounter } from "#core/redis/webhooks/deliveries.ts";
import { DELETED_REASON, DISABLED_REASON } from "#core/redis/webhooks/endpoints.ts";
import type { Finished } from "#core/redis/webhooks/finish-deliveries.ts";
import {
  type Handout,
  type Leased,
  type LeaseTerms,
  readLeased,
  renewLeases,
  type Share,
  type Slot,
  takeLeases,
} from "#core/redis/webhooks/leases.ts";
import { createFinishQueue } from "./finish-queue.ts";
import { followPartitions } from "./partition-outages.ts";
import { postponed, type SendDeps, sendDelivery, sendV1Delivery, unsent } from "./send.ts";
import { addSilent, shareOut } from "./share-out.ts";
import { followSilentEndpoints, mostSilent } from "./silent-endpoints.ts";
import { createSilentQueue } from "./silent-queue.ts";

export interface DeliverLimits {
  /** Places; as many again are under way without one, and half as many leased ahead of one. */
  readonly inFlight: number;
  readonly slowMs: number;
  readonly inFlightPerEndpoint: number;
  readonly inFlightPerFailingEndpoint: number;
  /** Under way to silent endpoints: each is a socket and some 50 KB. */
  readonly silentInFlight: number;
  readonly silentInFlightPerEndpoint: number;
  readonly leaseMs: number;
  /** Longer than the client takes to reconnect, 2.2 s, and than a result waits for its next attempt. */
  readonly recoveryMs: number;
}

const LIMITS: DeliverLimits = {
  inFlight: 400,
  slowMs: 1_000,
  inFlightPerEndpoint: 10,
  inFlightPerFailingEndpoint: 2,
  silentInFlight: mostSilent(openFilesLimit()),
  silentInFlightPerEndpoint: 1_000,
  leaseMs: 6_000,
  recoveryMs: 3_000,
};

/** Null if the system does not report it. */
function openFilesLimit(): number | null {
  const report = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft?: unknown } };
  };
  const soft = Number(report.userLimits?.open_files?.soft);
  return Number.isNaN(soft) ? null : soft;
}

export interface DeliverDeps extends SendDeps {
  readonly redis: Redis;
  readonly log: Log;
  readonly limits?: Partial<DeliverLimits>;
}

export interface Deliverer {
  /** Leases nothing more, lets what is under way end and records it. */
  readonly stop: () => Promise<void>;
}

/** Rounds are no closer than this: what ends in between shares the next one. */
const ROUND_GAP_MS = 2;
/** Under load a round waits for half of the places, but not longer than this: few large leases cost least. */
const FULL_ROUND_WAIT_MS = 10;
/** Requests begun in one turn of the event loop: more would keep all answers waiting, and then come all at once. */
const BEGUN_PER_TURN = 16;
/** Every fifth round retries come first, whatever first attempts there are. Odd, since busy partitions are asked by halves. */
const RETRIES_FIRST_EVERY = 5;
/** Busy partitions asked in one round under load; all others are looked at this often even then. */
const BUSY_PER_ROUND = 8;
const LOOK_AT_ALL_MS = 20;
/** An idle deliverer reads the wake counter this often and looks at every partition that often. */
const IDLE_WAIT_MS = 25;
const LOOK_ROUND_MS = 200;
const TROUBLE_WAIT_MS = 250;
/** Leases are renewed three times before they would end. */
const RENEWALS_PER_LEASE = 3;

const ALL_PARTITIONS = Array.from({ length: PARTITIONS }, (_, n) => n);

interface Ready {
  readonly leased: Leased;
  readonly configuration: Configuration;
}

export function startDeliverer(deps: DeliverDeps): Deliverer {
  const { redis, live, log } = deps;
  const limits = { ...LIMITS, ...deps.limits };
  const ahead = Math.floor(limits.inFlight / 2);
  const results = createFinishQueue(redis, live, log);
  const pause = createPause();
  const outages = followPartitions(redis, log, {
    // The rest of a lease when its renewal is due, less the time in which all processes reconnect.
    bridgedMs: limits.leaseMs - limits.leaseMs / RENEWALS_PER_LEASE - limits.recoveryMs,
    recoveryMs: limits.recoveryMs,
  });
  /** Leased and not begun: while the next lease is asked for, there is work. */
  let ready: Ready[] = [];
  let beginning = false;
  const silent = followSilentEndpoints(limits.slowMs);
  const silentQueue = createSilentQueue({
    most: limits.silentInFlight,
    mayBegin,
    hasSeveralEndpoints: () => silent.count() > 1,
    isStopping: () => stopping,
    onRoom: hurry,
  });
  /** Until they are recorded. */
  const underWay = new Set<Slot>();
  let onNoneUnderWay: (() => void) | null = null;
  /** Begun and without an answer, by when they were begun: the oldest stand first. */
  const unanswered = new Map<Leased, number>();
  /** Of failing endpoints and without an answer, begun or not; without those of silent endpoints. */
  let unansweredFailing = 0;
  /** Partitions that had more to give, and those of them that had first attempts, when they were last asked. */
  let busy: ReadonlySet<number> = new Set();
  let withFirsts: ReadonlySet<number> = new Set();
  let turn = 0;
  /** A place has become free, or the last round has left something to do. */
  let eager = true;
  let lookRoundAtMs = 0;
  let lookAtAllAtMs = 0;
  let lastRoundAtMs = 0;
  let wakeCounter: string | null = null;
  let stopping = false;

  async function loop(): Promise<void> {
    let waitMs = ROUND_GAP_MS;
    while (!stopping) {
      beginSoon();
      const begunAtMs = performance.now();
      try {
        await comeBack();
        const leased = (await isWorthRound()) ? await round() : 0;
        waitMs = leased > 0 ? ROUND_GAP_MS : Math.min(waitMs * 2, IDLE_WAIT_MS);
        await Bun.sleep(ROUND_GAP_MS);
        if (!eager) await pause.wait(waitMs - ROUND_GAP_MS);
      } catch (error) {
        outages.failed(ALL_PARTITIONS, error, begunAtMs);
        await Bun.sleep(TROUBLE_WAIT_MS);
      }
    }
  }

  /** Leases may have expired: those in progress are renewed, and deliveries not yet begun go back to their lanes. */
  async function comeBack(): Promise<void> {
    const back = new Set(await outages.probe());
    if (back.size === 0) return;
    giveBack(({ partition }) => back.has(partition));
    renew();
  }

  /** Leased deliveries that have not begun are not renewed and go back to their lanes. */
  function giveBack(isMeant: (leased: Leased) => boolean): void {
    for (const leased of silentQueue.remove(isMeant)) forget(leased);
    const [given, kept] = [
      ready.filter((one) => isMeant(one.leased)),
      ready.filter((one) => !isMeant(one.leased)),
    ];
    ready = kept;
    for (const { leased } of given) {
      if (leased.failing) unansweredFailing -= 1;
      forget(leased);
    }
  }

  function forget(leased: Leased): void {
    underWay.delete(leased);
    if (leased.silent) silentQueue.ended();
    if (underWay.size === 0) onNoneUnderWay?.();
  }

  async function isWorthRound(): Promise<boolean> {
    const nowMs = performance.now();
    const free = freePlaces(nowMs);
    if (free <= 0 && freeSilent(nowMs) === 0) {
      eager = false;
      return false;
    }
    const isLoaded = busy.size > 0 && free < limits.inFlight / 2;
    if (isLoaded && nowMs < lastRoundAtMs + FULL_ROUND_WAIT_MS) return false;
    if (eager || nowMs >= lookRoundAtMs) return true;
    const before = wakeCounter;
    wakeCounter = await readWakeCounter(redis);
    return wakeCounter !== before;
  }

  /** Begun, without an answer and still with their places. */
  function placed(nowMs: number): number {
    let slow = 0;
    for (const startMs of unanswered.values()) {
      if (startMs > nowMs - limits.slowMs) break;
      slow += 1;
    }
    return unanswered.size - slow;
  }

  /** How many may be leased. */
  function freePlaces(nowMs: number): number {
    const all = limits.inFlight + ahead;
    const placeless = all + limits.inFlight - (underWay.size - silentQueue.size());
    return Math.min(all - placed(nowMs) - ready.length, placeless);
  }

  function freeSilent(nowMs: number): number {
    return silent.partitions(nowMs).size === 0 ? 0 : silentQueue.free();
  }

  /** @returns how many deliveries were leased */
  async function round(): Promise<number> {
    turn += 1;
    eager = false;
    const shares = nextShares();
    if (shares.length === 0) return 0;
    const terms = {
      leaseMs: limits.leaseMs,
      perEndpoint: limits.inFlightPerEndpoint,
      perFailingEndpoint: limits.inFlightPerFailingEndpoint,
      perSilentEndpoint: limits.silentInFlightPerEndpoint,
      silent,
      retries: retriesOf(turn),
    };
    const handout = await takeLeases(redis, shares, terms, live.now());
    learn(shares, terms, handout);
    // Leases are renewed from the start: reading may take as long as a lease.
    for (const slot of handout.slots) underWay.add(slot);
    // Read after the leases were taken: an endpoint that was disabled before is seen as such.
    const [{ leased, gone, failure }, configuration] = await Promise.all([
      readLeased(redis, handout.slots),
      live.refresh(),
    ]).finally(() => {
      for (const slot of handout.slots) underWay.delete(slot);
    });
    if (failure) log.warn({ reason: failure.message }, "deliveries wait until their leases expire");
    for (const of of gone) results.record(unsent(of, "30 days are over"), hurry);
    for (const one of leased) add(one, configuration);
    return handout.slots.length;
  }

  function retriesOf(round: number): LeaseTerms["retries"] {
    if (round % RETRIES_FIRST_EVERY === 0) return "first";
    return withFirsts.size === 0 ? "last" : "none";
  }

  /** What the next round does. */
  function learn(shares: readonly Share[], { retries }: LeaseTerms, handout: Handout): void {
    const { slots, more, cut, failures } = handout;
    const placed = slots.filter((slot) => !slot.silent);
    const asking = shares.filter(({ wanted }) => wanted > 0);
    const asked = new Set(asking.map(({ partition }) => partition));
    const given = Map.groupBy(placed, ({ partition }) => partition);
    const full = asking.filter((share) => given.get(share.partition)?.length === share.wanted);
    const wantedSilent = shares.reduce((sum, share) => sum + share.wantedSilent, 0);
    silentQueue.learn(wantedSilent, slots.length - placed.length);
    withFirsts = withFirsts.difference(asked).union(more);
    busy = busy
      .difference(asked)
      .union(more)
      .union(new Set(full.map((one) => one.partition)));
    // Endpoints behind those that were named, and retries held back in favour of first attempts, are leased immediately.
    if (placed.length + more.size + cut.size > 0 || retries === "none") eager = true;
    for (const [partition, error] of failures) outages.failed([partition], error, lastRoundAtMs);
  }

  function nextShares(): Share[] {
    const nowMs = performance.now();
    lastRoundAtMs = nowMs;
    lookRoundAtMs = nowMs + LOOK_ROUND_MS;
    const looksAtAll = busy.size <= BUSY_PER_ROUND || nowMs >= lookAtAllAtMs;
    if (looksAtAll) lookAtAllAtMs = nowMs + LOOK_AT_ALL_MS;
    const free = freePlaces(nowMs);
    const freeFailing = Math.floor(limits.inFlight / 2) - unansweredFailing;
    const shares = shareOut(
      free,
      freeFailing,
      busy,
      turn,
      looksAtAll ? PARTITIONS : BUSY_PER_ROUND,
    );
    const all = addSilent(shares, freeSilent(nowMs), silent.partitions(nowMs), turn);
    return all.filter(({ partition }) => outages.mayLease(partition));
  }

  function add(leased: Leased, configuration: Configuration): void {
    underWay.add(leased);
    if (leased.silent) {
      silentQueue.add(leased, () => void sendSilent(leased, configuration));
      return;
    }
    if (leased.failing) unansweredFailing += 1;
    ready.push({ leased, configuration });
    beginSoon();
  }

  function beginSoon(): void {
    silentQueue.beginSoon();
    if (beginning || (ready.length === 0 && !stopping)) return;
    beginning = true;
    setImmediate(begin);
  }

  /** Those that find no place free wait for the next answer, or for a slow one to give its place back. */
  function begin(): void {
    beginning = false;
    if (stopping) giveBack((leased) => !mayBegin(leased));
    const free = limits.inFlight - placed(performance.now());
    const next = takeReady(Math.min(free, BEGUN_PER_TURN));
    for (const { leased, configuration } of next) void send(leased, configuration);
    if (next.length > 0) beginSoon();
  }

  /** Nothing is sent that could not be recorded. */
  function mayBegin({ partition }: Slot): boolean {
    return redis.isReady && !outages.isOut(partition);
  }

  function takeReady(most: number): Ready[] {
    if (redis.isReady && !outages.isAnyOut()) return ready.splice(0, Math.max(0, most));
    const open = ready.filter(({ leased }) => mayBegin(leased));
    const taken = new Set(open.slice(0, Math.max(0, most)));
    ready = ready.filter((one) => !taken.has(one));
    return [...taken];
  }

  async function send(leased: Leased, configuration: Configuration): Promise<void> {
    unanswered.set(leased, performance.now());
    const result = await attempt(leased, configuration);
    unanswered.delete(leased);
    if (leased.failing) unansweredFailing -= 1;
    beginSoon();
    results.record(result, () => {
      forget(leased);
      // Recorded, it makes room for the next one of its endpoint.
      hurry();
    });
    hurry();
  }

  /** It has no place to give back: the next round comes when its queue has room for many. */
  async function sendSilent(leased: Leased, configuration: Configuration): Promise<void> {
    const result = await attempt(leased, configuration);
    results.recordUnhurried(result, () => forget(leased));
  }

  function hurry(): void {
    eager = true;
    pause.wake();
  }

  async function attempt(leased: Leased, configuration: Configuration): Promise<Finished> {
    const beganAtMs = performance.now();
    try {
      const result = await handle(leased, configuration);
      if (result.attempt) {
        const isAnswered = result.attempt.httpStatus !== null;
        silent.ended(leased, { beganAtMs, endedAtMs: performance.now(), isAnswered });
      }
      return result;
    } catch (error) {
      internalErrors.inc({ part: "webhooks" });
      const about = { err: error, delivery: leased.deliveryId };
      log.error(about, "a delivery could not be sent; it will be retried");
      return postponed(deps, leased);
    }
  }

  function handle(leased: Leased, configuration: Configuration): Finished | Promise<Finished> {
    if (v1ChannelId(leased.endpointId) !== null) return handleV1(leased, configuration);
    const endpoint = configuration.endpoints.get(leased.endpointId);
    if (!endpoint) return unsent(leased, DELETED_REASON);
    if (!endpoint.active) return unsent(leased, DISABLED_REASON);
    const shipment = leased.shipment();
    if (!shipment) return unsent(leased, "shipment gone");
    return sendDelivery(deps, leased, endpoint, shipment);
  }

  /** An endpoint of v2 that was made after the decision ends v1 at once (document 3, "Versioning"). */
  function handleV1(leased: Leased, { channels }: Configuration): Finished | Promise<Finished> {
    const { endpoints = [], webhookV1 = null } = channels.get(leased.channelId) ?? {};
    if (endpoints.length > 0) return unsent(leased, V2_TOOK_OVER);
    if (!webhookV1) return unsent(leased, "webhook v1 not configured");
    const shipment = leased.shipment();
    if (!shipment) return unsent(leased, "shipment gone");
    return sendV1Delivery(deps, leased, webhookV1, shipment);
  }

  /** What a killed process had under way is sent again soon, and what takes long is not sent twice. */
  function renew(): void {
    if (underWay.size === 0) return;
    beginSoon();
    const begunAtMs = performance.now();
    void renewLeases(redis, underWay, limits.leaseMs).then((failures) => {
      for (const [partition, error] of failures) outages.failed([partition], error, begunAtMs);
    });
  }

  const renewal = setInterval(renew, limits.leaseMs / RENEWALS_PER_LEASE);

  const running = loop();
  return {
    async stop() {
      stopping = true;
      pause.wake();
      await running;
      const patience = setTimeout(results.giveUp, limits.recoveryMs);
      beginSoon();
      if (underWay.size > 0) {
        await new Promise<void>((resolve) => {
          onNoneUnderWay = resolve;
        });
      }
      clearTimeout(patience);
      clearInterval(renewal);
    },
  };
}

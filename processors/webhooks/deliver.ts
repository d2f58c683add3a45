/**
 * The send loop: leases due deliveries of all partitions together, sends each on its own, records results. A partition whose
 * store does not answer, or is being moved, is left out until it takes writes again; the others go on without it.
 *
 * | limit                                  | value | at the limit                                                   |
 * |----------------------------------------|-------|----------------------------------------------------------------|
 * | slots of this process                  | 400   | what is leased waits for a free one                            |
 * | of them for failing endpoints          | half  | the others go first: hanging receivers cannot take every slot  |
 * | leased ahead of a slot                 | 200   | no lease until one of them has found its slot                  |
 * | a delivery keeps its slot              | 1 s   | then it gives it back, as it does once it is answered          |
 * | under way in this process without one  | 1,200 | slow ones keep their slots, answered ones wait to be recorded  |
 * | slots beyond them, for newcomers       | 200   | they wait like the others (`send-slots.ts`)                    |
 * | under way of a company in this process | half  | the rest is there for others                                   |
 * | under way per endpoint, all processes  | 4-256 | the level finds itself (`concurrency.ts`); the rest waits      |
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
 * than five minutes, and no retry is later than that. Two slots would be one request in five seconds.
 *
 * While the store is unavailable nothing is sent that could not be recorded: no lease is handed out, and what is leased and
 * not begun waits. What receivers have answered meanwhile is kept and recorded when the store is back. Leases may have ended by
 * then, so all processes pause: each records its results, and renews what is still under way, before anybody hands out leases.
 */
import { createPause } from "#core/pause.ts";
import { PARTITIONS } from "#core/redis/client/keys.ts";
import { readWakeCounter } from "#core/redis/webhooks/deliveries.ts";
import { readLeased, takeLeases } from "#core/redis/webhooks/leases.ts";
import { type DeliverLimits, LIMITS } from "./deliver-limits.ts";
import { endpointTerms } from "./endpoint-terms.ts";
import { createLeaseRounds, type LeaseRounds } from "./lease-rounds.ts";
import { followPartitions, type PartitionOutages } from "./partition-outages.ts";
import type { SendDeps } from "./send.ts";
import { type Sending, type SendingDeps, startSending } from "./sending.ts";

export interface DeliverDeps extends Pick<SendingDeps, "redis" | "log">, SendDeps {
  readonly limits?: Partial<DeliverLimits>;
}

export interface Deliverer {
  /** Leases nothing more, lets what is under way end and records it. */
  readonly stop: () => Promise<void>;
}

/** Rounds are no closer than this: what ends in between shares the next one. */
const ROUND_GAP_MS = 2;
/** An idle deliverer reads the wake counter this often. */
const IDLE_WAIT_MS = 25;
const TROUBLE_WAIT_MS = 250;
/** Leases are renewed three times before they would end. */
const RENEWALS_PER_LEASE = 3;

const ALL_PARTITIONS = Array.from({ length: PARTITIONS }, (_, n) => n);

export function startDeliverer(deps: DeliverDeps): Deliverer {
  const limits = { ...LIMITS, ...deps.limits };
  const pause = createPause();
  const rounds = createLeaseRounds(limits.inFlight);
  const outages = followPartitions(deps.redis, deps.log, {
    // The rest of a lease when its renewal is due, less the time in which all processes reconnect.
    bridgedMs: limits.leaseMs - limits.leaseMs / RENEWALS_PER_LEASE - limits.recoveryMs,
    recoveryMs: limits.recoveryMs,
  });
  let stopping = false;
  const sending = startSending({
    ...{ ...deps, limits, outages, isStopping: () => stopping },
    onRoom() {
      rounds.hurry();
      pause.wake();
    },
  });
  const isWoken = followWakeCounter(deps);
  const parts: Parts = { ...deps, limits, outages, rounds, sending };

  async function loop(): Promise<void> {
    let waitMs = ROUND_GAP_MS;
    while (!stopping) {
      sending.beginSoon();
      const begunAtMs = performance.now();
      try {
        await comeBack(parts);
        const nowMs = performance.now();
        const isWorth = await rounds.isWorth(sending.room(nowMs), nowMs, isWoken);
        const leased = isWorth ? await round(parts) : 0;
        waitMs = leased > 0 ? ROUND_GAP_MS : Math.min(waitMs * 2, IDLE_WAIT_MS);
        await Bun.sleep(ROUND_GAP_MS);
        if (!rounds.isEager()) await pause.wait(waitMs - ROUND_GAP_MS);
      } catch (error) {
        outages.failed(ALL_PARTITIONS, error, begunAtMs);
        await Bun.sleep(TROUBLE_WAIT_MS);
      }
    }
  }

  const renewal = setInterval(sending.renew, limits.leaseMs / RENEWALS_PER_LEASE);
  const running = loop();
  return {
    async stop() {
      stopping = true;
      pause.wake();
      await running;
      await sending.finish();
      clearInterval(renewal);
    },
  };
}

interface Parts extends Omit<DeliverDeps, "limits"> {
  readonly limits: DeliverLimits;
  readonly outages: PartitionOutages;
  readonly rounds: LeaseRounds;
  readonly sending: Sending;
}

function followWakeCounter({ redis }: DeliverDeps): () => Promise<boolean> {
  let last: string | null = null;
  return async () => {
    const before = last;
    last = await readWakeCounter(redis);
    return last !== before;
  };
}

/** Leases may have expired: those in progress are renewed, and deliveries not yet begun go back to their lanes. */
async function comeBack({ outages, sending }: Parts): Promise<void> {
  const back = new Set(await outages.probe());
  if (back.size === 0) return;
  sending.giveBack(({ partition }) => back.has(partition));
  sending.renew();
}

/** @returns how many deliveries were leased */
async function round({
  redis,
  live,
  log,
  limits,
  outages,
  rounds,
  sending,
}: Parts): Promise<number> {
  const nowMs = performance.now();
  const next = rounds.next(sending.room(nowMs), nowMs, outages.mayLease);
  const { shares, retries } = next;
  if (shares.length === 0) return 0;
  const terms = {
    leaseMs: limits.leaseMs,
    startConcurrency: limits.startConcurrency,
    perFailingEndpoint: limits.inFlightPerFailingEndpoint,
    perSilentEndpoint: limits.silentInFlightPerEndpoint,
    silent: sending.silent,
    endpoint: (endpointId: string) => endpointTerms(live.configuration(), endpointId),
    roomOfCompany: sending.roomOfCompany,
    retries,
  };
  const serviceNowMs = live.now();
  const handout = await takeLeases(redis, shares, terms, serviceNowMs);
  const { slots, failures } = handout;
  const silentGiven = rounds.learn(next, handout, serviceNowMs);
  sending.learnSilent(
    shares.reduce((sum, share) => sum + share.wantedSilent, 0),
    silentGiven,
  );
  for (const [partition, error] of failures) outages.failed([partition], error, next.beganAtMs);
  // Read after the leases were taken: an endpoint that was disabled before is seen as such.
  const [{ leased, gone, failure }, configuration] = await sending.whileHeld(slots, () =>
    Promise.all([readLeased(redis, slots), live.refresh()]),
  );
  if (failure) log.warn({ reason: failure.message }, "deliveries wait until their leases expire");
  for (const slot of gone) sending.addGone(slot);
  for (const one of leased) sending.add(one, configuration);
  return slots.length;
}

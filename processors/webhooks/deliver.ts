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
 * | under way per endpoint, all processes  | 4-256 | it adapts (`concurrency.ts`); the rest waits                   |
 * | the same for a failing endpoint        | 2     | until its next success                                         |
 * | under way to silent endpoints          | 2,000 | the rest waits in their queues, and they are served in turn;   |
 * |                                        |       | fewer where the process may open fewer than 8,000 files        |
 * | the same for one, all processes        | 1,000 | the rest waits in its queues                                   |
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
import { PARTITIONS } from "#core/platform/redis/keys.ts";
import { openWaker } from "#core/platform/redis/wake.ts";
import { readLeased, takeLeases } from "#core/webhooks/store/deliveries/leases.ts";
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

/** While something is under way, slots become free by time alone. */
const BUSY_WAIT_MS = 25;
const TROUBLE_WAIT_MS = 250;
/** Leases are renewed three times before they would end. */
const RENEWALS_PER_LEASE = 3;

const ALL_PARTITIONS = Array.from({ length: PARTITIONS }, (_, n) => n);

export function startDeliverer(deps: DeliverDeps): Deliverer {
  const limits = { ...LIMITS, ...deps.limits };
  const rounds = createLeaseRounds(limits.inFlight);
  const outages = followPartitions(deps.redis, deps.log, {
    // The rest of a lease when its renewal is due, less the time in which all processes reconnect.
    bridgedMs: limits.leaseMs - limits.leaseMs / RENEWALS_PER_LEASE - limits.recoveryMs,
    recoveryMs: limits.recoveryMs,
  });
  let stopping = false;
  const sending = startSending({
    ...deps,
    limits,
    outages,
    isStopping: () => stopping,
    onCapacity() {
      rounds.hurry();
      waker.wake();
    },
    onSlot() {
      if (rounds.slotFreed()) waker.wake();
    },
  });
  const waker = openWaker(deps.redis, "webhooks", rounds.hurry);
  const parts: Parts = { ...deps, limits, outages, rounds, sending };

  async function loop(): Promise<void> {
    while (!stopping) {
      waker.reset();
      sending.beginSoon();
      const begunAtMs = performance.now();
      try {
        await comeBack(parts);
        const nowMs = performance.now();
        if (rounds.isWorth(sending.capacity(nowMs), nowMs)) await round(parts);
        await Bun.sleep(rounds.gapMs(performance.now()));
        if (!rounds.isEager()) await waker.wait(waitMs(parts));
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
      waker.wake();
      await running;
      waker.close();
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

/** Leases may have expired: those in progress are renewed, and deliveries not yet begun go back to their queues. */
async function comeBack({ outages, sending }: Parts): Promise<void> {
  const back = new Set(await outages.probe());
  if (back.size === 0) return;
  sending.giveBack(({ partition }) => back.has(partition));
  sending.renew();
}

/** Until the next round, unless somebody queues a delivery before. */
function waitMs({ rounds, sending, outages }: Parts): number {
  const untilLookMs = rounds.nextLookMs() - performance.now();
  const isBusy = sending.isBusy() || outages.isAnyOut();
  return Math.max(0, Math.min(untilLookMs, isBusy ? BUSY_WAIT_MS : untilLookMs));
}

async function round({ redis, live, log, limits, outages, rounds, sending }: Parts): Promise<void> {
  const nowMs = performance.now();
  const next = rounds.next(sending.capacity(nowMs), nowMs, outages.mayLease);
  const { shares, retries } = next;
  if (shares.length === 0) return;
  const terms = {
    leaseMs: limits.leaseMs,
    startConcurrency: limits.startConcurrency,
    perFailingEndpoint: limits.inFlightPerFailingEndpoint,
    perSilentEndpoint: limits.silentInFlightPerEndpoint,
    silent: sending.silent,
    endpoint: (endpointId: string) => endpointTerms(live.configuration(), endpointId),
    capacityOfCompany: sending.capacityOfCompany,
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
}

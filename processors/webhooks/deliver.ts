/**
 * The send loop: leases due deliveries from all partitions in one pipeline, sends each on its own, records results.
 *
 * | limit                                 | value | at the limit                                                   |
 * |---------------------------------------|-------|----------------------------------------------------------------|
 * | under way in this process             | 200   | no lease until a place is free                                 |
 * | of them for failing endpoints         | half  | the others go first: hanging receivers cannot take every place |
 * | under way per endpoint, all processes | 10    | the rest waits in the endpoint's own lanes                     |
 * | the same for a failing endpoint       | 2     | until its next success                                         |
 * | lease, renewed while it is under way  | 6 s   | its process has died: the delivery is sent again               |
 */
import { v1ChannelId } from "#core/domain/webhook-v1.ts";
import type { Log } from "#core/log.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Configuration } from "#core/redis/configuration.ts";
import {
  type Finished,
  type Leased,
  leaseDeliveries,
  readBell,
  renewLeases,
  type Share,
} from "#core/redis/deliveries.ts";
import { DELETED_REASON, DISABLED_REASON } from "#core/redis/endpoints.ts";
import { PARTITIONS } from "#core/redis/keys.ts";
import { readShipments, type StoredShipment } from "#core/redis/shipments.ts";
import { createFinishQueue } from "./finish-queue.ts";
import { type SendDeps, sendDelivery, sendV1Delivery, unsent } from "./send.ts";
import { shareOut } from "./share-out.ts";

export interface DeliverLimits {
  readonly inFlight: number;
  readonly inFlightPerEndpoint: number;
  readonly inFlightPerFailingEndpoint: number;
  readonly leaseMs: number;
}

const LIMITS: DeliverLimits = {
  inFlight: 200,
  inFlightPerEndpoint: 10,
  inFlightPerFailingEndpoint: 2,
  leaseMs: 6_000,
};

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
/** Under load a round waits for a quarter of the places, but not longer than this: few large leases cost least. */
const FULL_ROUND_WAIT_MS = 10;
/** Busy partitions asked in one round under load; all others are looked at this often even then. */
const BUSY_PER_ROUND = 4;
const LOOK_AT_ALL_MS = 20;
/** An idle deliverer listens for the bell this often and looks at every partition that often. */
const IDLE_WAIT_MS = 25;
const LOOK_ROUND_MS = 200;
const TROUBLE_WAIT_MS = 500;
/** Leases are renewed three times before they would end. */
const RENEWALS_PER_LEASE = 3;

export function startDeliverer(deps: DeliverDeps): Deliverer {
  const { redis, live, log } = deps;
  const limits = { ...LIMITS, ...deps.limits };
  const results = createFinishQueue(redis, live, log);
  const pause = createPause();
  const underWay = new Map<Promise<void>, Leased>();
  let underWayFailing = 0;
  /** Partitions that had more to give, and those of them that had first attempts, when they were last asked. */
  let busy: ReadonlySet<number> = new Set();
  let withFirsts: ReadonlySet<number> = new Set();
  let turn = 0;
  /** A place has become free, or the last round has left something to do. */
  let eager = true;
  let lookRoundAtMs = 0;
  let lookAtAllAtMs = 0;
  let lastRoundAtMs = 0;
  let bell: string | null = null;
  let stopping = false;

  async function loop(): Promise<void> {
    let waitMs = ROUND_GAP_MS;
    while (!stopping) {
      try {
        const leased = (await isWorthRound()) ? await round() : 0;
        waitMs = leased > 0 ? ROUND_GAP_MS : Math.min(waitMs * 2, IDLE_WAIT_MS);
        await Bun.sleep(ROUND_GAP_MS);
        if (!eager) await pause.wait(waitMs - ROUND_GAP_MS);
      } catch (error) {
        log.warn({ reason: (error as Error).message }, "deliverer waits");
        await Bun.sleep(TROUBLE_WAIT_MS);
      }
    }
  }

  async function isWorthRound(): Promise<boolean> {
    if (underWay.size >= limits.inFlight) {
      eager = false;
      return false;
    }
    const nowMs = performance.now();
    const free = limits.inFlight - underWay.size;
    const isLoaded = busy.size > 0 && free < limits.inFlight / 4;
    if (isLoaded && nowMs < lastRoundAtMs + FULL_ROUND_WAIT_MS) return false;
    if (eager || nowMs >= lookRoundAtMs) return true;
    const before = bell;
    bell = await readBell(redis);
    return bell !== before;
  }

  /** @returns how many deliveries were leased */
  async function round(): Promise<number> {
    turn += 1;
    eager = false;
    const shares = nextShares();
    const terms = {
      leaseMs: limits.leaseMs,
      perEndpoint: limits.inFlightPerEndpoint,
      perFailingEndpoint: limits.inFlightPerFailingEndpoint,
      retries: withFirsts.size === 0,
    };
    // Asked for on the same connection after the leases: an endpoint switched off before its lease is seen as such.
    const [{ leased, more }, configuration] = await Promise.all([
      leaseDeliveries(redis, shares, terms, live.now()),
      live.refresh(),
    ]);
    const asked = new Set(shares.map(({ partition }) => partition));
    const given = Map.groupBy(leased, ({ partition }) => partition);
    const full = shares.filter((share) => given.get(share.partition)?.length === share.wanted);
    withFirsts = withFirsts.difference(asked).union(more);
    busy = busy
      .difference(asked)
      .union(more)
      .union(new Set(full.map((one) => one.partition)));
    // Retries that were held back for first attempts are asked for again at once.
    if (leased.length > 0 || !terms.retries) eager = true;
    if (leased.length > 0) dispatch(leased, configuration);
    return leased.length;
  }

  function nextShares(): Share[] {
    const nowMs = performance.now();
    lastRoundAtMs = nowMs;
    lookRoundAtMs = nowMs + LOOK_ROUND_MS;
    const looksAtAll = busy.size <= BUSY_PER_ROUND || nowMs >= lookAtAllAtMs;
    if (looksAtAll) lookAtAllAtMs = nowMs + LOOK_AT_ALL_MS;
    const free = limits.inFlight - underWay.size;
    const freeFailing = Math.floor(limits.inFlight / 2) - underWayFailing;
    return shareOut(free, freeFailing, busy, turn, looksAtAll ? PARTITIONS : BUSY_PER_ROUND);
  }

  /** Each takes its place at once; the next round is not held up by the reading of the shipments. */
  function dispatch(leased: readonly Leased[], configuration: Configuration): void {
    const ids = [...new Set(leased.map(({ shipmentId }) => shipmentId))];
    const reading = readShipments(redis, ids).then(
      (shipments) => new Map(shipments.map((shipment) => [shipment.record.id, shipment])),
    );
    for (const one of leased) start(one, configuration, reading);
  }

  function start(
    leased: Leased,
    configuration: Configuration,
    reading: Promise<ReadonlyMap<number, StoredShipment>>,
  ): void {
    if (leased.failing) underWayFailing += 1;
    const work = handleOnceRead(leased, configuration, reading).finally(() => {
      underWay.delete(work);
      if (leased.failing) underWayFailing -= 1;
      eager = true;
      pause.wake();
    });
    underWay.set(work, leased);
  }

  async function handleOnceRead(
    leased: Leased,
    configuration: Configuration,
    reading: Promise<ReadonlyMap<number, StoredShipment>>,
  ): Promise<void> {
    let shipments: ReadonlyMap<number, StoredShipment>;
    try {
      shipments = await reading;
    } catch (error) {
      // The store is away: the lease ends by itself and the delivery is sent again.
      log.warn({ reason: (error as Error).message }, "a delivery waits for its shipment");
      return;
    }
    try {
      await handle(leased, configuration, shipments.get(leased.shipmentId));
    } catch (error) {
      log.error({ err: error, delivery: leased.deliveryId }, "a delivery could not be sent");
      await results.record(unsent(leased, "internal error"));
    }
  }

  async function handle(
    leased: Leased,
    configuration: Configuration,
    shipment: StoredShipment | undefined,
  ): Promise<void> {
    if (v1ChannelId(leased.endpointId) !== null) {
      return results.record(await handleV1(leased, configuration, shipment));
    }
    const endpoint = configuration.endpoints.get(leased.endpointId);
    if (!endpoint) return results.record(unsent(leased, DELETED_REASON));
    if (!endpoint.active) return results.record(unsent(leased, DISABLED_REASON));
    if (!shipment) return results.record(unsent(leased, "shipment gone"));
    return results.record(await sendDelivery(deps, leased, endpoint, shipment));
  }

  /** An endpoint of v2 that was made after the decision ends v1 at once (document 3, "Versioning"). */
  async function handleV1(
    leased: Leased,
    { channels }: Configuration,
    shipment: StoredShipment | undefined,
  ): Promise<Finished> {
    const { endpoints = [], webhookV1 = null } = channels.get(leased.channelId) ?? {};
    if (endpoints.length > 0) return unsent(leased, "webhooks v2 took over");
    if (!webhookV1) return unsent(leased, "webhook v1 not configured");
    if (!shipment) return unsent(leased, "shipment gone");
    return sendV1Delivery(deps, leased, webhookV1, shipment);
  }

  /** What a killed process had under way is sent again soon, and what takes long is not sent twice. */
  const renewal = setInterval(() => {
    if (underWay.size === 0) return;
    renewLeases(redis, [...underWay.values()], limits.leaseMs).catch((error: Error) =>
      log.warn({ reason: error.message }, "leases are not renewed"),
    );
  }, limits.leaseMs / RENEWALS_PER_LEASE);

  const running = loop();
  return {
    async stop() {
      stopping = true;
      pause.wake();
      await running;
      results.giveUp();
      await Promise.all(underWay.keys());
      clearInterval(renewal);
    },
  };
}

/** A wait that can be cut short. */
function createPause() {
  let wake = () => {};
  return {
    wait(ms: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
      return promise;
    },
    wake: () => wake(),
  };
}

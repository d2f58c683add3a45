/**
 * The send loop: leases due deliveries from all partitions in one pipeline, sends each on its own, records results.
 *
 * | limit                                 | value | at the limit                                                   |
 * |---------------------------------------|-------|----------------------------------------------------------------|
 * | under way in this process             | 200   | no lease until a place is free                                 |
 * | of them for failing endpoints         | half  | the others go first: hanging receivers cannot take every place |
 * | under way per endpoint, all processes | 10    | the rest waits in the endpoint's own lanes                     |
 * | the same for a failing endpoint       | 2     | until its next success                                         |
 * | lease                                 | 30 s  | longer than any request; then the delivery is sent again       |
 */
import type { Log } from "#core/log.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Configuration } from "#core/redis/configuration.ts";
import { type Leased, leaseDeliveries, readBell } from "#core/redis/deliveries.ts";
import { DISABLED_REASON } from "#core/redis/endpoints.ts";
import { readShipments, type StoredShipment } from "#core/redis/shipments.ts";
import { createFinishQueue } from "./finish-queue.ts";
import { type SendDeps, sendDelivery, unsent } from "./send.ts";
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
  leaseMs: 30_000,
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
/** An idle deliverer listens for the bell this often and looks at every partition that often. */
const IDLE_WAIT_MS = 25;
const LOOK_ROUND_MS = 200;
const TROUBLE_WAIT_MS = 500;

export function startDeliverer(deps: DeliverDeps): Deliverer {
  const { redis, live, log } = deps;
  const limits = { ...LIMITS, ...deps.limits };
  const results = createFinishQueue(redis, live, log);
  const pause = createPause();
  const underWay = new Set<Promise<void>>();
  let underWayFailing = 0;
  let busy: ReadonlySet<number> = new Set();
  let firstsLeft = false;
  let turn = 0;
  /** A place has become free, or the last round has left something to do. */
  let eager = true;
  let lookRoundAtMs = 0;
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
    if (eager || performance.now() >= lookRoundAtMs) return true;
    const before = bell;
    bell = await readBell(redis);
    return bell !== before;
  }

  /** @returns how many deliveries were leased */
  async function round(): Promise<number> {
    turn += 1;
    eager = false;
    lookRoundAtMs = performance.now() + LOOK_ROUND_MS;
    const freeFailing = Math.floor(limits.inFlight / 2) - underWayFailing;
    const shares = shareOut(limits.inFlight - underWay.size, freeFailing, busy, turn);
    const terms = {
      leaseMs: limits.leaseMs,
      perEndpoint: limits.inFlightPerEndpoint,
      perFailingEndpoint: limits.inFlightPerFailingEndpoint,
      retries: !firstsLeft,
    };
    // Asked for on the same connection after the leases: an endpoint switched off before its lease is seen as such.
    const [{ leased, more }, configuration] = await Promise.all([
      leaseDeliveries(redis, shares, terms, live.now()),
      live.refresh(),
    ]);
    firstsLeft = more.size > 0;
    const given = Map.groupBy(leased, ({ partition }) => partition);
    const full = shares.filter((share) => given.get(share.partition)?.length === share.wanted);
    busy = new Set([...more, ...full.map(({ partition }) => partition)]);
    // Retries that were held back for first attempts are asked for again at once.
    if (leased.length > 0 || !terms.retries) eager = true;
    if (leased.length > 0) await dispatch(leased, configuration);
    return leased.length;
  }

  async function dispatch(leased: readonly Leased[], configuration: Configuration): Promise<void> {
    const ids = [...new Set(leased.map(({ shipmentId }) => shipmentId))];
    const shipments = await readShipments(redis, ids);
    const byId = new Map(shipments.map((shipment) => [shipment.record.id, shipment]));
    for (const one of leased) start(one, configuration, byId.get(one.shipmentId));
  }

  function start(
    leased: Leased,
    configuration: Configuration,
    shipment: StoredShipment | undefined,
  ): void {
    if (leased.failing) underWayFailing += 1;
    const work = handle(leased, configuration, shipment)
      .catch((error: unknown) => {
        log.error({ err: error, delivery: leased.deliveryId }, "a delivery could not be sent");
        return results.record(unsent(leased, "internal error"));
      })
      .finally(() => {
        underWay.delete(work);
        if (leased.failing) underWayFailing -= 1;
        eager = true;
        pause.wake();
      });
    underWay.add(work);
  }

  async function handle(
    leased: Leased,
    configuration: Configuration,
    shipment: StoredShipment | undefined,
  ): Promise<void> {
    const endpoint = configuration.endpoints.get(leased.endpointId);
    if (!endpoint) return results.record(unsent(leased, "endpoint deleted"));
    if (!endpoint.active) return results.record(unsent(leased, DISABLED_REASON));
    if (!shipment) return results.record(unsent(leased, "shipment gone"));
    return results.record(await sendDelivery(deps, leased, endpoint, shipment));
  }

  const running = loop();
  return {
    async stop() {
      stopping = true;
      pause.wake();
      await running;
      results.giveUp();
      await Promise.all(underWay);
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

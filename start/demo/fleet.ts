/**
 * The simulated courier fleet: registers shipments through the merchants' API and pushes their events through
 * `POST /v1/events`, over HTTP as everybody else. First enough delivered parcels for benchmarks, then a gentle stream.
 */
import type { Log } from "#core/log.ts";
import type { Consignment } from "./consignment.ts";
import { type CourierClient, createCourierClient, type Outcomes } from "./courier-client.ts";
import { DEMO_COURIERS } from "./couriers.ts";
import { DEMO_CHANNELS } from "./demo-setup.ts";
import { createMerchantClient, type MerchantClient } from "./merchant-client.ts";
import { pause } from "./persistent-fetch.ts";
import { BENCHMARK_PLACES } from "./places.ts";
import { createPlanner, type Planner } from "./planner.ts";
import { createRoad } from "./road.ts";

/** Delivered parcels of each courier to each benchmark place at the beginning; a lane needs 20 of them. */
const LANE_PARCELS = 24;
const ARCHIVE_PARCELS = LANE_PARCELS * BENCHMARK_PLACES.length * DEMO_COURIERS.length;
/** Working days that the archive goes back. */
const ARCHIVE_DAYS = 15;

const TICK_MS = 250;
const EVENTS_PER_SECOND = 70;
const EVENTS_PER_TICK = Math.round((EVENTS_PER_SECOND * TICK_MS) / 1_000);
const ROAD_PARCELS = 150;
const BATCH_PARCELS = 50;
/** Parcels whose first event comes before the merchant has registered them. */
const EARLY_SHARE = 0.02;

/** Shipments of all runs together; past it a trickle, so that a night leaves room on the disk. */
const SHIPMENTS_LIMIT = 20_000;
const TRICKLE_PARCELS = 5;
const TRICKLE_EVERY_MS = 60_000;
const FAILURE_WAIT_MS = 5_000;

export interface FleetInput {
  readonly apiUrl: string;
  readonly ingestUrl: string;
  readonly now: () => number;
  readonly log: Log;
}

export interface Fleet {
  readonly outcomes: Readonly<Outcomes>;
  /** Stops sending; what is under way is given up. */
  readonly stop: () => Promise<void>;
}

export function startFleet({ apiUrl, ingestUrl, now, log }: FleetInput): Fleet {
  const abort = new AbortController();
  const registry = createRegistry(createMerchantClient(apiUrl, abort.signal));
  const couriers = createCourierClient(ingestUrl, abort.signal, now);
  const planner = createPlanner(Math.random, now);
  const stream = createStream({ registry, couriers, planner });

  async function drive(): Promise<void> {
    if ((await registry.count()) < ARCHIVE_PARCELS) {
      await pushArchive({ registry, couriers, planner });
    }
    while (!abort.signal.aborted) {
      const startedMs = performance.now();
      await stream.tick();
      await pause(Math.max(0, TICK_MS - (performance.now() - startedMs)), abort.signal);
    }
  }

  /** A refused message ends nothing: the fleet waits and goes on with what follows. */
  async function keepDriving(): Promise<void> {
    while (!abort.signal.aborted) {
      await drive().catch(async (error: Error) => {
        if (abort.signal.aborted) return;
        log.warn({ reason: error.message }, "the simulated fleet was refused");
        await pause(FAILURE_WAIT_MS, abort.signal);
      });
    }
  }

  const driving = keepDriving();
  return {
    outcomes: couriers.outcomes,
    async stop() {
      abort.abort();
      await driving;
    },
  };
}

interface Parties {
  readonly registry: ShipmentRegistry;
  readonly couriers: CourierClient;
  readonly planner: Planner;
}

interface ShipmentRegistry {
  /** Shipments that the demo's channels have, read from the product once and counted on. */
  count(): Promise<number>;
  register(consignments: readonly Consignment[]): Promise<void>;
}

function createRegistry(merchants: MerchantClient): ShipmentRegistry {
  let known: number | null = null;
  return {
    async count() {
      if (known !== null) return known;
      let found = 0;
      for (const channel of DEMO_CHANNELS) found += await merchants.count(channel);
      known = found;
      return found;
    },
    async register(consignments) {
      for (const channel of DEMO_CHANNELS) {
        const own = consignments.filter((one) => one.channel.code === channel.code);
        const shipments = own.map(({ shipment }) => shipment);
        const created = await merchants.create(channel, shipments);
        if (known !== null) known += created;
      }
    },
  };
}

/** Whole histories at once and in no order, as a courier sends them that joins with its archive. */
async function pushArchive({ registry, couriers, planner }: Parties): Promise<void> {
  for (const courier of DEMO_COURIERS) {
    const consignments = BENCHMARK_PLACES.flatMap((destination) =>
      Array.from({ length: LANE_PARCELS }, () => {
        const daysAgo = 1 + Math.floor(Math.random() * ARCHIVE_DAYS);
        return planner.plan({ courier, destination, daysAgo, mustArrive: true });
      }),
    );
    await registry.register(consignments);
    const events = consignments.flatMap((one) => one.events);
    await couriers.push(
      courier,
      events.sort(() => Math.random() - 0.5),
    );
  }
}

function createStream({ registry, couriers, planner }: Parties) {
  const road = createRoad(planner, Math.random);
  let early: readonly Consignment[] = [];
  let trickleDueMs = 0;

  async function load(): Promise<void> {
    if (road.length() >= ROAD_PARCELS) return;
    const isFull = (await registry.count()) >= SHIPMENTS_LIMIT;
    if (isFull && performance.now() < trickleDueMs) return;
    trickleDueMs = performance.now() + TRICKLE_EVERY_MS;
    const length = isFull ? TRICKLE_PARCELS : BATCH_PARCELS;
    const fresh = Array.from({ length }, () => planner.plan({}));
    const due = [...early, ...fresh.filter(() => Math.random() >= EARLY_SHARE)];
    early = fresh.filter((one) => !due.includes(one));
    for (const { courier, events } of early) await couriers.push(courier, events.slice(0, 1));
    await registry.register(due);
    road.add(due);
  }

  return {
    async tick(): Promise<void> {
      await load();
      const batch = road.next(EVENTS_PER_TICK);
      await Promise.all(
        DEMO_COURIERS.map((courier) => {
          const own = batch.filter((one) => one.courier === courier);
          return couriers.push(
            courier,
            own.map(({ event }) => event),
          );
        }),
      );
    },
  };
}

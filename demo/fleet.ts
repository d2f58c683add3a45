/**
 * The simulated courier fleet: registers shipments through the merchants' API and pushes their events through
 * `POST /v1/events`, over HTTP as everybody else. First the parcels of the last weeks, received when they were sent, then a
 * gentle stream of parcels that arrive today.
 */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { romeDate, romeIso } from "#core/platform/time/rome-time.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { Consignment } from "./consignment.ts";
import { type CourierClient, createCourierClient, type Outcomes } from "./courier-client.ts";
import { DEMO_COURIERS } from "./couriers.ts";
import { DEMO_CHANNELS } from "./demo-setup.ts";
import { createMerchantClient, type MerchantClient } from "./merchant-client.ts";
import { createPastCourier, type PastCourier } from "./past-courier.ts";
import { pause } from "./persistent-fetch.ts";
import { BENCHMARK_PLACES } from "./places.ts";
import { createPlanner, type Planner } from "./planner.ts";
import { createRoad, type SentEvent } from "./road.ts";

/** Delivered parcels of each courier to each benchmark place at the beginning; a lane needs 20 of them. */
const LANE_PARCELS = 24;
const ARCHIVE_PARCELS = LANE_PARCELS * BENCHMARK_PLACES.length * DEMO_COURIERS.length;
/** Working days that the archive goes back. */
const ARCHIVE_DAYS = 15;

const TICK_MS = 250;
const EVENTS_PER_SECOND = 20;
const EVENTS_PER_TICK = Math.round((EVENTS_PER_SECOND * TICK_MS) / 1_000);
const ROAD_PARCELS = 150;
const BATCH_PARCELS = 50;
/** Of so many batches the shops import one as a file instead of creating its shipments one request after the other. */
const IMPORT_EVERY_BATCHES = 30;
/** Lines of a file whose tracking number was left out. */
const FAULTY_LINES = 2;
/** Parcels whose first event comes before the merchant has registered them. */
const EARLY_SHARE = 0.02;
/** From what happens today until a courier tells it: most within two minutes, some within six. */
const LONGEST_DELAY_MS = 360_000;
const SHORTEST_DELAY_MS = 15_000;
/** Between two steps of a parcel that arrives today. */
const STEP_MS = 2_000;

/** Shipments of all runs together; past it a trickle, so that a night leaves room on the disk. */
const SHIPMENTS_LIMIT = 20_000;
const TRICKLE_PARCELS = 5;
const TRICKLE_EVERY_MS = 60_000;
const FAILURE_WAIT_MS = 5_000;

export interface FleetInput {
  readonly apiUrl: string;
  readonly ingestUrl: string;
  readonly runtime: Runtime;
}

export interface Fleet {
  readonly outcomes: Readonly<Outcomes>;
  /** Stops sending; what is under way is given up. */
  readonly stop: () => Promise<void>;
}

export function startFleet({ apiUrl, ingestUrl, runtime }: FleetInput): Fleet {
  const { log } = runtime;
  const { now } = runtime.live;
  const abort = new AbortController();
  const registry = createRegistry(createMerchantClient(apiUrl, abort.signal));
  const couriers = createCourierClient(ingestUrl, abort.signal, now);
  const planner = createPlanner(Math.random, now);
  const past = createPastCourier(runtime, abort.signal);
  const parties = { registry, couriers, past, planner, now };
  const stream = createStream(parties);

  async function drive(): Promise<void> {
    if ((await registry.count()) < ARCHIVE_PARCELS) {
      await pushArchive(parties);
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
  readonly past: PastCourier;
  readonly planner: Planner;
  readonly now: () => number;
}

interface ShipmentRegistry {
  /** Shipments that the demo's channels have, read from the product once and counted on. */
  count(): Promise<number>;
  register(consignments: readonly Consignment[], way?: "create" | "import"): Promise<void>;
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
    async register(consignments, way = "create") {
      for (const channel of DEMO_CHANNELS) {
        const own = consignments.filter((one) => one.channel.code === channel.code);
        const shipments = own.map(({ shipment }) => shipment);
        const created =
          way === "create"
            ? await merchants.create(channel, shipments)
            : await merchants.importAll(channel, [...shipments, ...faultyLines(shipments)]);
        if (known !== null) known += created;
      }
    },
  };
}

function faultyLines(shipments: readonly object[]): object[] {
  return shipments.slice(0, FAULTY_LINES).map((one) => ({ ...one, trackingNumber: "" }));
}

/** Parcels that arrived in the last weeks, of all couriers in the order of their days. */
async function pushArchive({ registry, past, planner }: Parties): Promise<void> {
  const consignments = DEMO_COURIERS.flatMap((courier) =>
    BENCHMARK_PLACES.flatMap((destination) =>
      Array.from({ length: LANE_PARCELS }, () => {
        const daysAgo = 1 + Math.floor(Math.random() * ARCHIVE_DAYS);
        return planner.plan({ courier, destination, daysAgo, mustArrive: true });
      }),
    ),
  );
  await registry.register(consignments, "import");
  await past.push(consignments.flatMap(sentEvents));
}

function sentEvents({ courier, events }: Consignment): SentEvent[] {
  return events.map((event) => ({ courier, event }));
}

interface Split {
  /** What happened before today. */
  readonly past: Consignment;
  /** Today's steps, happening now. */
  readonly today: Consignment;
}

function splitToday(consignment: Consignment, nowMs: number): Split {
  const day = romeDate(nowMs);
  const isToday = ({ occurredAt }: CourierEvent) => occurredAt.startsWith(day);
  const steps = consignment.events.filter(isToday);
  const delayMs = SHORTEST_DELAY_MS + Math.random() ** 3 * LONGEST_DELAY_MS;
  const beganMs = nowMs - delayMs - steps.length * STEP_MS;
  const events = steps.map((event, at) => ({
    ...event,
    occurredAt: romeIso(beganMs + at * STEP_MS),
  }));
  return {
    past: { ...consignment, events: consignment.events.filter((event) => !isToday(event)) },
    today: { ...consignment, events },
  };
}

function createStream({ registry, couriers, past, planner, now }: Parties) {
  const road = createRoad(planner, Math.random);
  let early: readonly Consignment[] = [];
  let trickleDueMs = 0;
  let batches = 0;

  async function load(): Promise<void> {
    if (road.length() >= ROAD_PARCELS) return;
    const isFull = (await registry.count()) >= SHIPMENTS_LIMIT;
    if (isFull && performance.now() < trickleDueMs) return;
    trickleDueMs = performance.now() + TRICKLE_EVERY_MS;
    const length = isFull ? TRICKLE_PARCELS : BATCH_PARCELS;
    const fresh = Array.from({ length }, () => planner.plan({ daysAgo: 0 }));
    const due = [...early, ...fresh.filter(() => Math.random() >= EARLY_SHARE)];
    early = fresh.filter((one) => !due.includes(one));
    await past.push(early.flatMap((one) => sentEvents(one).slice(0, 1)));
    batches += 1;
    await registry.register(due, batches % IMPORT_EVERY_BATCHES === 0 ? "import" : "create");
    const split = due.map((one) => splitToday(one, now()));
    await past.push(split.flatMap((one) => sentEvents(one.past)));
    road.add(split.map((one) => one.today).filter(({ events }) => events.length > 0));
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

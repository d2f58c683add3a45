/**
 * Bytes of Redis memory per shipment with 8 events, 1 parcel and 2 order lines (row 10), all in: state, history, indices,
 * references, tracking numbers: `bun bench/shipment-memory.ts [--shipments 20000] [--quick] [--json]`. Beside it the JSON text
 * of the same detail as the API answers it. `--kinds` tells what each kind of key holds.
 */
import { parseArgs } from "node:util";
import { detailPart } from "#api/shipments/shipment-detail.ts";
import { summaryOf } from "#api/shipments/summary.ts";
import { type Figure, machine, median, print, redisVersion } from "#bench/table.ts";
import type { CourierEvent } from "#core/domain/courier-events/event.ts";
import { prepareShipment } from "#core/domain/shipments/new-shipment.ts";
import type { ShipmentInput } from "#core/domain/shipments/shipment.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { CHANGE_LOGS } from "#core/redis/client/keys.ts";
import { encodeLoggedEvent } from "#core/redis/log/event-log.ts";
import { seenBucket } from "#core/redis/log/seen.ts";
import { creationContext } from "#core/redis/shipments/create-items.ts";
import { createShipments } from "#core/redis/shipments/create-shipments.ts";
import { registerShipments } from "#core/redis/shipments/register-shipments.ts";
import { readHistory, readShipments } from "#core/redis/shipments/shipments.ts";
import { trackHandler } from "#processors/track.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

const GOAL = { oursMost: 2_560, most: 1 };
/** A small channel has more of what every channel has. */
const ALARM = { oursMost: 3_500, most: 1.5 };
/** Details that the JSON text is measured of. */
const DETAILS = 100;
const SHIPMENTS_AT_ONCE = 100;
const STEPS = ["INF", "DEP", "TRN", "TRN", "TRN", "OUT", "HLD", "DLV"] as const;
const HUBS = ["Hub Milano", "Hub Bologna", "Filiale Roma Est", "Filiale Roma Nord"];
const FIRST_EVENT_MS = Date.parse("2026-11-10T08:00:00Z");
const HOUR_MS = 3_600_000;

/** An ordinary Italian parcel: names and streets differ from one to the next. */
function itemOf(n: number): ShipmentInput {
  const name = `${["Mario", "Giulia", "Luca", "Sara"][n % 4]} ${["Rossi", "Bianchi", "Ferrari"][n % 3]}`;
  return {
    trackingNumber: `1Z${String(982_451_653 * (n + 1))
      .padStart(16, "0")
      .slice(-16)}`,
    courier: "GLS_ITA",
    shipDate: `2026-11-${String(1 + (n % 28)).padStart(2, "0")}`,
    orderReference: `IT-2026-${100_000 + n}`,
    orderDate: "2026-11-01",
    origin: "shopify",
    consignee: {
      name,
      street: `Via Giuseppe Garibaldi ${1 + (n % 240)}`,
      city: ["Roma", "Torino", "Napoli"][n % 3] ?? "Roma",
      postcode: ["00118", "10121", "80121"][n % 3] ?? "00118",
      state: ["RM", "TO", "NA"][n % 3] ?? "RM",
      country: "IT",
      email: `cliente${n}@example.com`,
      phone: `+39 333 ${1_000_000 + n}`,
    },
    monetary: { totalValue: 20 + (n % 900) / 10, currency: "EUR" },
    parcels: [{ weight: 1 + (n % 50) / 10, boxCode: "S" }],
    orderItems: [
      { sku: `SKU-${n % 977}`, name: "Maglietta girocollo cotone", quantity: 1, price: 19.9 },
      { sku: `SKU-${n % 389}`, name: "Pantaloni chino slim", quantity: 2, price: 49.5 },
    ],
  };
}

function eventOf(n: number, step: number, trackingNumber: string): CourierEvent {
  const code = STEPS[step] ?? "TRN";
  const atMs = FIRST_EVENT_MS + (step * 7 + (n % 5)) * HOUR_MS;
  const delivery = { estimatedDeliveryDate: "2026-11-13" };
  return {
    eventId: `${n}-${step}-${(n * 7919 + step).toString(36)}`,
    trackingNumber,
    occurredAt: `${new Date(atMs + HOUR_MS).toISOString().slice(0, 19)}+01:00`,
    status: { code, description: `${code} Stato del corriere in chiaro` },
    location: {
      name: HUBS[(n + step) % HUBS.length] ?? "",
      countryCode: "IT",
      postalCode: "20121",
    },
    ...(code === "OUT" && { delivery }),
    ...(code === "DLV" && {
      delivery: { ...delivery, deliveredTo: "RECIPIENT", signedBy: "Rossi" },
    }),
  };
}

async function addShipments(runtime: TestRuntime, from: number, count: number): Promise<number[]> {
  const { redis, live } = runtime;
  const channel = live.configuration().channelByCode.get("acme-it");
  if (!channel) throw new Error("no channel");
  const context = creationContext(live.configuration(), channel);
  const ready = Array.from({ length: count }, (_, n) => {
    const prepared = prepareShipment(itemOf(from + n), context, live.now());
    if (prepared.kind === "rejected") throw new Error(JSON.stringify(prepared.errors));
    return prepared;
  });
  const ids = (await createShipments(redis, channel.companyId, ready)).map(({ id }) => id);
  await registerShipments(redis, live.configuration(), ids);
  const handler = trackHandler({ redis, live, eventsPerDay: 1_000 });
  for (let step = 0; step < STEPS.length; step += 1) {
    const failures = await handler(
      ids.map((shipmentId, n) => {
        const event = eventOf(from + n, step, itemOf(from + n).trackingNumber);
        const { factKey } = seenBucket("GLS_ITA", event.eventId);
        const receivedAtMs = live.now();
        const logged = {
          shipmentId,
          courier: "GLS_ITA",
          factKey,
          receivedAtMs,
          messageIndex: n,
          event,
        };
        return { key: "{e0}:log", id: `${n}-0`, fields: { e: encodeLoggedEvent(logged) } };
      }),
    );
    if (failures.length > 0) throw new Error(failures[0]?.reason);
  }
  // The change log is on its way to others and no part of the shipment.
  for (const log of CHANGE_LOGS) await redis.xTrim(log, "MAXLEN", 0);
  return ids;
}

async function usedBytes(redis: Redis): Promise<number> {
  const info = await redis.info("memory");
  return Number(/used_memory:(\d+)/.exec(info)?.[1] ?? 0);
}

/** Mean bytes of the keys of each kind, over all shipments. */
async function byKind(redis: Redis, shipments: number): Promise<[string, number][]> {
  const sums = new Map<string, number>();
  for await (const keys of redis.scanIterator({ COUNT: 1_000 })) {
    const pipeline = redis.multi();
    for (const key of keys) pipeline.addCommand(["MEMORY", "USAGE", key, "SAMPLES", "0"]);
    const sizes = (await pipeline.execAsPipeline()) as unknown as number[];
    keys.forEach((key, at) => {
      const kind = /^\{[a-z]\d+\}:([a-z]+)/.exec(key)?.[1] ?? "other";
      sums.set(kind, (sums.get(kind) ?? 0) + (sizes[at] ?? 0));
    });
  }
  return [...sums]
    .map(([kind, bytes]): [string, number] => [kind, bytes / shipments])
    .filter(([, bytes]) => bytes >= 1)
    .sort((one, other) => other[1] - one[1]);
}

/** Of the detail as `GET /v2/shipments/{id}` answers it. */
async function jsonBytes({ redis, live }: TestRuntime, ids: readonly number[]): Promise<number> {
  const configuration = live.configuration();
  const sizes: number[] = [];
  for (const shipment of await readShipments(redis, ids)) {
    const history = await readHistory(redis, shipment.record.id);
    const detail = {
      ...summaryOf(shipment, configuration),
      ...detailPart(shipment, history, [], configuration.statusDetails),
    };
    sizes.push(Buffer.byteLength(JSON.stringify(detail)));
  }
  return median(sizes);
}

const { values } = parseArgs({
  options: {
    shipments: { type: "string", default: "20000" },
    quick: { type: "boolean", default: false },
    kinds: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const count = values.quick ? 2_000 : Number(values.shipments);
const runtime = await openTestRuntime(testSetup());
try {
  await addShipments(runtime, 1_000_000, SHIPMENTS_AT_ONCE);
  const before = await usedBytes(runtime.redis);
  const ids: number[] = [];
  for (let from = 0; from < count; from += SHIPMENTS_AT_ONCE) {
    ids.push(...(await addShipments(runtime, from, SHIPMENTS_AT_ONCE)));
  }
  const ours = ((await usedBytes(runtime.redis)) - before) / ids.length;
  const peer = await jsonBytes(runtime, ids.slice(0, DETAILS));
  const kinds = values.kinds ? await byKind(runtime.redis, ids.length + SHIPMENTS_AT_ONCE) : [];
  for (const [kind, size] of kinds) {
    process.stderr.write(`${kind.padEnd(8)} ${Math.round(size)}\n`);
  }
  const figure: Figure = {
    ...{ row: 10, work: `a shipment of ${STEPS.length} events, 1 parcel, 2 lines`, ours, peer },
    ...{ beside: "JSON text of its detail", unit: "bytes", goal: GOAL, alarm: ALARM },
  };
  const version = await redisVersion(runtime.redis);
  const about = `${machine(version)}, ${ids.length.toLocaleString("en")} shipments`;
  print([figure], about, values.json);
} finally {
  await runtime.end();
}

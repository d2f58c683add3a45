/** Ordinary shipments, as the figures about their size take them: 8 events, 1 parcel and 2 order lines each. */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { CHANGE_LOGS } from "#core/platform/redis/keys.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { prepareShipment } from "#core/shipments/rules/new-shipment.ts";
import type { ShipmentInput } from "#core/shipments/rules/shipment.ts";
import { creationContext } from "#core/shipments/store/create-items.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import { registerShipments } from "#core/shipments/store/register-shipments.ts";
import { trackHandler } from "#processors/track/track.ts";

export const SHIPMENTS_AT_ONCE = 100;
export const STEPS = ["INF", "DEP", "TRN", "TRN", "TRN", "OUT", "HLD", "DLV"] as const;
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

export async function addShipments(
  runtime: Pick<Runtime, "redis" | "live">,
  from: number,
  count: number,
): Promise<number[]> {
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

/** Track in this process. And ordinary shipments that are over, as the figures about their size take them: 8 events, 1 parcel and 2 order lines each. */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { type LogItem, startConsumer } from "#core/platform/log/consumer.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { EVENTS_AT_ONCE } from "#processors/main.ts";
import { trackHandler } from "#processors/track/track.ts";
import { COURIER, createItems, emptyLogs, itemOf } from "./shipments.ts";

export const SHIPMENTS_AT_ONCE = 100;
export const STEPS = ["INF", "DEP", "TRN", "TRN", "TRN", "OUT", "HLD", "DLV"] as const;
const HUBS = ["Hub Milano", "Hub Bologna", "Filiale Roma Est", "Filiale Roma Nord"];
const FIRST_EVENT_MS = Date.parse("2026-11-10T08:00:00Z");
const HOUR_MS = 3_600_000;

const ordinaryItem = (n: number) => {
  const digits = String(982_451_653 * (n + 1)).padStart(16, "0");
  return itemOf(n, `1Z${digits.slice(-16)}`);
};

function eventOf(n: number, step: number): CourierEvent {
  const code = STEPS[step] ?? "TRN";
  const atMs = FIRST_EVENT_MS + (step * 7 + (n % 5)) * HOUR_MS;
  const delivery = { estimatedDeliveryDate: "2026-11-13" };
  const place = HUBS[(n + step) % HUBS.length] ?? "";
  return {
    eventId: `${n}-${step}-${(n * 7919 + step).toString(36)}`,
    trackingNumber: ordinaryItem(n).trackingNumber,
    occurredAt: `${new Date(atMs + HOUR_MS).toISOString().slice(0, 19)}+01:00`,
    status: { code, description: `${code} Stato del corriere in chiaro` },
    location: { name: place, countryCode: "IT", postalCode: "20121" },
    ...(code === "OUT" && { delivery }),
    ...(code === "DLV" && {
      delivery: { ...delivery, deliveredTo: "RECIPIENT", signedBy: "Rossi" },
    }),
  };
}

/** Of the event log, as ingest writes them. */
export function logItem(shipmentId: number, event: CourierEvent, messageIndex: number): LogItem {
  const { factKey } = seenBucket(COURIER, event.eventId);
  const receivedAtMs = Date.now();
  const logged = { shipmentId, courier: COURIER, factKey, receivedAtMs, messageIndex, event };
  return { key: "{e0}:log", id: `${messageIndex}-0`, fields: { e: encodeLoggedEvent(logged) } };
}

/** In the first channel of the setup of the tests. @returns their ids */
export async function addShipments(
  runtime: Pick<Runtime, "redis" | "live">,
  from: number,
  count: number,
): Promise<number[]> {
  const all: number[] = [];
  const handler = trackHandler({ redis: runtime.redis, live: runtime.live, eventsPerDay: 1_000 });
  for (let first = from; first < from + count; first += SHIPMENTS_AT_ONCE) {
    const items = Array.from({ length: SHIPMENTS_AT_ONCE }, (_, n) => ordinaryItem(first + n));
    const ids = await createItems(runtime, "acme-it", items);
    for (const step of STEPS.keys()) {
      const entries = ids.map((id, n) => logItem(id, eventOf(first + n, step), n));
      const [failure] = await handler(entries);
      if (failure) throw new Error(failure.reason);
    }
    await emptyLogs(runtime.redis);
    all.push(...ids);
  }
  return all;
}

/** The consumer of the event log as `processors/main.ts` starts it, in this process, until so many events have been applied. */
export async function processLog(
  { redis, log, live, config }: Runtime,
  events: number,
): Promise<void> {
  const handle = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay });
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = events;
  const consumer = startConsumer({
    redis,
    log,
    source: "event",
    group: "track",
    batch: EVENTS_AT_ONCE,
    async handler(entries) {
      const failures = await handle(entries);
      left -= entries.length - failures.length;
      if (left <= 0) resolve();
      return failures;
    },
  });
  await promise;
  await consumer.stop();
}

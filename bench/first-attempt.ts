/**
 * From an event's message to the first attempt of its webhook at 1,000 events/s (row 6) and at 100 (row 19): `bun
 * bench/first-attempt.ts [--seconds 30] [--quick] [--json]`. Ingest and processors are processes of their own; events come as signed
 * messages of 50 or 5, and every one becomes a delivery to one endpoint or two. The clock runs from the sending of the message, here, to the
 * arrival at the receiver, on the same machine; the first seconds, in which the processes warm up, are not counted.
 */

import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { messageOf, post } from "./events.ts";
import * as harness from "./harness.ts";
import { type Receivers, startReceivers } from "./receivers.ts";
import { figureOf } from "./rows.ts";
import { webhookSetup } from "./shipments.ts";
import { percentile } from "./table.ts";

const { seconds, warmUp } = harness.readOptions({ seconds: [30, 4], warmUp: [5, 2] });
const COMPANIES = 48;
const SHIPMENTS = 2_000;
const MESSAGES_PER_SECOND = 20;
/** Events a second, the first number of an event, and the figures. */
const LOADS = [
  { rate: 1_000, first: 0, percentiles: [50, 95, 99] },
  { rate: 100, first: 500_000, percentiles: [50, 99] },
] as const;

/** The number of an event is its text, and so the text of its webhook's fact. */
function eventText(number: number): string {
  return JSON.stringify({
    eventId: `bench-${number}`,
    trackingNumber: `BENCH-${number % SHIPMENTS}`,
    occurredAt: new Date(Date.UTC(2026, 10, 10) + number * 1_000).toISOString(),
    status: { code: "TRN", description: String(number) },
    location: { name: "Hub Milano Sesto San Giovanni", countryCode: "IT", postalCode: "20099" },
  });
}

/**
 * Sends at its pace whatever becomes of the messages.
 * @returns milliseconds from the sending to the first arrival, for every event after the warm-up
 */
async function measure(url: string, receivers: Receivers, rate: number, first: number) {
  const perMessage = rate / MESSAGES_PER_SECOND;
  const messages = (seconds + warmUp) * MESSAGES_PER_SECOND;
  const sentMs: number[] = [];
  const posts: Promise<boolean>[] = [];
  const startMs = Date.now();
  for (let n = 0; n < messages; n += 1) {
    await Bun.sleep(Math.max(0, startMs + (n * 1_000) / MESSAGES_PER_SECOND - Date.now()));
    const from = first + n * perMessage;
    const events = Array.from({ length: perMessage }, (_, at) => eventText(from + at));
    sentMs.push(Date.now());
    posts.push(post(url, messageOf(from, events)));
  }
  if (!(await Promise.all(posts)).every(Boolean)) throw new Error("a message was not taken");
  const events = messages * perMessage;
  const arrivedMs = new Map<number, number>();
  const isDone = async () => {
    const arrivals = await receivers.arrivals();
    for (let at = 0; at < arrivals.length; at += 2) {
      const [event = 0, atMs = 0] = arrivals.slice(at, at + 2);
      // Deliveries to second endpoints of the load before may still arrive.
      if (event < first || event >= first + events) continue;
      arrivedMs.set(event, Math.min(atMs, arrivedMs.get(event) ?? atMs));
    }
    return arrivedMs.size === events;
  };
  await eventually(isDone, "every event's webhook arrives", harness.LIMIT_MS);
  return [...arrivedMs]
    .filter(([event]) => event - first >= warmUp * rate)
    .map(([event, atMs]) => atMs - (sentMs[Math.floor((event - first) / perMessage)] ?? 0));
}

await harness.runPart(async (defer) => {
  const receivers = await startReceivers(defer, 2 * COMPANIES);
  // Every other channel has a second endpoint.
  const urls = Array.from({ length: COMPANIES }, (_, n) =>
    [2 * n, 2 * n + 1].slice(0, 1 + (n % 2)).map((one) => receivers.urlOf(one)),
  );
  const own = { EVENTS_PER_DAY: "100000", WEBHOOK_CA_FILE: receivers.caFile };
  const store = await harness.openStore(defer, webhookSetup(urls, "every_event"), own);
  const { runtime, env } = store;
  for (let n = 0; n < SHIPMENTS; n += 1) {
    await addShipment(runtime, `BENCH-${n}`, { channel: `channel-${n % COMPANIES}` });
  }
  const { url } = await harness.startServer("ingest", env);
  harness.startRole("processors", env);
  const figures = [];
  for (const { rate, first, percentiles } of LOADS) {
    const tookMs = await measure(url, receivers, rate, first);
    for (const one of percentiles) {
      const ours = percentile(tookMs, one / 100);
      figures.push(figureOf(`first-attempt ${rate}p${one}`, { ours }));
    }
  }
  return { figures, redis: runtime.redis, about: `${seconds} s` };
});

/** Document 3, Delivery and Endpoint: a killed process loses no delivery and sends none to an endpoint that is off. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { event, pushUntilAccepted } from "#test/support/clients/courier.ts";
import { createShipments } from "#test/support/clients/event-stream.ts";
import { askPanel, readPanel } from "#test/support/clients/operator.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { webhookSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";
import {
  DELIVERED_LIMIT_MS,
  type Receiver,
  startReceiver,
  WEBHOOK_ENV,
} from "#test/support/servers/receiver.ts";
import { onServer, STORES } from "#test/support/servers/stores.ts";

const SHIPMENTS = 20;
const EVENTS_PER_MESSAGE = 20;
/** So slow that deliveries are under way and waiting whenever the product dies. */
const ANSWER_MS = { steady: 20, slow: 250 };
const FIRST_MS = Date.parse("2026-11-10T00:00:00Z");

describe.each(STORES)("on %s", (store) => {
  let steady: Receiver;
  let slow: Receiver;
  let product: Product;
  const accepted = new Map<string, CourierEvent>();

  beforeAll(async () => {
    [steady, slow] = await Promise.all([startReceiver(), startReceiver()]);
    steady.behave((_, response) => void setTimeout(() => response.end(), ANSWER_MS.steady));
    slow.behave((_, response) => void setTimeout(() => response.end(), ANSWER_MS.slow));
    const setup = webhookSetup(
      { code: "steady", url: steady.url, trigger: "every_event" },
      { code: "slow", url: slow.url, trigger: "every_event" },
    );
    const env = { ...WEBHOOK_ENV, ...onServer(store, 16) };
    product = await startProduct(setup, env, store);
  }, 300_000);

  afterAll(async () => {
    await product.end();
    await Promise.all([steady.stop(), slow.stop()]);
  }, 300_000);

  const read = (path: string) => readPanel(product, path);

  async function deliveriesOf(endpointId: string): Promise<{ eventId: string; state: string }[]> {
    const all = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const from: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const page = await read(`/webhooks/${endpointId}/deliveries?limit=200${from}`);
      all.push(...page.items);
      cursor = page.nextCursor;
    }
    return all;
  }

  test("kills during deliveries lose none, and an endpoint switched off hears nothing more", async () => {
    const measuring = startMeasuring("Kill everything", `webhooks on their way, on ${store}`);
    const ids = await createShipments(product, "HOOK", SHIPMENTS);
    const { items } = await read("/channels/acme-it/webhooks");
    const idOf = (code: string) => items.find((one: { code: string }) => one.code === code).id;

    await sendMessages(3);
    await eventually(
      () => slow.open() > 0 && steady.requests.length > 5,
      "deliveries are under way",
    );
    await product.kill(false);
    await product.start();
    const served = async (what: string) => {
      const before = slow.requests.length;
      await eventually(() => slow.requests.length > before, what);
    };
    await sendMessages(3);
    await served("the slow endpoint is served again");
    // From now on it answers nothing: what it has been sent is still under way when it is switched off.
    slow.behave(() => {});
    const sending = sendMessages(1);
    await served("it is waited for");
    await sending;
    const off = await askPanel(product, "POST", `/webhooks/${idOf("slow")}/disable`);
    expect(off.body.status).toBe("disabled");
    const before = new Set(accepted.keys());
    await sendMessages(1);
    // What had left for the receiver when it was switched off may still arrive.
    await product.kill(true);
    await product.start();
    const startedAtMs = Date.now();
    await sendMessages(1);

    const log = (code: string) => deliveriesOf(idOf(code));
    await eventually(
      async () => {
        const own = await log("steady");
        return own.length === accepted.size && own.every(({ state }) => state === "delivered");
      },
      "every accepted event is delivered to the steady endpoint",
      DELIVERED_LIMIT_MS,
    );
    const reported = new Set(steady.requests.map(({ body }) => body.id));
    expect(reported).toEqual(new Set((await log("steady")).map(({ eventId }) => eventId)));
    expect(reported.size).toBe(accepted.size);

    await eventually(
      async () => (await log("slow")).every(({ state }) => ["failed", "delivered"].includes(state)),
      "nothing waits for the endpoint that is off",
      60_000,
    );
    expect((await log("slow")).some(({ state }) => state === "failed")).toBe(true);
    expect(slow.requests.filter(({ atMs }) => atMs > startedAtMs)).toEqual([]);
    const since = [...accepted.keys()].filter((id) => !before.has(id));
    expect(since.filter((id) => slow.requests.some(({ raw }) => raw.includes(id)))).toEqual([]);
    expect([...before].some((id) => slow.requests.some(({ raw }) => raw.includes(id)))).toBe(true);
    const counted = await expectExactlyOnce(product, "HOOK", ids, accepted);
    const repeated = steady.requests.length - reported.size;
    const further = {
      "webhooks received": reported.size,
      "requests repeated under their id": repeated,
    };
    await measuring.done({ kills: 2, ...counted, further });
  }, 300_000);

  async function sendMessages(count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      const first = accepted.size;
      const events = Array.from({ length: EVENTS_PER_MESSAGE }, (_, at) => numbered(first + at));
      await pushUntilAccepted(product.ingest, events);
      for (const one of events) accepted.set(one.eventId, one);
    }
  }
});

/** The text of the status is the eventId, which the oracle looks for. */
function numbered(at: number): CourierEvent {
  const occurredAt = new Date(FIRST_MS + at * 60_000).toISOString();
  const one = event({ trackingNumber: `HOOK-${at % SHIPMENTS}`, occurredAt });
  return { ...one, status: { code: "TRN", description: one.eventId } };
}

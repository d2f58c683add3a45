/** Invariant 1: an event answered ACCEPTED is applied exactly once, whatever process is killed, whenever. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { CourierEvent } from "#core/domain/event.ts";
import { event, push } from "#test/support/courier.ts";
import { eventually } from "#test/support/eventually.ts";
import { request, shipmentItem, signIn } from "#test/support/merchant.ts";
import { newProduct, PANEL_TOKEN, type Product } from "#test/support/product.ts";
import { testSetup } from "#test/support/setup.ts";

const KILLS = 20;
const SHIPMENTS = 40;
const EVENTS_PER_MESSAGE = 25;
const SENDERS = 4;
const LIFE_MS = { least: 150, spread: 600 };

let product: Product;

beforeAll(async () => {
  product = await newProduct(["bun", "start/main.ts", "--quiet"], testSetup());
  await product.start();
});

afterAll(() => product.end());

test("20 kills in a stream of events lose nothing that was accepted and double nothing", async () => {
  const ids = await createShipments();
  const accepted = new Map<string, string>();
  const life = { over: false };
  const senders = Array.from({ length: SENDERS }, (_, n) => sendUntil(life, n, accepted));
  for (let kills = 0; kills < KILLS; kills += 1) {
    const before = accepted.size;
    await eventually(() => accepted.size > before, "events are accepted again", 60_000);
    await Bun.sleep(LIFE_MS.least + Math.random() * LIFE_MS.spread);
    // Every other time its Redis dies with it, in the middle of whatever it writes.
    await product.kill(kills % 2 === 1);
    await product.start();
  }
  life.over = true;
  await Promise.all(senders);
  expect(accepted.size).toBeGreaterThan(KILLS * EVENTS_PER_MESSAGE);
  await everythingIsApplied();

  const found = await readHistories(ids);
  expect(found.length).toBe(new Set(found).size);
  expect(new Set(found)).toEqual(new Set(accepted.keys()));
}, 420_000);

async function createShipments(): Promise<number[]> {
  const merchant = await signIn(product.api, "key_acme_main");
  const shipments = Array.from({ length: SHIPMENTS }, (_, n) => shipmentItem(`KILL-${n}`));
  const { status, body } = await merchant.call("POST", "/v2/shipments", { shipments });
  expect(status).toBe(201);
  return body.items.map(({ id }: { id: number }) => id);
}

/** Sends message after message, each until it is processed: a sender of document 2 that retries for ever. */
async function sendUntil(
  life: { over: boolean },
  sender: number,
  accepted: Map<string, string>,
): Promise<void> {
  for (let sent = 0; !life.over; sent += 1) {
    const events = Array.from({ length: EVENTS_PER_MESSAGE }, (_, n) => numbered(sender, sent, n));
    const results = await sendOnce(events);
    for (const { eventId, outcome } of results) {
      // A retry of a message that was processed and never answered comes back as DUPLICATE.
      expect(["ACCEPTED", "DUPLICATE"]).toContain(outcome);
      accepted.set(eventId, outcome);
    }
  }
}

async function sendOnce(
  events: readonly CourierEvent[],
): Promise<Array<{ eventId: string; outcome: string }>> {
  for (;;) {
    const answer = await push(product.ingest, events).catch(() => null);
    if (answer?.status === 200) return answer.body.results;
    await Bun.sleep(50);
  }
}

/** The text of the status carries the eventId, so that the merchant's history tells which events arrived. */
function numbered(sender: number, message: number, at: number): CourierEvent {
  const minute = String((message * 7 + at) % 60).padStart(2, "0");
  const hour = String((message + sender) % 24).padStart(2, "0");
  const one = event({
    trackingNumber: `KILL-${(message * EVENTS_PER_MESSAGE + at * 3 + sender) % SHIPMENTS}`,
    occurredAt: `2026-11-10T${hour}:${minute}:00+01:00`,
  });
  return {
    ...one,
    status: { code: ["TRN", "OUT", "HLD"][at % 3] ?? "TRN", description: one.eventId },
  };
}

async function everythingIsApplied(): Promise<void> {
  const path = `${product.panel}/panel/api/overview`;
  const headers = { authorization: `Bearer ${PANEL_TOKEN}` };
  let last: unknown;
  await eventually(
    async () => {
      const { body } = await request("GET", path, undefined, headers);
      last = body;
      const track = body.lag.find(({ group }: { group: string }) => group === "track");
      return track.entries === 0 && body.ledger.accepted === body.ledger.applied;
    },
    () => `every accepted event is applied; the overview says ${JSON.stringify(last)}`,
    60_000,
  );
}

async function readHistories(ids: readonly number[]): Promise<string[]> {
  const merchant = await signIn(product.api, "key_acme_main");
  const details = await Promise.all(ids.map((id) => merchant.call("GET", `/v2/shipments/${id}`)));
  return details.flatMap(({ body }) =>
    body.history.map(({ courierStatus }: { courierStatus: string }) => courierStatus),
  );
}

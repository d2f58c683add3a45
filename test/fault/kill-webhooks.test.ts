/** Document 3, Delivery and Endpoint: a killed process loses no delivery and sends none to an endpoint that is off. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { event, push } from "#test/support/courier.ts";
import { eventually } from "#test/support/eventually.ts";
import { request, shipmentItem, signIn } from "#test/support/merchant.ts";
import { newProduct, PANEL_TOKEN, type Product } from "#test/support/product.ts";
import {
  createAuthority,
  type Receiver,
  startReceiver,
  type TestAuthority,
} from "#test/support/receiver.ts";
import { testSetup } from "#test/support/setup.ts";

const SHIPMENTS = 20;
const EVENTS_PER_MESSAGE = 20;
/** So slow that deliveries are under way and waiting whenever the product dies. */
const ANSWER_MS = { steady: 20, slow: 250 };
/** What had left for the receiver when it was switched off may still arrive. */
const GRACE_MS = 500;

let authority: TestAuthority;
let steady: Receiver;
let slow: Receiver;
let product: Product;

beforeAll(async () => {
  authority = await createAuthority();
  const keys = await authority.issue(["localhost"]);
  [steady, slow] = await Promise.all([startReceiver(keys), startReceiver(keys)]);
  steady.behave((_, response) => void setTimeout(() => response.end(), ANSWER_MS.steady));
  slow.behave((_, response) => void setTimeout(() => response.end(), ANSWER_MS.slow));
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  const common = { trigger: "every_event", alertEmail: "ops@acme.test" } as const;
  if (channel) {
    channel.webhooks = [
      { code: "steady", url: steady.url, ...common },
      { code: "slow", url: slow.url, ...common },
    ];
  }
  product = await newProduct(["bun", "start/main.ts", "--quiet"], setup, {
    WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8",
    WEBHOOK_CA_FILE: authority.file,
  });
  await product.start();
});

afterAll(async () => {
  await product.end();
  await Promise.all([steady.stop(), slow.stop()]);
  await authority.end();
});

const operator = async (method: string, path: string) => {
  const headers = { authorization: `Bearer ${PANEL_TOKEN}` };
  const url = `${product.panel}/panel/api${path}`;
  return (await request(method, url, undefined, headers)).body;
};

test("kills during deliveries lose none, and an endpoint switched off hears nothing more", async () => {
  const merchant = await signIn(product.api, "key_acme_main");
  const shipments = Array.from({ length: SHIPMENTS }, (_, n) => shipmentItem(`HOOK-${n}`));
  expect((await merchant.call("POST", "/v2/shipments", { shipments })).status).toBe(201);
  const { items } = await operator("GET", "/channels/acme-it/webhooks");
  const idOf = (code: string) => items.find((one: { code: string }) => one.code === code).id;

  let accepted = await sendMessages(3);
  await eventually(() => slow.open() > 0 && steady.requests.length > 5, "deliveries are under way");
  await product.kill(false);
  await product.start();
  accepted += await sendMessages(3);
  const before = slow.requests.length;
  await eventually(() => slow.requests.length > before, "the slow endpoint is served again");
  const off = await operator("POST", `/webhooks/${idOf("slow")}/disable`);
  expect(off.status).toBe("disabled");
  const offAtMs = Date.now();
  accepted += await sendMessages(1);
  await product.kill(true);
  await product.start();
  accepted += await sendMessages(1);

  const log = async (code: string) => {
    const all: { eventId: string; state: string }[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const from: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const page = await operator("GET", `/webhooks/${idOf(code)}/deliveries?limit=200${from}`);
      all.push(...page.items);
      cursor = page.cursor;
    }
    return all;
  };
  await eventually(
    async () => {
      const own = await log("steady");
      return own.length === accepted && own.every(({ state }) => state === "delivered");
    },
    "every accepted event is delivered to the steady endpoint",
    60_000,
  );
  const told = new Set(steady.requests.map(({ body }) => body.id));
  expect(told).toEqual(new Set((await log("steady")).map(({ eventId }) => eventId)));
  expect(told.size).toBe(accepted);

  await eventually(
    async () => (await log("slow")).every(({ state }) => ["failed", "delivered"].includes(state)),
    "nothing waits for the endpoint that is off",
    60_000,
  );
  expect((await log("slow")).some(({ state }) => state === "failed")).toBe(true);
  expect(slow.requests.filter(({ atMs }) => atMs > offAtMs + GRACE_MS)).toEqual([]);
}, 120_000);

let sent = 0;

/** @returns how many events were accepted */
async function sendMessages(count: number): Promise<number> {
  for (let n = 0; n < count; n += 1) {
    const events = Array.from({ length: EVENTS_PER_MESSAGE }, () => {
      sent += 1;
      const minutes = String(sent % 60).padStart(2, "0");
      const hours = String(Math.floor(sent / 60) % 24).padStart(2, "0");
      const occurredAt = `2026-11-10T${hours}:${minutes}:00+01:00`;
      return event({ trackingNumber: `HOOK-${sent % SHIPMENTS}`, occurredAt });
    });
    const { body } = await push(product.ingest, events);
    for (const { outcome } of body.results) expect(outcome).toBe("ACCEPTED");
  }
  return count * EVENTS_PER_MESSAGE;
}

/** A remap that is killed in the middle, again and again, ends complete: every shipment mapped anew, the books in balance. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { event, push } from "#test/support/courier.ts";
import { eventually } from "#test/support/eventually.ts";
import { request, shipmentItem, signIn } from "#test/support/merchant.ts";
import { newProduct, PANEL_TOKEN, type Product } from "#test/support/product.ts";
import { testSetup } from "#test/support/setup.ts";

const SHIPMENTS = 1_000;
const PER_CALL = 100;
const PER_MESSAGE = 500;
const KILLS = 3;
const LIFE_MS = { least: 20, spread: 300 };

let product: Product;

beforeAll(async () => {
  product = await newProduct(["bun", "start/main.ts", "--quiet"], testSetup());
  await product.start();
});

afterAll(() => product.end());

const panel = (method: string, path: string, body?: unknown) =>
  request(method, `${product.panel}/panel/api/${path}`, body, {
    authorization: `Bearer ${PANEL_TOKEN}`,
  });

test("kill -9 in the middle of a remap leaves no shipment behind", async () => {
  const merchant = await signIn(product.api, "key_acme_main");
  for (let from = 0; from < SHIPMENTS; from += PER_CALL) {
    const shipments = Array.from({ length: PER_CALL }, (_, n) => shipmentItem(`RM-${from + n}`));
    expect((await merchant.call("POST", "/v2/shipments", { shipments })).status).toBe(201);
  }
  for (let from = 0; from < SHIPMENTS; from += PER_MESSAGE) {
    const events = Array.from({ length: PER_MESSAGE }, (_, n) =>
      event({ trackingNumber: `RM-${from + n}`, status: { code: "NEW", description: "new" } }),
    );
    expect((await push(product.ingest, events)).body.accepted).toBe(PER_MESSAGE);
  }
  await eventually(async () => {
    const { body } = await panel("GET", "unmapped-codes");
    return body.items[0]?.shipments === SHIPMENTS;
  }, "every shipment has its unmapped event");

  const mapping = { status: "DELIVERED", terminal: true };
  const { body } = await panel("PUT", "couriers/GLS_ITA/catalogue/NEW", mapping);
  for (let kills = 0; kills < KILLS; kills += 1) {
    await Bun.sleep(LIFE_MS.least + Math.random() * LIFE_MS.spread);
    await product.kill(kills % 2 === 1);
    await product.start();
  }
  await eventually(
    async () => (await panel("GET", `remaps/${body.remap.id}`)).body.state === "done",
    "the remap is done",
    60_000,
  );
  const again = await signIn(product.api, "key_acme_main");
  const found = await again.call("GET", "/v2/shipments?status=DELIVERED&limit=1");
  expect(found.body.total ?? found.body.pagination?.total).toBe(SHIPMENTS);
  expect((await panel("GET", "unmapped-codes")).body.total).toBe(0);
  const overview = await panel("GET", "overview");
  expect(overview.body.ledger.difference).toEqual({ received: 0, applied: 0, webhooks: 0 });
  expect(overview.body.ledger.applied).toBe(SHIPMENTS);
}, 240_000);

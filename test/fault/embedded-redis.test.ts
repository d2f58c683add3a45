/** The embedded Redis is part of the product: killed, it comes back by itself. Ports are nobody else's. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createShipments } from "#test/support/event-stream.ts";
import { eventually } from "#test/support/eventually.ts";
import { signIn } from "#test/support/merchant.ts";
import { newProduct, type Product } from "#test/support/product.ts";
import { testSetup } from "#test/support/setup.ts";

let product: Product;

beforeAll(async () => {
  product = await newProduct(["bun", "start/main.ts", "--quiet"], testSetup());
  await product.start();
}, 60_000);

afterAll(() => product.end(), 30_000);

test("a killed Redis is started again with everything it had acknowledged", async () => {
  const [id] = await createShipments(product, "REDIS", 1);
  await product.killRedis();
  await eventually(
    async () => (await fetch(`${product.api}/readyz`).catch(() => null))?.status === 200,
    "the product is ready again",
  );
  const merchant = await signIn(product.api, "key_acme_main");
  expect((await merchant.call("GET", `/v2/shipments/${id}`)).status).toBe(200);
}, 30_000);

test("a second product on the same ports ends with one clear line and status 1", async () => {
  const port = new URL(product.api).port;
  const second = await newProduct(["bun", "start/main.ts", "--quiet"], testSetup(), {
    API_PORT: port,
  });
  await expect(second.start()).rejects.toThrow(/port|EADDRINUSE/i);
  await second.end();
}, 60_000);

/** How long a stop takes where nothing is under way: whoever runs the product ends it by force after 10 s. */
import { expect, test } from "bun:test";
import { testSetup } from "#test/support/data/setup.ts";
import { BARE, newProduct } from "#test/support/product/product.ts";

test("SIGTERM ends the product within 10 s", async () => {
  const product = await newProduct(BARE, testSetup());
  await product.start();
  const { status, tookMs } = await product.terminate();
  await product.end();
  expect(status).toBe(0);
  expect(tookMs).toBeLessThan(10_000);
}, 300_000);

/** An import goes on after kill -9, without double insertion (document 1, `POST /v2/shipments/import`). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "#test/support/eventually.ts";
import { type Merchant, shipmentItem, signIn } from "#test/support/merchant.ts";
import { newProduct, type Product } from "#test/support/product.ts";
import { testSetup } from "#test/support/setup.ts";

const ITEMS = 5_000;
const KILLS = 3;

let product: Product;

beforeAll(async () => {
  product = await newProduct(["bun", "start/main.ts", "--quiet"], testSetup());
  await product.start();
});

afterAll(() => product.end());

test("an import killed three times in the middle inserts every item once and tells it truly", async () => {
  let merchant = await signIn(product.api, "key_acme_main");
  const numbers = Array.from({ length: ITEMS }, (_, n) => `KILL-IMPORT-${n}`);
  const shipments = numbers.map((number) => shipmentItem(number));
  const { status, body } = await merchant.call("POST", "/v2/shipments/import", { shipments });
  expect(status).toBe(202);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const before = await processedOf(merchant, body.jobId);
    await eventually(
      async () => (await processedOf(merchant, body.jobId)) > before,
      "the import goes on",
      60_000,
    );
    // Every other time its Redis dies with it.
    await product.kill(kill % 2 === 1);
    await product.start();
    merchant = await signIn(product.api, "key_acme_main");
  }
  const job = await eventually(
    async () => {
      const answer = await merchant.call("GET", `/v2/jobs/${body.jobId}`);
      return answer.body.status === "completed" && answer.body;
    },
    "the import ends",
    90_000,
  );
  const { successes, errors } = job.result;
  expect(successes.length + errors.length).toBe(ITEMS);
  const codes = errors.map((row: { errors: { code: string }[] }) => row.errors[0]?.code);
  expect(new Set([...codes, "DUPLICATE_SHIPMENT"])).toEqual(new Set(["DUPLICATE_SHIPMENT"]));
  const { body: page } = await merchant.call("GET", "/v2/shipments?limit=1");
  expect(page.total).toBe(ITEMS);
  for (const number of [numbers[0], numbers[ITEMS - 1], errors[0]?.trackingNumber]) {
    if (number === undefined) continue;
    const found = await merchant.call("GET", `/v2/shipments?trackingNumber=${number}`);
    expect(found.body.total).toBe(1);
  }
}, 240_000);

async function processedOf(merchant: Merchant, jobId: string): Promise<number> {
  const { body } = await merchant.call("GET", `/v2/jobs/${jobId}`);
  if (body.status !== "processing") throw new Error("the import ended before it was killed");
  return body.processedItems;
}

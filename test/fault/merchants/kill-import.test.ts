/** An import goes on after kill -9, without double insertion (document 1, `POST /v2/shipments/import`). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type Answer,
  type Merchant,
  shipmentItem,
  signIn,
} from "#test/support/clients/merchant.ts";
import { untilServed } from "#test/support/clients/until-served.ts";
import { expectSettled, listAll } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";
import { onServer, STORES } from "#test/support/servers/stores.ts";

/** As many as are not imported before the last kill. */
const ITEMS = 3_000;
const KILLS = { "one Redis server": 3, "a six-node Redis Cluster": 2 } as const;

describe.each(STORES)("on %s", (store) => {
  let product: Product;
  let other: Asking | null = null;

  beforeAll(async () => {
    product = await startProduct(testSetup(), onServer(store, 4), store);
    // On one of the stores somebody else is at work, so that the import makes small steps and rests after each.
    if (store === "one Redis server") other = keepAsking(product);
  }, 300_000);

  afterAll(async () => {
    await other?.stop();
    await product.end();
  }, 300_000);

  test("an import killed again and again in the middle inserts every item once and tells it truly", async () => {
    let merchant = await signIn(product.api, "key_acme_main");
    const numbers = Array.from({ length: ITEMS }, (_, n) => `KILL-IMPORT-${n}`);
    const shipments = numbers.map((number) => shipmentItem(number));
    const { status, body } = await merchant.call("POST", "/v2/shipments/import", { shipments });
    expect(status).toBe(202);
    const measuring = startMeasuring("Kill everything", `items of an import, on ${store}`);
    for (let kill = 0; kill < KILLS[store]; kill += 1) {
      const before = await jobOf(merchant, body.jobId);
      const after = await untilProgress(product, merchant, before);
      expect(after.status).toBe("processing");
      // Every other time its Redis, or a master of its cluster, dies with it.
      await product.kill(kill % 2 === 1);
      await product.start();
      merchant = await signIn(product.api, "key_acme_main");
    }
    await other?.stop();
    const job = await untilEnded(product, merchant, body.jobId);
    expect(job.status).toBe("completed");
    const { successes, errors } = job.result;
    expect(successes.length + errors.length).toBe(ITEMS);
    const codes = errors.map((row: { errors: { code: string }[] }) => row.errors[0]?.code);
    expect(new Set([...codes, "DUPLICATE_SHIPMENT"])).toEqual(new Set(["DUPLICATE_SHIPMENT"]));
    await expectSettled(product, 0);
    const found = await listAll(merchant, "status=PENDING");
    const made = found.map(({ trackingNumber }) => trackingNumber);
    expect(made.toSorted()).toEqual(numbers.toSorted());
    const lost = new Set(numbers).difference(new Set(made)).size;
    const doubled = made.length - new Set(made).size;
    await measuring.done({ kills: KILLS[store], inputs: numbers.length, lost, doubled });
  }, 900_000);
});

interface Asking {
  readonly stop: () => Promise<void>;
}

/** Another merchant, who searches all the time. */
function keepAsking(product: Product): Asking {
  let isOver = false;
  const asking = (async () => {
    let merchant: Merchant | null = null;
    while (!isOver) {
      merchant ??= await signIn(product.api, "key_beta_main").catch(() => null);
      const answer = await merchant?.call("GET", "/v2/shipments").catch(() => null);
      if (answer?.status !== 200) merchant = null;
      await Bun.sleep(100);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await asking;
    },
  };
}

type Job = Answer["body"];

/** Waits for each chunk by itself: the machine may be slow, but the import must not stand still. */
async function untilEnded(product: Product, merchant: Merchant, jobId: string): Promise<Job> {
  let job = await jobOf(merchant, jobId);
  while (job.status === "processing") job = await untilProgress(product, merchant, job);
  return job;
}

/** The job once it has processed more items, or has ended. */
function untilProgress(product: Product, merchant: Merchant, before: Job): Promise<Job> {
  return eventually(
    async () => {
      const job = await jobOf(merchant, before.jobId);
      return (job.status !== "processing" || job.processedItems > before.processedItems) && job;
    },
    async () => `more than ${before.processedItems} items are processed\n${await product.state()}`,
  );
}

function jobOf(merchant: Merchant, jobId: string): Promise<Job> {
  return untilServed(() => merchant.call("GET", `/v2/jobs/${jobId}`));
}

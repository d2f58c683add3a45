/**
 * The wall clock of the product's process steps an hour ahead, then two hours back, then to the right time, as a machine does
 * whose time is set under load. The clock of its Redis stays, so that the two disagree as well.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { askPanel } from "#test/support/clients/operator.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { newProduct, type Product } from "#test/support/product/product.ts";

const SHIPMENTS = 40;
const EVENTS_BETWEEN = 200;
const HOUR_MS = 3_600_000;
const STEPS_MS = [HOUR_MS, -HOUR_MS, 0];
/** The clock may differ by the time that passes between two looks at it. */
const NEAR_MS = 60_000;

let folder: string;
let step: string;
let product: Product;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-clock-"));
  step = join(folder, "step");
  await writeFile(step, "0");
  const clock = fileURLToPath(import.meta.resolve("#test/support/product/stepped-clock.ts"));
  const command = ["bun", "--preload", clock, "cli/main.ts", "start", "--quiet"] as const;
  product = await newProduct(command, testSetup(), { CLOCK_STEP_FILE: step });
  await product.start();
}, 300_000);

afterAll(async () => {
  await product.end();
  await rm(folder, { recursive: true, force: true });
}, 300_000);

/** What the product takes for now. */
async function productNow(): Promise<number> {
  const { body } = await askPanel(product, "POST", "/clock", { advanceSeconds: 0 });
  return Date.parse(body.now);
}

test("a clock that steps both ways loses nothing, doubles nothing and stalls nothing", async () => {
  const ids = await createShipments(product, "CLOCK", SHIPMENTS);
  const name = "the product's clock steps an hour ahead, two back, one ahead";
  const measuring = startMeasuring("Hurt everything", name);
  const stream = startEventStream(product, "CLOCK", SHIPMENTS);
  const until = Date.now() + RUN_MS;
  let faults = 0;
  do {
    for (const stepMs of STEPS_MS) {
      await writeFile(step, String(stepMs));
      const isThere = async () => Math.abs((await productNow()) - Date.now() - stepMs) < NEAR_MS;
      await eventually(isThere, "the product's clock has stepped");
      const steppedAtMs = performance.now();
      await stream.grows("one is accepted");
      measuring.recovered(steppedAtMs);
      await stream.grows("they flow", EVENTS_BETWEEN);
      faults += 1;
    }
  } while (Date.now() < until);
  await stream.stop();
  expect(product.output()).not.toContain("dead letter");
  const counted = await expectExactlyOnce(product, "CLOCK", ids, stream.accepted);
  await measuring.done({ faults, ...counted });
}, 3_600_000);

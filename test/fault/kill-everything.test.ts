/** Invariant 1: an event answered ACCEPTED is applied exactly once, whatever process is killed, whenever. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  createShipments,
  expectExactlyOnce,
  startEventStream,
} from "#test/support/event-stream.ts";
import { eventually } from "#test/support/eventually.ts";
import { newProduct, type Product } from "#test/support/product.ts";
import { testSetup } from "#test/support/setup.ts";

const KILLS = 20;
const SHIPMENTS = 200;
const LIFE_MS = { least: 150, spread: 600 };

let product: Product;

beforeAll(async () => {
  product = await newProduct(["bun", "start/main.ts", "--quiet"], testSetup());
  await product.start();
}, 60_000);

afterAll(() => product.end(), 30_000);

test("20 kills in a stream of events lose nothing that was accepted and double nothing", async () => {
  const ids = await createShipments(product, "KILL", SHIPMENTS);
  const stream = startEventStream(product, "KILL", SHIPMENTS);
  for (let kills = 0; kills < KILLS; kills += 1) {
    const before = stream.accepted.size;
    await eventually(() => stream.accepted.size > before, "events are accepted again", 60_000);
    await Bun.sleep(LIFE_MS.least + Math.random() * LIFE_MS.spread);
    // Every other time its Redis dies with it, in the middle of whatever it writes.
    await product.kill(kills % 2 === 1);
    await product.start();
  }
  await stream.stop();
  expect(stream.accepted.size).toBeGreaterThan(KILLS * 10);
  await expectExactlyOnce(product, "KILL", ids, stream.accepted);
}, 420_000);

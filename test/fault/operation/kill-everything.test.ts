/** Invariant 1: an event answered ACCEPTED is applied exactly once, whatever process is killed, whenever. */
import { describe, expect, test } from "bun:test";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { startProduct } from "#test/support/product/product.ts";
import { STORES } from "#test/support/servers/stores.ts";

/** Half of them with the store. On a cluster a failover takes seconds. */
const KILLS = { "one Redis server": 6, "a six-node Redis Cluster": 4 } as const;
const SHIPMENTS = 200;
/** Numbers that another company's shipments have too: their events go to both. */
const SHARED = 80;
const LIFE_MS = { least: 150, spread: 600 };

/** Of its second company, which has boxes like the first. */
const SHARED_KEY = "key_beta_main";

function setupWithBoxes() {
  const setup = testSetup();
  const [first, second] = setup.companies ?? [];
  if (first?.boxes && second) second.boxes = first.boxes;
  return setup;
}

describe.each(STORES)("on %s", (store) => {
  const product = forAll(() => startProduct(setupWithBoxes(), {}, store));

  test("kills in a stream of events lose nothing that was accepted and double nothing", async () => {
    const ids = await createShipments(product, "KILL", SHIPMENTS);
    const sharedIds = await createShipments(product, "KILL", SHARED, SHARED_KEY);
    const stream = startEventStream(product, "KILL", SHIPMENTS);
    const measuring = startMeasuring("Kill everything", `the whole product, on ${store}`);
    const until = Date.now() + RUN_MS / STORES.length;
    let kills = 0;
    let killedAtMs = 0;
    for (; kills < KILLS[store] || Date.now() < until; kills += 1) {
      await stream.grows("events are accepted again");
      if (kills > 0) measuring.recovered(killedAtMs);
      await Bun.sleep(LIFE_MS.least + Math.random() * LIFE_MS.spread);
      // Every other time its Redis, or a master of its cluster, dies with it in the middle of whatever it writes.
      killedAtMs = performance.now();
      await product.kill(kills % 2 === 1);
      await product.start();
    }
    await stream.stop();
    expect(stream.accepted.size).toBeGreaterThan(KILLS[store] * 10);
    const shared = { key: SHARED_KEY, ids: sharedIds };
    const counted = await expectExactlyOnce(product, "KILL", ids, stream.accepted, { shared });
    await measuring.done({ kills, ...counted });
  }, 3_600_000);
});

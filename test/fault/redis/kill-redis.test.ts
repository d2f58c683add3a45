/**
 * Redis killed under a product that lives on: the embedded one is part of the product and comes back by itself; masters of
 * a cluster lose nothing that was acknowledged (`REDIS_WAIT_REPLICAS`).
 */
import { describe, expect, test } from "bun:test";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { startProduct } from "#test/support/product/product.ts";
import { STORES } from "#test/support/servers/stores.ts";

const SHIPMENTS = 100;
/** In a cluster every master once. */
const KILLS = 3;
const EVENTS_BETWEEN = 100;

describe.each(STORES)("on %s", (store) => {
  const product = forAll(() => startProduct(testSetup(), {}, store));

  test("a Redis killed in a stream of events is there again with everything it had acknowledged", async () => {
    const ids = await createShipments(product, "REDIS", SHIPMENTS);
    const stream = startEventStream(product, "REDIS", SHIPMENTS);
    const measuring = startMeasuring("Kill everything", `Redis under the product, on ${store}`);
    const until = Date.now() + RUN_MS / STORES.length;
    let kills = 0;
    await stream.grows("events are accepted", EVENTS_BETWEEN);
    for (; kills < KILLS || Date.now() < until; kills += 1) {
      const killedAtMs = performance.now();
      await product.killRedis();
      await stream.grows("events are accepted again");
      measuring.recovered(killedAtMs);
      await stream.grows("events go on being accepted", EVENTS_BETWEEN);
    }
    await stream.stop();
    expect(product.output()).not.toContain("dead letter");
    const counted = await expectExactlyOnce(product, "REDIS", ids, stream.accepted);
    await measuring.done({ kills, ...counted });
  }, 3_600_000);
});

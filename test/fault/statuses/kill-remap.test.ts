/** A remap that is killed in the middle, again and again, ends complete: every shipment remapped, the books in balance. */
import { describe, expect, test } from "bun:test";
import { event, push } from "#test/support/clients/courier.ts";
import { createShipments } from "#test/support/clients/event-stream.ts";
import { signIn } from "#test/support/clients/merchant.ts";
import { askPanel, readPanel } from "#test/support/clients/operator.ts";
import { expectSettled, listAll } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { startProduct } from "#test/support/product/product.ts";
import { onServer, STORES } from "#test/support/servers/stores.ts";

const SHIPMENTS = 1_000;
const PER_MESSAGE = 500;
const KILLS = { "one Redis server": 3, "a six-node Redis Cluster": 2 } as const;
const LIFE_MS = { least: 20, spread: 300 };

describe.each(STORES)("on %s", (store) => {
  const product = forAll(() => startProduct(testSetup(), onServer(store, 4), store));

  test("kill -9 in the middle of a remap leaves no shipment behind", async () => {
    const ids = await createShipments(product, "RM", SHIPMENTS);
    for (let from = 0; from < SHIPMENTS; from += PER_MESSAGE) {
      const events = Array.from({ length: PER_MESSAGE }, (_, n) =>
        event({ trackingNumber: `RM-${from + n}`, status: { code: "NEW", description: "new" } }),
      );
      expect((await push(product.ingest, events)).body.accepted).toBe(PER_MESSAGE);
    }
    const read = (path: string) => readPanel(product, path);
    await eventually(async () => {
      const { items } = await read("/unmapped-codes");
      return items[0]?.shipments === SHIPMENTS;
    }, "every shipment has its unmapped event");

    const mapping = { status: "DELIVERED", terminal: true };
    const { body } = await askPanel(product, "PUT", "/couriers/GLS_ITA/catalogue/NEW", mapping);
    for (let kills = 0; kills < KILLS[store]; kills += 1) {
      await Bun.sleep(LIFE_MS.least + Math.random() * LIFE_MS.spread);
      await product.kill(kills % 2 === 1);
      await product.start();
    }
    await eventually(
      async () => (await read(`/remaps/${body.remap.id}`)).state === "done",
      "the remap is done",
      60_000,
    );
    const again = await signIn(product.api, "key_acme_main");
    await expectSettled(product, SHIPMENTS);
    const found = await listAll(again, "status=DELIVERED");
    expect(found.map(({ id }) => id)).toEqual(ids.toSorted((one, other) => one - other));
    expect((await read("/unmapped-codes")).total).toBe(0);
  }, 300_000);
});

/** A master of a cluster that falls silent without closing its connections, under a product that lives on. */
import { expect, test } from "bun:test";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { startProduct } from "#test/support/product/product.ts";

const SHIPMENTS = 100;
const EVENTS_BETWEEN = 100;
const LIMIT_MS = 60_000;

const product = forAll(() => startProduct(testSetup(), {}, "a six-node Redis Cluster"));

test("its replica takes over, and nothing is lost or doubled", async () => {
  const ids = await createShipments(product, "SILENT", SHIPMENTS);
  const stream = startEventStream(product, "SILENT", SHIPMENTS);
  await stream.grows("events are accepted", EVENTS_BETWEEN);
  const measuring = startMeasuring(
    "Hurt everything",
    "a master of the cluster falls silent (SIGSTOP)",
  );
  const silentAtMs = performance.now();
  const thaw = await product.freezeMaster();
  await eventually(() => product.output().includes("is silent"), "it is missed", LIMIT_MS);
  // Only with a replica in step do writes count as acknowledged again.
  thaw();
  await stream.grows("one is accepted again");
  measuring.recovered(silentAtMs);
  await stream.grows("events go on being accepted", EVENTS_BETWEEN);
  await stream.stop();
  expect(product.output()).not.toContain("dead letter");
  const counted = await expectExactlyOnce(product, "SILENT", ids, stream.accepted);
  await measuring.done({ faults: 1, ...counted });
}, 300_000);

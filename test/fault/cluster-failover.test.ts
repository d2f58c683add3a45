/** Redis Cluster: masters killed during traffic lose nothing that was acknowledged (`REDIS_WAIT_REPLICAS`). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  createShipments,
  expectExactlyOnce,
  startEventStream,
} from "#test/support/event-stream.ts";
import { eventually } from "#test/support/eventually.ts";
import { newProduct, type Product } from "#test/support/product.ts";
import { startTestCluster, type TestCluster } from "#test/support/redis-cluster.ts";
import { testSetup } from "#test/support/setup.ts";

const SHIPMENTS = 100;

let cluster: TestCluster;
let product: Product;

beforeAll(async () => {
  cluster = await startTestCluster();
  product = await newProduct(["bun", "start/main.ts", "--quiet"], testSetup(), {
    REDIS_CLUSTER_URLS: cluster.urls,
    REDIS_WAIT_REPLICAS: "1",
  });
  await product.start();
}, 120_000);

afterAll(async () => {
  await product.end();
  await cluster.stop();
}, 60_000);

test("every master of a six-node cluster, and the product after each, is killed in a stream of events", async () => {
  const ids = await createShipments(product, "SHARD", SHIPMENTS);
  const stream = startEventStream(product, "SHARD", SHIPMENTS);
  for (const shard of [0, 1, 2]) {
    const before = stream.accepted.size;
    await eventually(() => stream.accepted.size > before + 100, "events are accepted", 60_000);
    await cluster.killMaster(shard);
    await product.kill(false);
    await product.start();
  }
  const before = stream.accepted.size;
  await eventually(() => stream.accepted.size > before + 100, "events are accepted again", 60_000);
  await stream.stop();
  expect(product.output()).not.toContain("dead letter");
  await expectExactlyOnce(product, "SHARD", ids, stream.accepted);
}, 300_000);

/**
 * Design, "Replicas": with `REDIS_WAIT_REPLICAS=1` each master of a cluster is killed in turn and stays away for a while. Its replica
 * takes over, is written to although it has no replica, and writes wait again once the killed node is back.
 */
import { expect, test } from "bun:test";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { readPanel } from "#test/support/clients/operator.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { openClusterProduct } from "#test/support/product/cluster-product.ts";

const SHIPMENTS = 60;
const SENDERS = 2;
const MASTERS = 3;
/** Messages of ten events each: together they need every shard. */
const EVENTS_BETWEEN = 50;
/** The guarantee, from the kill on; the replica has taken over after about 3 s. */
const SERVING_LIMIT_MS = 15_000;

const own = forAll(() => openClusterProduct());

const missing = async () =>
  (await readPanel(own.product, "/overview")).stores.redis.replicasMissing.length;

test("each master killed in turn: serving again within 15 s without its replica, waiting again once it is back, nothing lost or doubled", async () => {
  const { cluster, product } = own;
  const ids = await createShipments(product, "MASTER", SHIPMENTS);
  const stream = startEventStream(product, "MASTER", SHIPMENTS, { senders: SENDERS });
  await stream.grows("events are accepted", EVENTS_BETWEEN);
  const measuring = startMeasuring(
    "Kill everything",
    "each master of the cluster in turn, which stays away, under the whole product with REDIS_WAIT_REPLICAS=1",
  );
  for (let shard = 0; shard < MASTERS; shard += 1) {
    const killedAtMs = performance.now();
    const bringBack = await cluster.loseMaster(shard);
    await stream.grows(`shard ${shard} is served again`, EVENTS_BETWEEN);
    measuring.recovered(killedAtMs);
    expect(performance.now() - killedAtMs).toBeLessThan(SERVING_LIMIT_MS);
    await eventually(async () => (await missing()) === 1, "its replica is missed");
    await stream.grows("events go on being accepted", EVENTS_BETWEEN);
    await bringBack();
    await eventually(async () => (await missing()) === 0, "no replica is missed");
    const before = await cluster.waitsOf(shard);
    await stream.grows("events are accepted once it is back", EVENTS_BETWEEN);
    await eventually(async () => (await cluster.waitsOf(shard)) > before, "writes wait again");
  }
  await stream.stop();
  expect(product.output()).toContain("fewer replicas than REDIS_WAIT_REPLICAS asks for");
  expect(product.output()).not.toContain("dead letter");
  const counted = await expectExactlyOnce(product, "MASTER", ids, stream.accepted);
  await own.delivered(stream.accepted.size);
  const analysed = await own.analysed();
  expect(analysed).toBe(stream.accepted.size);
  const further = {
    "webhooks received": own.receiver.requests.length,
    "events in ClickHouse": analysed,
  };
  await measuring.done({ kills: MASTERS, ...counted, further });
}, 400_000);

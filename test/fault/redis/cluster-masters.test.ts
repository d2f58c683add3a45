/** The masters of a cluster are found whatever has become of those that were known, and of the nodes that are asked for them. */
import { expect, test } from "bun:test";
import { type AddressInfo, createServer } from "node:net";
import type { createCluster } from "redis";
import { createLog } from "#core/platform/process/log.ts";
import { connectCluster, type Redis } from "#core/platform/redis/client.ts";
import { companyTag } from "#core/platform/redis/keys.ts";
import { eventually, within } from "#test/support/eventually.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";

const log = createLog("silent");
/** To notice a lost master, look for its successor and connect to that. */
const LIMIT_MS = 30_000;
/** More than a connection may be silent. */
const PAUSE_MS = 11_000;
const HEALED_MS = 8_000;
const STARTS = 8;

const urlOf = (port: number) => `redis://127.0.0.1:${port}`;
const isWritten = (redis: Redis, key: string) =>
  redis.set(key, "1").then(
    () => true,
    () => false,
  );

/** The masters that a cluster's client knows. */
const mastersOf = (redis: Redis) =>
  (redis as unknown as ReturnType<typeof createCluster>).masters.map(({ port }) => port);

test("a master that is gone when it is found keeps nobody from starting, or from finding the one that follows it", async () => {
  const cluster = await startTestCluster();
  const redis = await connectCluster(cluster.urls.split(","), log);
  const key = `${companyTag(0)}key`;
  expect(await isWritten(redis, key)).toBe(true);
  const before = mastersOf(redis);
  const recover = await cluster.loseShard(companyTag(0));
  await eventually(
    () => mastersOf(redis).some((one) => !before.includes(one)),
    "the one that is gone is found",
    LIMIT_MS,
  );
  expect(await isWritten(redis, key)).toBe(false);
  const [answering = 0] = before.filter((port) => mastersOf(redis).includes(port));
  const late = await connectCluster([urlOf(answering)], log);
  await recover("first");
  for (const one of [redis, late]) {
    await eventually(() => isWritten(one, key), "the one that follows it takes writes", LIMIT_MS);
    one.destroy();
  }
  await cluster.stop();
}, 300_000);

test("a node that does not answer when it is asked for the masters is passed over for another", async () => {
  const cluster = await startTestCluster();
  let asked = 0;
  const mute = createServer(() => {
    asked += 1;
  });
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  const { port } = mute.address() as AddressInfo;
  const [node = ""] = cluster.urls.split(",");
  while (asked === 0) {
    // The client begins with any of them.
    const redis = await connectCluster([urlOf(port), node], log);
    expect(await isWritten(redis, `${companyTag(0)}key`)).toBe(true);
    redis.destroy();
  }
  mute.close();
  await cluster.stop();
}, 300_000);

test("a node that has left the cluster but still answers cannot convince the client that there are no masters", async () => {
  const cluster = await startTestCluster();
  const redis = await connectCluster(cluster.urls.split(","), log);
  const key = `${companyTag(0)}key`;
  const [leaving = 0, staying = 0] = mastersOf(redis);
  await cluster.dismiss(leaving);
  await eventually(() => !mastersOf(redis).includes(leaving), "it is dropped without a command");
  await eventually(() => isWritten(redis, key), "its successor takes writes");
  redis.destroy();
  // The client begins with any of them.
  for (let start = 0; start < STARTS; start += 1) {
    const other = await connectCluster([leaving, staying].map(urlOf), log);
    await eventually(() => isWritten(other, key), "the other one is asked as well");
    other.destroy();
  }
  await cluster.stop();
}, 300_000);

test("what is closed while a master is silent is closed in time", async () => {
  const cluster = await startTestCluster();
  const redis = await connectCluster(cluster.urls.split(","), log);
  const thaw = await cluster.freezeMaster(companyTag(0));
  await within(redis.close(), "closed", LIMIT_MS);
  thaw();
  await cluster.stop();
}, 300_000);

test("a pause of this process is not blamed on a cluster, and after a long one it recovers quickly", async () => {
  const cluster = await startTestCluster();
  const redis = await connectCluster(cluster.urls.split(","), log);
  const key = `${companyTag(0)}key`;
  expect(await isWritten(redis, key)).toBe(true);
  Bun.sleepSync(PAUSE_MS);
  expect(await isWritten(redis, key)).toBe(true);
  // Longer than the time limit of the sockets.
  Bun.sleepSync(3 * PAUSE_MS);
  await eventually(() => isWritten(redis, key), "it works again", HEALED_MS);
  redis.destroy();
  await cluster.stop();
}, 300_000);

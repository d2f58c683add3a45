/** `REDIS_WAIT_REPLICAS` at a start: replicas that are still connecting are waited for, as a server that does not answer is. */
import { afterEach, expect, test } from "bun:test";
import { createClient } from "redis";
import { type Redis, StoreUnreachable } from "#core/redis/client/client.ts";
import { awaitReplicas } from "#core/redis/client/replicas.ts";
import { startTestCluster } from "#test/support/redis-cluster.ts";
import { type RedisServer, startRedisServer } from "#test/support/redis-server.ts";
import { openTestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function server(): Promise<RedisServer> {
  const started = await startRedisServer({ options: { "repl-diskless-sync-delay": "0" } });
  ends.push(started.stop);
  return started;
}

const follow = (replica: RedisServer, { url }: RedisServer) =>
  replica.send("REPLICAOF", "127.0.0.1", new URL(url).port);

test("a start goes on once a replica that was still connecting is there", async () => {
  const [master, replica] = [await server(), await server()];
  const given = { address: master.url, stop: async () => {} };
  const opening = openTestRuntime(testSetup(), { REDIS_WAIT_REPLICAS: "1" }, given);
  const [runtime] = await Promise.all([opening, follow(replica, master)]);
  ends.push(runtime.end);
  await awaitReplicas(runtime.redis, 1);
  expect(runtime.live.configuration().channels.size).toBeGreaterThan(0);
});

test("where too few come in time, the error names the variable and the numbers", async () => {
  const [master, replica] = [await server(), await server()];
  await follow(replica, master);
  const redis = createClient({ url: master.url }) as unknown as Redis;
  await redis.connect();
  ends.push(async () => redis.destroy());
  await awaitReplicas(redis, 1);
  const failure = await awaitReplicas(redis, 2, 200).catch((error: Error) => error);
  expect(failure).toBeInstanceOf(StoreUnreachable);
  expect((failure as Error).message).toBe(
    "Redis has 1 of the 2 replicas that REDIS_WAIT_REPLICAS asks for, after 0.2 s.",
  );
});

test("on a cluster each master is looked at", async () => {
  const cluster = await startTestCluster();
  ends.push(cluster.stop);
  const given = { address: "/", stop: async () => {} };
  const env = { REDIS_CLUSTER_URLS: cluster.urls, REDIS_WAIT_REPLICAS: "1" };
  const runtime = await openTestRuntime(testSetup(), env, given);
  ends.push(runtime.end);
  await awaitReplicas(runtime.redis, 1, 0);
  expect(await awaitReplicas(runtime.redis, 2, 0).catch((error: Error) => error)).toBeInstanceOf(
    StoreUnreachable,
  );
}, 120_000);

/**
 * Design, "Replicas": `REDIS_WAIT_REPLICAS` waits for those that a master has, `REDIS_WAIT_STRICT` for all of them. At a start, replicas
 * that are still connecting are waited for, as a server that does not answer is.
 */
import { afterEach, expect, test } from "bun:test";
import { createClient } from "redis";
import { createLog } from "#core/platform/process/log.ts";
import { type Redis, StoreUnreachable } from "#core/platform/redis/client.ts";
import { companyTag } from "#core/platform/redis/keys.ts";
import { probeWrites } from "#core/platform/redis/probe.ts";
import { awaitReplicas } from "#core/platform/redis/replicas.ts";
import { startIngest } from "#ingest/main.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

const log = createLog("silent");
/** Messages at once, or one after the other. */
const BURST = 12;
const CLUSTER_MASTERS = 3;

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
  await awaitReplicas(runtime.redis, { wanted: 1, isStrict: true }, log, 0);
  expect(runtime.live.configuration().channels.size).toBeGreaterThan(0);
});

async function masterWith(count: number) {
  const master = await server();
  const replicas = await Promise.all(Array.from({ length: count }, server));
  await Promise.all(replicas.map((replica) => follow(replica, master)));
  const redis = createClient({ url: master.url }) as unknown as Redis;
  await redis.connect();
  ends.push(async () => redis.destroy());
  await awaitReplicas(redis, { wanted: count, isStrict: true }, log);
  return { master, replicas, redis };
}

test("where too few come in time, a strict start ends with an error that names the variable and the numbers", async () => {
  const { redis } = await masterWith(1);
  const strict = { wanted: 2, isStrict: true };
  const failure = await awaitReplicas(redis, strict, log, 200).catch((error: Error) => error);
  expect(failure).toBeInstanceOf(StoreUnreachable);
  expect((failure as Error).message).toBe(
    "Redis has 1 of the 2 replicas that REDIS_WAIT_REPLICAS asks for, after 0.2 s; REDIS_WAIT_STRICT refuses to start.",
  );
});

test("where too few come in time, a start that is not strict goes on without them", async () => {
  const { redis } = await masterWith(1);
  await awaitReplicas(redis, { wanted: 2, isStrict: false }, log, 200);
});

/** An ingest process on a master that has one replica, and what its port tells of the replicas that are missing. */
async function ingestOn(env: Readonly<Record<string, string>>) {
  const { master, replicas } = await masterWith(1);
  const [replica] = replicas as [RedisServer];
  const given = { address: master.url, stop: async () => {} };
  const runtime = await openTestRuntime(testSetup(), { REDIS_WAIT_REPLICAS: "1", ...env }, given);
  const ingest = await startIngest(runtime);
  const url = ingest.url ?? "";
  ends.push(async () => {
    await ingest.stop();
    await runtime.end();
  });
  const missing = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(/^waybill_replicas_missing (\d+)$/m.exec(text)?.[1]);
  };
  const waits = async () =>
    Number(/cmdstat_wait:calls=(\d+)/.exec(await runtime.redis.info("commandstats"))?.[1] ?? 0);
  return { master, replica, runtime, url, missing, waits };
}

test("a master whose replica has gone is written to all the same and without waiting, an alarm counts it, and the wait is back with the replica", async () => {
  const { master, replica, url, missing, waits } = await ingestOn({});
  expect((await push(url, [event()])).status).toBe(200);
  expect(await missing()).toBe(0);
  await replica.kill();
  const burst = await Promise.all(Array.from({ length: BURST }, () => push(url, [event()])));
  expect(burst.map(({ status }) => status)).toEqual(burst.map(() => 200));
  await eventually(async () => (await missing()) === 1, "the alarm counts it");
  const before = await waits();
  for (let n = 0; n < BURST; n += 1) expect((await push(url, [event()])).status).toBe(200);
  expect(await waits()).toBe(before);
  await replica.start();
  await follow(replica, master);
  await eventually(async () => (await missing()) === 0, "none is missing");
  await eventually(async () => {
    expect((await push(url, [event()])).status).toBe(200);
    return (await waits()) > before;
  }, "writes wait again");
}, 120_000);

test("REDIS_WAIT_STRICT=1 refuses to write to a master whose replica has gone, until it is back", async () => {
  const { master, replica, url, missing } = await ingestOn({ REDIS_WAIT_STRICT: "1" });
  expect((await push(url, [event()])).status).toBe(200);
  await replica.kill();
  for (let n = 0; n < 3; n += 1) {
    const refused = await push(url, [event()]);
    expect([refused.status, refused.body.code]).toEqual([503, "STORE_UNAVAILABLE"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  expect(await missing()).toBe(1);
  const reason =
    "Redis: a master has 0 of the 1 replicas that REDIS_WAIT_REPLICAS asks for (REDIS_WAIT_STRICT)";
  await eventually(async () => {
    const answer = await fetch(`${url}/readyz`);
    return answer.status === 503 && ((await answer.json()) as { reason: string }).reason === reason;
  }, "it is not ready, with the reason");
  await replica.start();
  await follow(replica, master);
  await eventually(async () => (await push(url, [event()])).status === 200, "it writes again");
}, 120_000);

test("on a cluster each master is looked at, and a write that a moving slot redirects waits where it went", async () => {
  const cluster = await startTestCluster();
  ends.push(cluster.stop);
  const given = { address: "/", stop: async () => {} };
  const env = { REDIS_CLUSTER_URLS: cluster.urls, REDIS_WAIT_REPLICAS: "1" };
  const runtime = await openTestRuntime(testSetup(), env, given);
  ends.push(runtime.end);
  await awaitReplicas(runtime.redis, { wanted: 1, isStrict: true }, log, 0);
  const two = { wanted: 2, isStrict: true };
  const failure = await awaitReplicas(runtime.redis, two, log, 0).catch((error: Error) => error);
  expect(failure).toBeInstanceOf(StoreUnreachable);
  const tag = companyTag(1);
  const target = ((await cluster.shardOf(tag)) + 1) % CLUSTER_MASTERS;
  await cluster.whileMoving(tag, [], async () => {
    const before = await cluster.waitsOf(target);
    // The key is not at its old master: the new one is asked.
    await probeWrites(runtime.redis, [`${tag}moved`]);
    expect(await cluster.waitsOf(target)).toBeGreaterThan(before);
  });
}, 120_000);

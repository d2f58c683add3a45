/** A server that falls silent without closing its connections, as when its machine is gone, holds nobody up for ever. */
import { expect, test } from "bun:test";
import { createLog } from "#core/log.ts";
import {
  connectCluster,
  connectRedis,
  type Redis,
  run,
  script,
} from "#core/redis/client/client.ts";
import { companyTag } from "#core/redis/client/keys.ts";
import { isStoreUnavailable } from "#core/redis/client/store-unavailable.ts";
import { eventually } from "#test/support/eventually.ts";
import { startTestCluster } from "#test/support/redis-cluster.ts";
import { startRedisServer } from "#test/support/redis-server.ts";

const log = createLog("silent");
/** Ten seconds of silence, and what it takes to connect again. */
const LIMIT_MS = 30_000;
const WRITE = script("#!lua\nredis.call('SET', KEYS[1], ARGV[1])\nreturn 1");

const write = (redis: Redis, key: string) => run(redis, WRITE, [key], ["1"]);
const isWritten = (redis: Redis, key: string) =>
  write(redis, key).then(
    () => true,
    () => false,
  );

test("what waits for a silent server fails as unavailable, and works again once it answers", async () => {
  const server = await startRedisServer();
  const redis = await connectRedis(server.url, log);
  server.freeze();
  const error = await write(redis, "one").catch((reason: unknown) => reason);
  expect(isStoreUnavailable(error, { isReady: true })).toBe(true);
  expect(await isWritten(redis, "two")).toBe(false);
  server.thaw();
  await eventually(() => isWritten(redis, "three"), "it works again", LIMIT_MS);
  await redis.close();
  await server.stop();
}, 60_000);

test("where the replica of a silent master has taken over, commands go there", async () => {
  const cluster = await startTestCluster();
  const redis = await connectCluster(cluster.urls.split(","), log);
  const key = `${companyTag(0)}key`;
  expect(await isWritten(redis, key)).toBe(true);
  const thaw = await cluster.freezeMaster(companyTag(0));
  await eventually(() => isWritten(redis, key), "the new master takes writes", LIMIT_MS);
  thaw();
  expect(await isWritten(redis, key)).toBe(true);
  await redis.close();
  await cluster.stop();
}, 120_000);

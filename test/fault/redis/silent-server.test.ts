/** A server that falls silent without closing its connections, as when its machine is gone, holds nobody up for ever. */
import { expect, test } from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { createLog } from "#core/platform/process/log.ts";
import {
  connectCluster,
  connectRedis,
  type Redis,
  run,
  script,
} from "#core/platform/redis/client.ts";
import { companyTag } from "#core/platform/redis/keys.ts";
import { isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { eventually } from "#test/support/eventually.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";
import { startRedisServer } from "#test/support/servers/redis-server.ts";

const log = createLog("silent");
/** Ten seconds of silence, and what it takes to connect again. */
const LIMIT_MS = 30_000;
/** So many tries that the client then rests for 2 s between two of them. */
const REFUSALS = 7;
/** As long as a connection may be silent, and then a rest. */
const HELD_MS = 9_900;
const REST_MS = 3_000;
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
}, 300_000);

/** A proxy before a server. It may refuse connections, or hold them for a while and then close them. */
async function startProxy(port: number) {
  let way: "open" | "shut" | "held" = "open";
  const came = { open: 0, shut: 0, held: 0 };
  let mostHeld = 0;
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    came[way] += 1;
    sockets.add(client.on("error", () => {}));
    client.once("close", () => sockets.delete(client));
    if (way !== "open") client.resume();
    if (way === "shut") client.end();
    else if (way === "held") {
      mostHeld = Math.max(mostHeld, sockets.size);
      setTimeout(() => client.end(), HELD_MS);
    } else {
      const server = connect(port, "127.0.0.1").on("error", () => {});
      client.pipe(server).pipe(client);
      client.once("close", () => server.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    came,
    /** At one time. */
    mostHeld: () => mostHeld,
    become(next: typeof way) {
      way = next;
    },
    end,
    async stop() {
      end();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

test("a server that is silent and closes has one connection at a time, and one when it answers again", async () => {
  const server = await startRedisServer();
  const proxy = await startProxy(server.port);
  const redis = await connectRedis(proxy.url, log);
  proxy.become("shut");
  proxy.end();
  await eventually(() => proxy.came.shut >= REFUSALS, "the client rests long", LIMIT_MS);
  proxy.become("held");
  await eventually(() => proxy.came.held >= 2, "a handshake is held, and the next one", LIMIT_MS);
  const since = performance.now();
  await eventually(() => performance.now() > since + REST_MS, "any other rest is over");
  expect(proxy.mostHeld()).toBe(1);
  proxy.become("open");
  proxy.came.open = 0;
  await eventually(() => isWritten(redis, "one"), "it works again", LIMIT_MS);
  expect(proxy.came.open).toBe(1);
  redis.destroy();
  await proxy.stop();
  await server.stop();
}, 300_000);

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
}, 300_000);

test("what is closed while its server is silent stays closed", async () => {
  const server = await startRedisServer();
  const redis = await connectRedis(server.url, log);
  server.freeze();
  expect(await isWritten(redis, "one")).toBe(false);
  const closed = redis.close();
  const since = performance.now();
  await eventually(() => performance.now() > since + REST_MS, "the watch has looked again");
  expect(redis.isOpen).toBe(false);
  await closed;
  server.thaw();
  await server.stop();
}, 300_000);

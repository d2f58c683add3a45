/** What the embedded Redis is started with, and that `compose.yaml` starts its own with the same. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { type EmbeddedRedis, startEmbeddedRedis } from "#core/platform/redis/embedded/embedded.ts";
import { eventually } from "#test/support/eventually.ts";
import { CUT_TORN_END } from "#test/support/servers/redis-server.ts";

const SETTINGS = {
  appendonly: "yes",
  appendfsync: "always",
  "aof-load-truncated": "no",
  "maxmemory-policy": "noeviction",
  "auto-aof-rewrite-percentage": "300",
  "auto-aof-rewrite-min-size": "512mb",
  rdbcompression: "no",
};
const MB = 1024 * 1024;

let folder: string;
let server: EmbeddedRedis;
let redis: Redis;

beforeAll(async () => {
  const log = createLog("error");
  folder = await mkdtemp(join(tmpdir(), "waybill-embedded-"));
  server = await startEmbeddedRedis(folder, log);
  redis = await connectRedis(server.address, log);
});

afterAll(async () => {
  redis.destroy();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

test.each(Object.entries(SETTINGS))("the embedded Redis runs with %s %s", async (name, value) => {
  const reported = value === "512mb" ? String(512 * MB) : value;
  expect(await redis.configGet(name)).toEqual({ [name]: reported });
});

test("a server that is running is not asked again and again whether it is there", async () => {
  const connections = async () =>
    Number(/total_connections_received:(\d+)/.exec(await redis.info("stats"))?.[1]);
  await eventually(
    async () => {
      const before = await connections();
      // Three looks.
      await Bun.sleep(1_500);
      return (await connections()) === before;
    },
    "nothing connects any more",
    10_000,
  );
});

test.each(Object.entries(SETTINGS))("compose.yaml starts Redis with %s %s", async (name, value) => {
  expect(await Bun.file("compose.yaml").text()).toContain(`--${name} ${value}`);
});

test.each([
  ["compose.yaml", 1],
  ["compose.cluster.yaml", 6],
])("%s has each Redis started behind the script that removes a torn write", async (name, count) => {
  const text = await Bun.file(name).text();
  expect(text.split("sh /cut-torn-end.sh /data docker-entrypoint.sh redis-server")).toHaveLength(
    count + 1,
  );
  expect(text.split(`./${CUT_TORN_END}:/cut-torn-end.sh:ro`)).toHaveLength(count + 1);
  expect(text.split("--aof-load-truncated no")).toHaveLength(count + 1);
});

/** What each partition takes, as the panel and `npx waybill slots` show it (docs/operations/redis.md, "Placement"). */
import { expect, test } from "bun:test";
import { readPartitionLoads, startCallCounts } from "#core/placement/store/partition-load.ts";
import { companyTag, partitionTags, shipmentPartition } from "#core/platform/redis/keys.ts";
import { takeCalls } from "#core/platform/redis/partition-calls.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { forAll } from "#test/support/for-all.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { startRedisServer } from "#test/support/servers/redis-server.ts";

const KEYS = 6_000;
const VALUE = "x".repeat(1_000);

const runtime = forAll(() => openTestRuntime(testSetup(), { STORE_PARTITIONS: "16" }));
const panel = forAll(() => openTestPanel(runtime));

test("the bytes of a partition are estimated from random keys, whatever the number of keys", async () => {
  const { redis } = runtime;
  for (const [tag, share] of [
    ["{t3}", 0.75],
    ["{k9}", 0.25],
  ] as const) {
    const pipeline = redis.multi();
    for (let at = 0; at < share * KEYS; at += 1) pipeline.set(`${tag}:filler:${at}`, VALUE);
    await pipeline.execAsPipeline();
  }
  const loads = await readPartitionLoads(redis);
  expect(loads.map(({ tag }) => tag)).toEqual(partitionTags());
  const bytesOf = (name: string) => loads.find(({ tag }) => tag === name)?.bytes ?? 0;
  // A value of 1,000 bytes takes about 1,100; the estimate is good to a tenth or two.
  expect(bytesOf("{t3}") / (0.75 * KEYS * 1_100)).toBeGreaterThan(0.8);
  expect(bytesOf("{t3}") / (0.75 * KEYS * 1_100)).toBeLessThan(1.3);
  expect(bytesOf("{k9}") / bytesOf("{t3}")).toBeGreaterThan(0.2);
  expect(bytesOf("{k9}") / bytesOf("{t3}")).toBeLessThan(0.5);
  expect(loads.every(({ master }) => master === null)).toBe(true);
  for (const { tag } of loads.filter((one) => one.tag.startsWith("{e"))) {
    expect(bytesOf(tag)).toBeLessThan(0.1 * bytesOf("{t3}"));
  }
});

test("calls are counted by the partition of their first key, added up when a process ends, and shown in the panel", async () => {
  takeCalls();
  const id = await addShipment(runtime, "PARTITIONS-1");
  const stop = startCallCounts(runtime.redis, runtime.log);
  await stop();
  const tag = companyTag(shipmentPartition(id));
  const loads = await readPartitionLoads(runtime.redis);
  expect(loads.find((one) => one.tag === tag)?.calls).toBeGreaterThan(0);
  const { status, body } = await panel.call("GET", "/panel/api/partitions");
  expect(status).toBe(200);
  expect(body).toHaveLength(partitionTags().length);
  const wanted = { partition: tag, master: null, bytes: expect.any(Number), callsPerSecond: 0 };
  expect(body.find((one: { partition: string }) => one.partition === tag)).toEqual(wanted);
});

test("`waybill slots` lists the partitions of one server, and refuses to place them", async () => {
  const server = await startRedisServer();
  const env = { REDIS_URL: server.url };
  const run = (...args: string[]) =>
    outcomeOf(startCommand(["bun", "cli/main.ts", "slots", ...args], env));
  const listed = await run();
  expect([listed.status, listed.errors]).toEqual([0, ""]);
  expect(listed.output.match(/the one server$/gm)).toHaveLength(partitionTags().length);
  expect(JSON.parse((await run("--json")).output)).toHaveLength(partitionTags().length);
  const refused = await run("--masters", "3").finally(server.stop);
  expect([refused.status, refused.errors]).toEqual([
    1,
    expect.stringContaining("One server has all partitions"),
  ]);
});

/** A consumer in a burst: the next batch is read while one is in hand, and nothing of it is left behind. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { run, script } from "#core/redis/client.ts";
import { type Entry, startConsumer } from "#core/redis/consumer.ts";
import { EVENT_LOGS } from "#core/redis/keys.ts";
import dropSource from "#core/redis/scripts/drop-consumer.lua" with { type: "text" };
import { ensureGroups, readLags } from "#core/redis/streams.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

let runtime: TestRuntime;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
});
afterAll(() => runtime.end());

const LOG = EVENT_LOGS[0] ?? "";
const BATCH = 4;

const pending = async () => (await runtime.redis.xPending(LOG, "track")).pending;

async function fill(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await runtime.redis.xAdd(LOG, "*", { e: String(n) });
}

function start(handler: (entries: readonly Entry[]) => Promise<void>) {
  const { redis, log } = runtime;
  return startConsumer({
    ...{ redis, log, source: "event", group: "track", batch: BATCH },
    async handler(entries) {
      await handler(entries);
      return [];
    },
  });
}

test("what was read ahead is done before a consumer ends, and each entry once", async () => {
  await fill(5 * BATCH);
  const gate = Promise.withResolvers<void>();
  const handled: string[] = [];
  const consumer = start(async (entries) => {
    handled.push(...entries.map(({ id }) => id));
    await gate.promise;
  });
  await eventually(async () => (await pending()) === 2 * BATCH, "the next batch is on its way");
  expect(handled.length).toBe(BATCH);
  const stopped = consumer.stop();
  gate.resolve();
  await stopped;
  expect([handled.length, new Set(handled).size]).toEqual([2 * BATCH, 2 * BATCH]);
  expect(await pending()).toBe(0);
});

test("what was read ahead when its turn never came is taken up by the next consumer", async () => {
  const handled: string[] = [];
  const { redis } = runtime;
  await redis.xReadGroup("track", "gone", { key: LOG, id: ">" }, { COUNT: BATCH });
  expect(await pending()).toBe(BATCH);
  const consumer = start(async (entries) => {
    handled.push(...entries.map(({ id }) => id));
  });
  await eventually(() => handled.length === 3 * BATCH, "all entries are done");
  await consumer.stop();
  expect([await pending(), new Set(handled).size]).toEqual([0, 3 * BATCH]);
});

test("a name whose process is gone is forgotten once it holds nothing, and not before", async () => {
  const { redis } = runtime;
  const names = async () =>
    (await redis.xInfoConsumers(LOG, "track")).map(({ name }) => String(name));
  const drop = () => run<number>(redis, script(dropSource), [LOG], ["track", "paused"]);
  await fill(1);
  await redis.xReadGroup("track", "paused", { key: LOG, id: ">" }, { COUNT: 1 });
  expect(await drop()).toBe(0);
  expect(await names()).toContain("paused");
  const consumer = start(async () => {});
  await eventually(async () => !(await names()).includes("paused"), "the name is forgotten");
  await consumer.stop();
  expect(await pending()).toBe(0);
});

test("a group that has read nothing is as late as the oldest entry there is", async () => {
  const { redis } = runtime;
  await redis.xGroupDestroy(LOG, "track");
  await ensureGroups(redis);
  await redis.xTrim(LOG, "MAXLEN", 0);
  await fill(1);
  const lag = (await readLags(redis)).find(({ group }) => group === "track");
  expect(lag?.entries).toBe(1);
  expect(lag?.seconds).toBeLessThan(60);
});

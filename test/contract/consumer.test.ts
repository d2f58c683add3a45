/**
 * A consumer in a burst: the next batch is read while one is in hand, and nothing of it is left behind. Entries that hold
 * many events: what fails of them is tried again by itself.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { run, script } from "#core/redis/client.ts";
import { type Entry, startConsumer } from "#core/redis/consumer.ts";
import { deadLetterKey, EVENT_LOGS, eventKeys } from "#core/redis/keys.ts";
import { MAX_TRIES, postpone } from "#core/redis/retries.ts";
import dropSource from "#core/redis/scripts/drop-consumer.lua" with { type: "text" };
import { ensureGroups, readLags, readLength, trimLog } from "#core/redis/streams.ts";
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

test("a consumer that lingers for larger batches does not while a partition has more than it gave", async () => {
  const { redis, log } = runtime;
  // All that four reads bring, each of more entries than the one before.
  const entries = 4 + 16 + 64 + 100;
  await fill(entries);
  let handled = 0;
  const consumer = startConsumer({
    ...{ redis, log, source: "event", group: "track", batch: 500, lingerMs: 10_000 },
    async handler(batch) {
      handled += batch.length;
      return [];
    },
  });
  await eventually(() => handled === entries, "all are done without a pause");
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

describe("an entry that holds many events", () => {
  /** As `claim.lua` appends it. */
  async function append(...events: string[]): Promise<string> {
    const { redis } = runtime;
    const logged = await redis.hIncrBy(eventKeys(0).ledger, "logged", events.length);
    const counts = { n: String(logged), k: String(events.length) };
    return redis.xAdd(LOG, "*", { ...counts, e: events.join("\n") });
  }

  const track = async () => (await readLags(runtime.redis)).find(({ group }) => group === "track");

  /** What a handler is given until nothing is left, with events that fail as often as told. */
  async function handle(failing: Record<string, number> = {}): Promise<string[][]> {
    const { redis, log } = runtime;
    const calls: string[][] = [];
    const consumer = startConsumer({
      ...{ redis, log, source: "event", group: "track", batch: 100 },
      handler(entries) {
        calls.push(entries.map(({ id, fields }) => `${id} ${fields["e"]}`));
        const failed = entries.filter(({ fields: { e = "" } }) => {
          const left = failing[e] ?? 0;
          failing[e] = left - 1;
          return left > 0;
        });
        return Promise.resolve(failed.map((entry) => ({ entry, reason: "not yet" })));
      },
    });
    await eventually(async () => (await track())?.entries === 0, "nothing is left", 30_000);
    await consumer.stop();
    return calls;
  }

  beforeEach(async () => {
    await runtime.redis.del([LOG, deadLetterKey(LOG)]);
    await ensureGroups(runtime.redis);
  });

  test("is handed over event by event, each with an id of its own, and acknowledged once", async () => {
    const id = await append("a", "b", "c");
    expect(await handle()).toEqual([[`${id} a`, `${id}.1 b`, `${id}.2 c`]]);
    expect(await pending()).toBe(0);
  });

  test("counts for the lag, the length and the books by its events", async () => {
    const { redis } = runtime;
    await append("a", "b", "c");
    await append("d");
    expect([await readLength(redis, "event"), (await track())?.entries]).toEqual([4, 4]);
    await redis.xReadGroup("track", "reader", { key: LOG, id: ">" }, { COUNT: 1 });
    expect((await track())?.entries).toBe(4);
    const [first] = await redis.xPendingRange(LOG, "track", "-", "+", 1);
    await redis.xAck(LOG, "track", first?.id ?? "");
    expect([await readLength(redis, "event"), (await track())?.entries]).toEqual([4, 1]);
    await trimLog(redis, LOG);
    expect(await readLength(redis, "event")).toBe(1);
    await handle();
    await trimLog(redis, LOG);
    expect(await readLength(redis, "event")).toBe(0);
  });

  test("is tried again only for what failed of it, and others do not wait for that", async () => {
    const id = await append("a", "b", "c");
    const calls = await handle({ b: 2 });
    expect(calls).toEqual([[`${id} a`, `${id}.1 b`, `${id}.2 c`], [`${id}.1 b`], [`${id}.1 b`]]);
    expect(await runtime.redis.exists(deadLetterKey(LOG))).toBe(0);
  });

  test("leaves what fails five times as a dead letter of its own", async () => {
    const id = await append("a", "b", "c");
    const calls = await handle({ c: Number.POSITIVE_INFINITY });
    expect(calls.flat().filter((one) => one === `${id}.2 c`).length).toBe(MAX_TRIES);
    expect(calls.flat().filter((one) => one.endsWith(" a"))).toEqual([`${id} a`]);
    const letters = await runtime.redis.xRange(deadLetterKey(LOG), "-", "+");
    expect((letters ?? []).map(({ message }) => [message["id"], message["entry"]])).toEqual([
      [`${id}.2`, JSON.stringify({ e: "c" })],
    ]);
  }, 40_000);

  test("while a part waits for its next try it counts, with the age of its entry", async () => {
    const { redis } = runtime;
    const id = await append("a", "b");
    await redis.xReadGroup("track", "reader", { key: LOG, id: ">" }, { COUNT: 1 });
    const entry = { key: LOG, id: `${id}.1`, fields: { e: "b" } };
    await postpone(redis, "track", LOG, [id], [{ entry, reason: "not yet" }]);
    // Another process that had it in hand as well fails too, and nothing is kept twice.
    await postpone(redis, "track", LOG, [id], [{ entry, reason: "not yet either" }]);
    const lag = await track();
    expect([await pending(), lag?.entries]).toEqual([0, 1]);
    expect(lag?.seconds).toBeGreaterThan(0);
    expect(await handle()).toEqual([[`${id}.1 b`]]);
  });

  test("is read whole, and in steps that follow what stands in one", async () => {
    const events = Array.from({ length: 60 }, (_, n) => String(n));
    for (let n = 0; n < 12; n += 1) await append(...events);
    const calls = await handle();
    expect(calls.flat().length).toBe(12 * 60);
    expect(Math.max(...calls.map(({ length }) => length))).toBe(4 * 60);
    expect(calls.at(-1)?.length).toBeLessThanOrEqual(2 * 60);
  });
});

/**
 * A consumer in a burst: the next batch is read while one is in hand, and nothing of it is left behind. Entries that hold
 * many events: what fails of them is tried again by itself.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import pino from "pino";
import { encodeLoggedEvent, splitEvents } from "#core/events/store/event-log.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { type LogItem, startConsumer } from "#core/platform/log/consumer.ts";
import dropSource from "#core/platform/log/drop-consumer.lua" with { type: "text" };
import { type LogEntry, logEntry } from "#core/platform/log/log-entry.ts";
import {
  acknowledge,
  MAX_TRIES,
  readDueRetries,
  settleRetries,
} from "#core/platform/log/retries.ts";
import { ensureGroups, readLags, readWaiting, trimLog } from "#core/platform/log/streams.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import {
  changeLogs,
  deadLetterKey,
  eventLogs,
  logCountsKey,
  retriesKey,
} from "#core/platform/redis/keys.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { event } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

const runtime = forAll(() => openTestRuntime(testSetup()));

const LOG = eventLogs()[0] ?? "";
const BATCH = 4;

/** Of the server, as scripts read it. */
async function timeOf(redis: Redis): Promise<number> {
  const [seconds, micros] = (await redis.sendCommand<[string, string]>(["TIME"])).map(Number);
  return (seconds ?? 0) * 1_000 + Math.floor((micros ?? 0) / 1_000);
}
const pending = async () => (await runtime.redis.xPending(LOG, "track")).pending;

async function fill(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await runtime.redis.xAdd(LOG, "*", { e: String(n) });
}

function start(handler: (entries: readonly LogItem[]) => Promise<void>) {
  const { redis, log } = runtime;
  return startConsumer({
    redis,
    log,
    source: "event",
    group: "track",
    batch: BATCH,
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
    redis,
    log,
    source: "event",
    group: "track",
    batch: 500,
    lingerMs: 10_000,
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
  const HANDED = 400;

  /** As `claim.lua` appends it. */
  async function append(...events: string[]): Promise<string> {
    await runtime.redis.hIncrBy(logCountsKey(LOG), "logged", events.length);
    return runtime.redis.xAdd(LOG, "*", { e: events.join("\n") });
  }

  const track = async () => (await readLags(runtime.redis)).find(({ group }) => group === "track");

  /** What a handler is given until nothing is left, with events that fail as often as given. */
  async function handle(failing: Record<string, number> = {}): Promise<string[][]> {
    const { redis, log } = runtime;
    const calls: string[][] = [];
    const consumer = startConsumer({
      redis,
      log,
      source: "event",
      group: "track",
      batch: HANDED,
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
    await eventually(async () => (await track())?.entries === 0, "nothing is left", 120_000);
    await consumer.stop();
    return calls;
  }

  /** Of the group's next entries, read by a consumer of that name. */
  async function readEntries(consumer: string, count: number): Promise<LogEntry[]> {
    const from = { key: LOG, id: ">" };
    const reply = await runtime.redis.xReadGroup("track", consumer, from, { COUNT: count });
    const found = (reply as { messages: { id: string; message: Record<string, string> }[] }[])[0];
    return (found?.messages ?? []).map(({ id, message }) =>
      logEntry(LOG, id, message, splitEvents),
    );
  }

  const failuresOf = ({ items }: LogEntry, ...indices: number[]) =>
    indices.flatMap((index) => (items[index] ? [{ entry: items[index], reason: "not yet" }] : []));

  beforeEach(async () => {
    await runtime.redis.del([LOG, deadLetterKey(LOG), logCountsKey(LOG)]);
    await ensureGroups(runtime.redis);
  });

  test("is handed over event by event, each with an id of its own, and acknowledged once", async () => {
    const id = await append("a", "b", "c");
    expect(await handle()).toEqual([[`${id} a`, `${id}.1 b`, `${id}.2 c`]]);
    expect(await pending()).toBe(0);
  });

  test("counts for the lag, the mark and the books by its events", async () => {
    const { redis } = runtime;
    await append("a", "b", "c");
    await append("d");
    expect([await readWaiting(redis, "event"), (await track())?.entries]).toEqual([4, 4]);
    const first = await readEntries("reader", 1);
    expect((await track())?.entries).toBe(4);
    await acknowledge(redis, "track", LOG, first);
    // A process that had it in hand as well comes later, and it is not counted twice.
    await acknowledge(redis, "track", LOG, first);
    expect([await readWaiting(redis, "event"), (await track())?.entries]).toEqual([1, 1]);
    await handle();
    expect(await readWaiting(redis, "event")).toBe(0);
  });

  test("counts right again once a log from which entries were removed by hand is done", async () => {
    const { redis } = runtime;
    await append("a", "b", "c");
    await redis.xTrim(LOG, "MAXLEN", 0);
    expect((await track())?.entries).toBe(0);
    await trimLog(redis, "event", LOG);
    await append("d");
    expect((await track())?.entries).toBe(1);
    await handle();
  });

  test("is tried again only for what failed of it, and others do not wait for that", async () => {
    const id = await append("a", "b", "c");
    const calls = await handle({ b: 2 });
    expect(calls).toEqual([[`${id} a`, `${id}.1 b`, `${id}.2 c`], [`${id}.1 b`], [`${id}.1 b`]]);
    expect(await runtime.redis.exists(deadLetterKey(LOG))).toBe(0);
  });

  test("leaves what fails five times as a dead letter of its own, after 1, 2, 4 and 8 s", async () => {
    const { redis } = runtime;
    const id = await append("a", "b", "c");
    const [entry] = await readEntries("reader", 1);
    if (!entry) throw new Error("no entry");
    const retries = retriesKey(LOG, "track");
    let fromMs = await timeOf(redis);
    await acknowledge(redis, "track", LOG, [entry], failuresOf(entry, 2));
    for (let tries = 1; tries < MAX_TRIES; tries += 1) {
      const waitMs = 1_000 * 2 ** (tries - 1);
      const [{ score, value } = { score: 0, value: "" }] = await redis.zRangeWithScores(
        retries,
        0,
        -1,
      );
      expect(score).toBeWithin(fromMs + waitMs, (await timeOf(redis)) + waitMs + 1);
      // Nobody waits for it here.
      await redis.zAdd(retries, { score: 0, value });
      const due = await readDueRetries(redis, [LOG], "track", 5);
      fromMs = await timeOf(redis);
      const tried = due.map((retry) => ({ retry, reason: "not yet" }));
      expect(await settleRetries(redis, "track", tried)).toHaveLength(1);
    }
    expect(await redis.exists(retries)).toBe(0);
    const letters = await redis.xRange(deadLetterKey(LOG), "-", "+");
    expect((letters ?? []).map(({ message }) => [message["id"], message["entry"]])).toEqual([
      [`${id}.2`, JSON.stringify({ e: "c" })],
    ]);
  });

  test("is named in the log by its event, its message and its shipment", async () => {
    const one = event({ trackingNumber: "NAMED" });
    const logged = { shipmentId: 7, courier: "GLS_ITA", messageIndex: 0, receivedAtMs: 1 };
    const { factKey } = seenBucket("GLS_ITA", one.eventId);
    const entry = { ...logged, event: one, factKey, messageId: "message-9" };
    await append(encodeLoggedEvent(entry));
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    let tries = 0;
    const consumer = startConsumer({
      redis: runtime.redis,
      log,
      source: "event",
      group: "track",
      batch: BATCH,
      async handler([item]) {
        tries += 1;
        return item && tries === 1 ? [{ entry: item, reason: "no" }] : [];
      },
    });
    await eventually(() => tries === 2, "it is tried again");
    await consumer.stop();
    const ids = { courier: "GLS_ITA", messageId: "message-9", eventId: one.eventId, shipment: 7 };
    const line = lines.find((text) => text.includes("entry failed; retrying")) ?? "{}";
    expect(JSON.parse(line)).toMatchObject({ group: "track", ...ids, reason: "no" });
  });

  test("while a part waits for its next try it counts, with the age of its entry, log or no log", async () => {
    const { redis } = runtime;
    await append("a", "b", "c");
    const [entry] = await readEntries("reader", 1);
    if (!entry) throw new Error("no entry");
    await acknowledge(redis, "track", LOG, [entry], failuresOf(entry, 1));
    // Another process that had it in hand as well sees other parts fail: the first one's word counts.
    await acknowledge(redis, "track", LOG, [entry], failuresOf(entry, 1, 2));
    const lag = await track();
    expect([await pending(), lag?.entries, await readWaiting(redis, "event")]).toEqual([0, 1, 1]);
    expect(lag?.seconds).toBeGreaterThan(0);
    await redis.del(LOG);
    expect((await track())?.entries).toBe(1);
    await ensureGroups(redis);
    expect(await handle()).toEqual([[`${entry.id}.1 b`]]);
  });

  test("what is due is found behind any number that are not", async () => {
    const { redis } = runtime;
    await append("due");
    const [due] = await readEntries("reader", 1);
    if (!due) throw new Error("no entry");
    await acknowledge(redis, "track", LOG, [due], failuresOf(due, 0));
    const isDue = async () => (await readDueRetries(redis, [LOG], "track", 5)).length === 1;
    await eventually(isDue, "it is due");
    await append(...Array.from({ length: 100 }, (_, n) => String(n)));
    const [late] = await readEntries("reader", 1);
    if (!late) throw new Error("no entry");
    await acknowledge(redis, "track", LOG, [late], failuresOf(late, ...late.items.keys()));
    const retries = retriesKey(LOG, "track");
    const waiting = (await redis.zRange(retries, 0, -1)).filter((text) => !text.includes("due"));
    const dueAt = (score: number) =>
      redis.zAdd(
        retries,
        waiting.map((value) => ({ score, value })),
      );
    // However long this test takes, they are not due.
    await dueAt(Date.now() + 3_600_000);
    const found = await readDueRetries(redis, [LOG], "track", 5);
    expect(found.map(({ fields }) => fields)).toEqual([{ e: "due" }]);
    // Two processes have tried it: one settles it.
    const tried = found.map((retry) => ({ retry, reason: null }));
    expect((await settleRetries(redis, "track", tried)).length).toBe(1);
    expect((await settleRetries(redis, "track", tried)).length).toBe(0);
    await dueAt(0);
    expect((await handle()).flat().length).toBe(100);
  });

  test("is read whole, and handed over together with others, as many as fit into a batch", async () => {
    const events = Array.from({ length: 60 }, (_, n) => String(n));
    for (let n = 0; n < 12; n += 1) await append(...events);
    const calls = await handle();
    expect(calls.flat().length).toBe(12 * 60);
    expect(Math.max(...calls.map(({ length }) => length))).toBe(6 * 60);
  });

  test("after many small ones: the handler is given no more than its batch", async () => {
    for (let n = 0; n < 40; n += 1) await append(String(n));
    const full = Array.from({ length: 100 }, (_, n) => String(n));
    for (let n = 0; n < 100; n += 1) await append(...full);
    const calls = await handle();
    expect(calls.flat().length).toBe(40 + 100 * 100);
    expect(Math.max(...calls.map(({ length }) => length))).toBeLessThanOrEqual(HANDED);
  });

  test("of a process that is gone is taken over at once, however many there are", async () => {
    for (let n = 0; n < 300; n += 1) await append(String(n));
    expect((await readEntries("gone", 300)).length).toBe(300);
    const startMs = performance.now();
    expect(new Set((await handle()).flat()).size).toBe(300);
    expect(performance.now() - startMs).toBeLessThan(10_000);
  });
});

describe("trimming", () => {
  test("deletes what every group has acknowledged, and nothing that one still needs or while one is missing", async () => {
    const { redis } = runtime;
    const log = changeLogs()[0] ?? "";
    await redis.del([log, logCountsKey(log)]);
    await ensureGroups(redis);
    const ids: string[] = [];
    for (let n = 0; n < 6; n += 1) ids.push(await redis.xAdd(log, "*", { s: String(n) }));
    const left = async () => {
      await trimLog(redis, "change", log);
      return ((await redis.xRange(log, "-", "+")) ?? []).map(({ id }) => ids.indexOf(id));
    };
    const read = (group: string, count: number) =>
      redis.xReadGroup(group, "reader", { key: log, id: ">" }, { COUNT: count });
    for (const group of ["references", "webhooks", "notify"]) await read(group, 6);
    await redis.xAck(log, "references", ids);
    // One group holds an entry behind others that it has done, one has read nothing.
    await redis.xAck(log, "webhooks", [ids[0] ?? "", ids[1] ?? "", ids[3] ?? "", ids[4] ?? ""]);
    await redis.xAck(log, "notify", ids);
    expect(await left()).toEqual([0, 1, 2, 3, 4, 5]);
    await read("analytics", 5);
    await redis.xAck(log, "analytics", ids.slice(0, 5));
    expect(await left()).toEqual([2, 3, 4, 5]);
    await redis.xAck(log, "webhooks", [ids[2] ?? "", ids[5] ?? ""]);
    expect(await left()).toEqual([5]);
    await read("analytics", 1);
    await redis.xAck(log, "analytics", [ids[5] ?? ""]);
    await redis.xGroupDestroy(log, "notify");
    expect(await left()).toEqual([5]);
    await ensureGroups(redis);
    expect(await left()).toEqual([5]);
    await read("notify", 1);
    await redis.xAck(log, "notify", ids);
    // A reader of one's own counts as well.
    await redis.xGroupCreate(log, "auditor", "0");
    expect(await left()).toEqual([5]);
    await redis.xGroupDestroy(log, "auditor");
    expect(await left()).toEqual([]);
  });

  test("rests while nothing is left in any partition, and goes on when something is announced", async () => {
    const { redis } = runtime;
    const calls = async (command: string) =>
      Number(
        new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await redis.info("commandstats"))?.[1] ??
          0,
      );
    const consumer = start(async () => {});
    await eventually(async () => (await redis.xLen(LOG)) === 0, "nothing is left");
    let before = 0;
    // While the consumer looks twice more, nobody trims.
    await eventually(async () => {
      before = await calls("xtrim");
      const looks = await calls("xreadgroup");
      await eventually(
        async () => (await calls("xreadgroup")) >= looks + 2 * eventLogs().length,
        "looks",
      );
      return (await calls("xtrim")) === before;
    }, "it rests");
    await fill(1);
    announce(redis, "event");
    const isTrimmed = async () => (await calls("xtrim")) > before && (await redis.xLen(LOG)) === 0;
    await eventually(isTrimmed, "the log is trimmed again", 10_000);
    await consumer.stop();
  });
});

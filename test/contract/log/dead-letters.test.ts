/** Dead letters: listed in pages, driven again for their own group alone (setup-file.md, "The panel's HTTP API"). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type Consumer,
  type Handler,
  type LogItem,
  startConsumer,
} from "#core/platform/log/consumer.ts";
import { redriveAllDeadLetters } from "#core/platform/log/dead-letters.ts";
import {
  DEAD_LETTERS_PER_LOG,
  MAX_TRIES,
  type Retry,
  settleRetries,
} from "#core/platform/log/retries.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { registry } from "#core/platform/process/metrics.ts";
import { changeLogs, deadLetterKey, retriesKey, retryAgesKey } from "#core/platform/redis/keys.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

let runtime: TestRuntime;
let panel: TestPanel;
const consumers: Consumer[] = [];
const log = "{k5}:changes";

/** What each group was handed, and entries that group "webhooks" fails. */
const seen = { webhooks: [] as string[], references: [] as string[] };
const failing = new Set<string>();

const handler =
  (group: keyof typeof seen): Handler =>
  (entries) => {
    seen[group].push(...entries.map(({ id }) => id));
    const failed = entries.filter(({ id }) => group === "webhooks" && failing.has(id));
    return Promise.resolve(failed.map((entry: LogItem) => ({ entry, reason: "out of order" })));
  };

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), { STORE_PARTITIONS: "16" });
  panel = await openTestPanel(runtime);
  const common = { redis: runtime.redis, log: runtime.log, source: "change", batch: 160 } as const;
  consumers.push(
    startConsumer({ ...common, group: "webhooks", handler: handler("webhooks") }),
    startConsumer({ ...common, group: "references", handler: handler("references") }),
  );
});

afterAll(async () => {
  for (const consumer of consumers) await consumer.stop();
  await panel.end();
  await runtime.end();
});

/** A dead letter as a consumer leaves it. */
async function deadLetter(entryId: string, logKey = log): Promise<void> {
  await runtime.redis.xAdd(deadLetterKey(logKey), "*", {
    log: logKey,
    group: "webhooks",
    id: entryId,
    reason: "out of order",
    entry: JSON.stringify({ s: "1", change: "{}" }),
  });
}

async function letters(query = "") {
  const { status, body } = await panel.call("GET", `/panel/api/dead-letters${query}`);
  expect(status).toBe(200);
  return body;
}

const redriveAll = () => panel.call("POST", "/panel/api/dead-letters/redrive");
const redrive = (id: string) => panel.call("POST", `/panel/api/dead-letters/${id}/redrive`);

test("a letter is driven again for its own group, once, and no other group sees it", async () => {
  await deadLetter("7-1");
  const [letter] = (await letters()).items;
  expect(letter).toMatchObject({ group: "webhooks", entryId: "7-1", reason: "out of order", log });
  expect(letter.fields).toEqual({ s: "1", change: "{}" });
  const answers = [await redrive(letter.id), await redrive(letter.id)];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  await eventually(() => seen.webhooks.includes("7-1"), "its group has it");
  await eventually(
    async () => (await runtime.redis.zCard(retriesKey(log, "webhooks"))) === 0,
    "it waits no longer",
  );
  expect((await redrive(letter.id)).status).toBe(200);
  expect(seen.webhooks).toEqual(["7-1"]);
  expect(seen.references).toEqual([]);
  expect((await letters()).items).toEqual([]);
});

test("one that fails again is a dead letter again with the new reason", async () => {
  failing.add("8-1");
  await deadLetter("8-1");
  const [first] = (await letters()).items;
  await redrive(first.id);
  const again = await eventually(
    async () => (await letters()).items.find((one: { id: string }) => one.id !== first.id),
    "it is one again",
  );
  expect(again).toMatchObject({ entryId: "8-1", reason: "out of order", fields: first.fields });
  failing.clear();
  await redrive(again.id);
  await eventually(async () => (await letters()).items.length === 0, "it is done");
});

test("pages follow each other over all logs, the newest first, without gap or repetition", async () => {
  const logs = ["{k0}:changes", log, "{k11}:changes"];
  for (let n = 0; n < 25; n += 1) await deadLetter(`9-${n}`, logs[n % 3]);
  const found: string[] = [];
  let query = "?limit=4";
  for (;;) {
    const page = await letters(query);
    found.push(...page.items.map(({ entryId }: { entryId: string }) => entryId));
    expect(page.cursor).toBe(page.nextCursor);
    if (page.nextCursor === null) break;
    query = `?limit=4&cursor=${page.nextCursor}`;
  }
  expect(found.length).toBe(25);
  expect(new Set(found).size).toBe(25);
  const all = (await letters()).items.map(({ parkedAt }: { parkedAt: string }) => parkedAt);
  expect(all).toEqual([...all].sort().reverse());
});

test("all are redriven with one call, those of every log and none twice", async () => {
  for (let n = 0; n < 250; n += 1)
    await deadLetter(`10-${n}`, changeLogs()[n % changeLogs().length]);
  const all = (await letters("?limit=1000")).items.map(
    ({ entryId }: { entryId: string }) => entryId,
  );
  const [first, second] = await Promise.all([redriveAll(), redriveAll()]);
  expect([first.status, second.status]).toEqual([200, 200]);
  const driven = () => seen.webhooks.filter((id) => all.includes(id));
  await eventually(() => driven().length >= all.length, "their group has all of them");
  expect((await redriveAll()).body).toEqual({ redriven: 0, remaining: 0 });
  expect(driven().sort()).toEqual(all.sort());
});

test("one that cannot be driven again holds up neither the call nor the others", async () => {
  const { redis } = runtime;
  const id = await redis.xAdd(deadLetterKey(log), "*", { log, group: "webhooks", entry: "{}" });
  await deadLetter("12-1");
  expect((await redriveAll()).body).toEqual({ redriven: 1, remaining: 1 });
  await eventually(() => seen.webhooks.includes("12-1"), "its group has the other one");
  await redis.xDel(deadLetterKey(log), String(id));
});

test("a call drives as many as its limit again, and tells how many remain", async () => {
  const { redis, live } = runtime;
  for (let n = 0; n < 7; n += 1) await deadLetter(`11-${n}`);
  const outcomes = [
    await redriveAllDeadLetters(redis, live.now(), 6),
    await redriveAllDeadLetters(redis, live.now(), 6),
  ];
  expect(outcomes).toEqual([
    { redriven: 6, remaining: 1 },
    { redriven: 1, remaining: 0 },
  ]);
});

test("a letter that cannot be driven again stays, and holds up neither the call nor the others", async () => {
  await deadLetter("not an id");
  for (let n = 0; n < 3; n += 1) await deadLetter(`12-${n}`);
  expect((await redriveAll()).body).toEqual({ redriven: 3, remaining: 1 });
  await runtime.redis.del(deadLetterKey(log));
});

describe("a log with as many dead letters as it keeps", () => {
  const full = "{k9}:changes";
  const LIMIT = 3;

  /** Fails for the last time. */
  async function failLast(entryId: string) {
    const { redis } = runtime;
    const text = JSON.stringify({ id: entryId, entry: '{"s":"1"}', tries: MAX_TRIES - 1 });
    const retry: Retry = { key: full, id: entryId, fields: { s: "1" }, tries: MAX_TRIES - 1, text };
    await redis.zAdd(retriesKey(full, "notify"), { score: 0, value: text });
    await redis.zAdd(retryAgesKey(full, "notify"), { score: 1, value: text });
    const settled = await settleRetries(redis, "notify", [{ retry, reason: "broken" }], LIMIT);
    return settled.map(({ isKept }) => isKept);
  }

  test("keeps the last that fits, leaves the next one in retry, and keeps it once there is capacity", async () => {
    const { redis } = runtime;
    for (let n = 1; n < LIMIT; n += 1) expect(await failLast(`12-${n}`)).toEqual([false]);
    expect(await failLast(`12-${LIMIT}`)).toEqual([false]);
    expect(await failLast("13-0")).toEqual([true]);
    expect(await redis.xLen(deadLetterKey(full))).toBe(LIMIT);
    const [waiting, ...others] = await redis.zRangeWithScores(retriesKey(full, "notify"), 0, -1);
    expect([JSON.parse(waiting?.value ?? "{}").id, others]).toEqual(["13-0", []]);
    expect(waiting?.score).toBeGreaterThan(Date.now() + 30_000);
    expect(await redis.zCard(retryAgesKey(full, "notify"))).toBe(1);
    const lag = (await readLags(redis)).find(({ group }) => group === "notify");
    expect(lag?.entries).toBeGreaterThanOrEqual(1);

    await redis.xTrim(deadLetterKey(full), "MAXLEN", LIMIT - 1);
    expect(await failLast("13-0")).toEqual([false]);
    expect(await redis.zCard(retriesKey(full, "notify"))).toBe(0);
    await redis.del(deadLetterKey(full));
  });

  test("reports it in a metric, and the entry is processed once its fault is fixed", async () => {
    const { redis } = runtime;
    const stuck = "{k10}:changes";
    const pipeline = redis.multi();
    for (let n = 0; n < DEAD_LETTERS_PER_LOG; n += 1)
      pipeline.xAdd(deadLetterKey(stuck), "*", { n: "" });
    await pipeline.execAsPipeline();
    const text = JSON.stringify({ id: "14-0", entry: '{"s":"1"}', tries: MAX_TRIES - 1 });
    failing.add("14-0");
    await redis.zAdd(retriesKey(stuck, "webhooks"), { score: 0, value: text });
    await redis.zAdd(retryAgesKey(stuck, "webhooks"), { score: 1, value: text });
    await eventually(
      async () =>
        (await registry.metrics()).includes(
          'waybill_dead_letters_at_limit_total{group="webhooks"} 1',
        ),
      "the alarm counts it",
    );
    expect(await redis.xLen(deadLetterKey(stuck))).toBe(DEAD_LETTERS_PER_LOG);
    failing.clear();
    const tries = seen.webhooks.filter((id) => id === "14-0").length;
    await redis.zAdd(retriesKey(stuck, "webhooks"), { score: 0, value: text });
    await eventually(
      async () => (await redis.zCard(retriesKey(stuck, "webhooks"))) === 0,
      "it is done",
    );
    expect(seen.webhooks.filter((id) => id === "14-0").length).toBe(tries + 1);
    await redis.del(deadLetterKey(stuck));
  });
});

test("one is discarded with a reason, which the audit log keeps, and the books still balance", async () => {
  const key = deadLetterKey("{e3}:log");
  const before = (await panel.call("GET", "/panel/api/overview")).body.ledger;
  await runtime.redis.xAdd(key, "*", {
    log: "{e3}:log",
    group: "track",
    id: "7-1",
    reason: "no",
    entry: '{"a":"Ann"}',
  });
  const [letter] = (await panel.call("GET", "/panel/api/dead-letters")).body.items;
  const path = `/panel/api/dead-letters/${letter.id}`;
  expect((await panel.call("DELETE", path, {})).status).toBe(422);
  expect((await panel.call("DELETE", path, { reason: "x".repeat(501) })).status).toBe(422);
  expect((await panel.call("DELETE", path, { reason: "a test of ours" })).status).toBe(204);
  expect((await panel.call("DELETE", path, { reason: "again" })).status).toBe(404);
  const [entry] = (await panel.call("GET", "/panel/api/audit")).body.items;
  expect(entry).toMatchObject({
    before: { entryId: "7-1", group: "track" },
    after: { discarded: "a test of ours" },
  });
  expect(JSON.stringify(entry)).not.toContain("Ann");
  const after = (await panel.call("GET", "/panel/api/overview")).body.ledger;
  // The letter was put there by hand: the event was never routed.
  expect(after.discarded).toBe(before.discarded + 1);
  expect(after.difference.applied).toBe(before.difference.applied - 1);
});

test("404 for a letter that never was, 400 for a foreign cursor", async () => {
  expect((await redrive("k5-1-1")).status).toBe(404);
  expect((await redrive("anything")).status).toBe(404);
  expect((await panel.call("GET", "/panel/api/dead-letters?cursor=x")).status).toBe(422);
});

/** Dead letters: listed in pages, driven again for their own group alone (setup-file.md, "The panel's HTTP API"). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Consumer, type Entry, type Handler, startConsumer } from "#core/redis/consumer.ts";
import { CHANGE_LOGS, deadLetterKey, retriesKey } from "#core/redis/keys.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestPanel, type TestPanel } from "#test/support/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

let runtime: TestRuntime;
let panel: TestPanel;
const consumers: Consumer[] = [];
const log = CHANGE_LOGS[5] ?? "";

/** What each group was handed, and entries that group "webhooks" fails. */
const seen = { webhooks: [] as string[], references: [] as string[] };
const failing = new Set<string>();

const handler =
  (group: keyof typeof seen): Handler =>
  (entries) => {
    seen[group].push(...entries.map(({ id }) => id));
    const failed = entries.filter(({ id }) => group === "webhooks" && failing.has(id));
    return Promise.resolve(failed.map((entry: Entry) => ({ entry, reason: "out of order" })));
  };

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  panel = await openTestPanel(runtime);
  const common = { redis: runtime.redis, log: runtime.log, source: "change", batch: 10 } as const;
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

/** A dead letter as a consumer parks it. */
async function parked(entryId: string, logKey = log): Promise<void> {
  await runtime.redis.xAdd(deadLetterKey(logKey), "*", {
    ...{ log: logKey, group: "webhooks", id: entryId, reason: "out of order" },
    entry: JSON.stringify({ s: "1", change: "{}" }),
  });
}

async function letters(query = "") {
  const { status, body } = await panel.call("GET", `/panel/api/dead-letters${query}`);
  expect(status).toBe(200);
  return body;
}

const redrive = (id: string) => panel.call("POST", `/panel/api/dead-letters/${id}/redrive`);

test("a letter is driven again for its own group, once, and no other group sees it", async () => {
  await parked("7-1");
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

test("one that fails again is parked again with the new reason", async () => {
  failing.add("8-1");
  await parked("8-1");
  const [first] = (await letters()).items;
  await redrive(first.id);
  const again = await eventually(
    async () => (await letters()).items.find((one: { id: string }) => one.id !== first.id),
    "it is parked again",
  );
  expect(again).toMatchObject({ entryId: "8-1", reason: "out of order", fields: first.fields });
  failing.clear();
  await redrive(again.id);
  await eventually(async () => (await letters()).items.length === 0, "it is done");
});

test("pages follow each other over all logs, the newest first, without gap or repetition", async () => {
  const logs = [CHANGE_LOGS[0] ?? "", log, CHANGE_LOGS[11] ?? ""];
  for (let n = 0; n < 25; n += 1) await parked(`9-${n}`, logs[n % 3]);
  const found: string[] = [];
  let query = "?limit=4";
  for (;;) {
    const page = await letters(query);
    found.push(...page.items.map(({ entryId }: { entryId: string }) => entryId));
    if (page.cursor === null) break;
    query = `?limit=4&cursor=${page.cursor}`;
  }
  expect(found.length).toBe(25);
  expect(new Set(found).size).toBe(25);
  const all = (await letters()).items.map(({ parkedAt }: { parkedAt: string }) => parkedAt);
  expect(all).toEqual([...all].sort().reverse());
});

test("404 for a letter that never was, 400 for a foreign cursor", async () => {
  expect((await redrive("k5-1-1")).status).toBe(404);
  expect((await redrive("anything")).status).toBe(404);
  expect((await panel.call("GET", "/panel/api/dead-letters?cursor=x")).status).toBe(400);
});

/** Lists that a script hands to one command: as long as its limit, and longer by one. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import acceptSource from "#core/merchants/store/jobs/accept-job.lua" with { type: "text" };
import { connectRedis, type Redis, run, script } from "#core/platform/redis/client.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { commitScript } from "#core/shipments/store/shipments.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startTestRedis } from "#test/support/servers/servers.ts";

/** Of one shipment in a commit: fields to be written, and fields that go. */
const FIELDS = 500;
const DROPPED = 1_000;
/** Shipments whose ranks in the index one command changes; more take another command. */
const STAMPED = 500;
/** Of an import job. */
const JOB_FIELDS = 50;

let runtime: TestRuntime;
let redis: Redis;

beforeAll(async () => {
  const server = await startTestRedis();
  runtime = await openTestRuntime(testSetup(), {}, server);
  redis = await connectRedis(server.address, runtime.log);
});
beforeEach(() => redis.flushAll());
afterAll(async () => {
  redis.destroy();
  await runtime.end();
});

const COMMON = ["{k1}:changes", "{k1}:ledger", "{k1}:floor", "{k1}:um", "{k1}:changes:counts"];
const CHANNEL = ["{k1}:clock:1", "{k1}:rl:1", "{k1}:i:1:upd", "{k1}:b:1:0"];
const shipmentKey = (at: number) => `{k1}:s:${at}`;
const numbered = (count: number, name: string) =>
  Array.from({ length: count }, (_, at) => `${name}${at}`);

/** Commits shipments that stand there, each with the fields. */
async function commit(shipments: number, fields: readonly string[], dropped: readonly string[]) {
  const keys = [...COMMON, ...CHANNEL];
  const rows = Array.from({ length: shipments }, (_, at) => {
    keys.push(shipmentKey(at));
    const texts = [String(at), String(at).padStart(12, "0"), "1 0 0 0", "2 0 0 ", "0"];
    const indices = [keys.length, 6, 7, 9];
    const row = [at, 739_000, 3, 1, 1];
    const lengths = [fields.length, dropped.length];
    return [...texts, String(at * 16 + 4), ...indices, ...row, ...[0, 0, 0, 0], ...lengths];
  });
  await Promise.all(rows.map((_, at) => redis.hSet(shipmentKey(at), "v", "1 0 0 0")));
  const args: Array<string | Buffer> = ["1000", "1000", "1", "10", "0", "0"];
  args.push(packList(rows.flat()), packList([]), "");
  const written = fields.flatMap((one) => [one, one]);
  for (const _ of rows) args.push("state", ...written, ...dropped);
  return run<number[]>(redis, commitScript, keys, args);
}

const head = () => redis.hGet(shipmentKey(0), "v");

test(`a commit writes ${FIELDS} fields of a shipment, and refuses one more before it writes anything`, async () => {
  expect(await commit(1, numbered(FIELDS, "f"), [])).toEqual([1_000]);
  expect(await redis.hLen(shipmentKey(0))).toBe(FIELDS + 2);
  await redis.flushAll();
  await expect(commit(2, numbered(FIELDS + 1, "f"), [])).rejects.toThrow("too many fields");
  expect([await head(), await redis.dbSize()]).toEqual(["1 0 0 0", 2]);
});

test(`a commit removes ${DROPPED} fields of a shipment, and refuses one more before it writes anything`, async () => {
  await redis.hSet(shipmentKey(0), Object.fromEntries(numbered(DROPPED, "f").map((f) => [f, "1"])));
  expect(await commit(1, [], numbered(DROPPED, "f"))).toEqual([1_000]);
  expect(await redis.hLen(shipmentKey(0))).toBe(2);
  await redis.flushAll();
  await expect(commit(1, [], numbered(DROPPED + 1, "f"))).rejects.toThrow("too many fields");
  expect([await head(), await redis.dbSize()]).toEqual(["1 0 0 0", 1]);
});

for (const shipments of [STAMPED, STAMPED + 1, 5_000]) {
  test(`a commit stamps ${shipments} shipments in one call`, async () => {
    expect((await commit(shipments, [], [])).length).toBe(shipments);
    expect(await redis.zCard("{k1}:i:1:upd")).toBe(shipments);
  });
}

test(`a job has ${JOB_FIELDS} fields, and one with one more is refused before anything is written`, async () => {
  const keys = [
    ...["{k1}:job:a", "{k1}:jobi:a", "{k1}:jobs:1", "{k1}:w:imports", "{k1}:latest-jobs"],
    "{k1}:wo:imports",
  ];
  const accept = (fields: number) =>
    run<number>(redis, script(acceptSource), keys, [
      ...["a", "20", "60", "1000", "1:a", "1000", "1"],
      ...numbered(fields, "f").flatMap((one) => [one, one]),
    ]);
  expect(await accept(JOB_FIELDS)).toBe(1);
  expect(await redis.hLen("{k1}:job:a")).toBe(JOB_FIELDS);
  await redis.flushAll();
  await expect(accept(JOB_FIELDS + 1)).rejects.toThrow("fields of the job");
  expect(await redis.dbSize()).toBe(0);
});

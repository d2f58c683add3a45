/** Search by part of a number or reference: the lines that it reads, against a plain filter of the same shipments. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { duplicate } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import {
  addFurtherTexts,
  addLines,
  findByPart,
  forgetLines,
} from "#core/search/store/search-lines.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const PART_BYTES = 64 * 1024;
/** So long that some hundreds of shipments fill a part. */
const REFERENCE = "r".repeat(200);

let runtime: TestRuntime;
let companyId: number;
let channelId: number;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  ({ companyId, id: channelId } = channelOf(runtime));
});
afterAll(() => runtime.end());

async function find(text: string, courier = ""): Promise<readonly number[]> {
  const { ids } = await findByPart(runtime.redis, companyId, [channelId], { text, courier });
  return ids.get(channelId) ?? [];
}

async function parts(): Promise<string[]> {
  const keys = companyKeys(companyPartition(companyId));
  const last = Number((await runtime.redis.hGet(keys.searchLines(channelId), "part")) ?? 0);
  return Array.from({ length: last + 1 }, (_, part) => keys.searchLinesPart(channelId, part));
}

test("two processes that add lines at once add each once, in parts that keep their size", async () => {
  const ids: number[] = [];
  for (let at = 0; at < 700; at += 1) {
    const options = { orderReference: `${REFERENCE}${at}`, isRegistered: false };
    ids.push(await addShipment(runtime, `LINES-${at}-END`, options));
  }
  const other = duplicate(runtime.redis);
  if (!other) throw new Error("one Redis is expected");
  await other.connect();
  const added = [runtime.redis, other].map((redis) => addLines(redis, companyId, channelId, 700));
  expect(await Promise.all(added)).toEqual([true, true]);
  await other.close();
  expect(await find("lines-")).toEqual(ids);
  expect(await find("es-699-")).toEqual(ids.slice(-1));
  const names = await parts();
  expect(names.length).toBeGreaterThan(1);
  const lines = await Promise.all(names.map((name) => runtime.redis.get(name)));
  expect(lines.every((one) => (one?.length ?? 0) > 0)).toBe(true);
  const lengths = await Promise.all(names.map((name) => runtime.redis.strLen(name)));
  expect(Math.max(...lengths)).toBeLessThanOrEqual(PART_BYTES);
});

test("a shipment of another courier and one with a further number are found by these", async () => {
  const other = await addShipment(runtime, "COURIER-1", { courier: "BRT_ITA" });
  const own = await addShipment(runtime, "COURIER-2");
  expect([await find("courier-", "BRT_ITA"), await find("", "BRT_ITA")]).toEqual([
    [other],
    [other],
  ]);
  expect(await find("courier-", "GLS_ITA")).toEqual([own]);
  const number = { companyId, channelId, shipmentId: own, courier: "GLS_ITA" };
  await addFurtherTexts(runtime.redis, [{ ...number, text: "Next No 77" }]);
  expect(await find("nextno7")).toEqual([own]);
});

test("where more lines are missing than a search waits for, it says so and finds the others", async () => {
  await addShipment(runtime, "LATE-1");
  await addShipment(runtime, "LATE-2");
  expect(await addLines(runtime.redis, companyId, channelId, 1)).toBe(false);
  expect(await addLines(runtime.redis, companyId, channelId, 2)).toBe(true);
});

test("lines of shipments that are gone leave every part, while others are added", async () => {
  const before = await find("lines-");
  const gone = new Set(before.filter((_, at) => at % 3 === 0));
  const added = Array.from({ length: 20 }, (_, at) =>
    addFurtherTexts(runtime.redis, [
      { companyId, channelId, shipmentId: before[1] ?? 0, courier: "GLS_ITA", text: `MORE-${at}` },
    ]),
  );
  await Promise.all([...added, forgetLines(runtime.redis, companyId, channelId, gone)]);
  const other = duplicate(runtime.redis);
  if (!other) throw new Error("one Redis is expected");
  await other.connect();
  const findAnew = async (text: string) =>
    (await findByPart(other, companyId, [channelId], { text, courier: "" })).ids.get(channelId);
  expect(await findAnew("lines-")).toEqual(before.filter((id) => !gone.has(id)));
  for (const at of added.keys()) expect(await findAnew(`more-${at}`)).toContain(before[1] ?? 0);
  await forgetLines(other, companyId, channelId, new Set(before));
  expect(await findAnew("lines-")).toEqual([]);
  await other.close();
});

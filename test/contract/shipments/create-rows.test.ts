/** What the creation of a shipment writes: ids, rows of columns, indices, exact values and the change log. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { binary } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  companyPartition,
  indexMember,
  logCountsKey,
} from "#core/platform/redis/keys.ts";
import { idAt, idStride } from "#core/platform/redis/partitions.ts";
import { prepareShipment } from "#core/shipments/rules/new-shipment.ts";
import type { ShipmentInput } from "#core/shipments/rules/shipment.ts";
import { BYTES_PER_ROW, MANY_OF_ONE_VALUE, ROWS_PER_BLOCK } from "#core/shipments/store/columns.ts";
import { creationContext } from "#core/shipments/store/create-items.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import { readHotShipments } from "#core/shipments/store/shipments.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const SHIP_DATE = "2026-11-09";
const SHIP_DAY = Date.parse(SHIP_DATE) / 86_400_000;
const WAITING = STATUSES.indexOf("WAITING_TO_COMPUTE");

let runtime: TestRuntime;
let channelId: number;
let partition: number;
let keys: ReturnType<typeof companyKeys>;

beforeEach(async () => {
  runtime = await openTestRuntime(testSetup());
  const channel = channelOf(runtime);
  channelId = channel.id;
  partition = companyPartition(channel.companyId);
  keys = companyKeys(partition);
});
afterEach(() => runtime.end());

/** @returns the ids, negative where the number exists already */
async function create(...numbers: readonly string[]): Promise<number[]> {
  const { redis, live } = runtime;
  const channel = live.configuration().channels.get(channelId);
  if (!channel) throw new Error("no channel");
  const ready = numbers.map((trackingNumber) => {
    const item = {
      courier: "GLS_ITA",
      trackingNumber,
      shipDate: SHIP_DATE,
      language: "it",
      orderReference: "ORDER",
      customAttributes: { custom1: "RED", custom3: "BIG" },
      destination: { postcode: "00118", country: "IT" },
    } as unknown as ShipmentInput;
    const one = prepareShipment(item, creationContext(live.configuration(), channel), live.now());
    if (one.kind !== "ready") throw new Error(JSON.stringify(one));
    return one;
  });
  const created = await createShipments(redis, channel.companyId, ready);
  return created.map(({ id, isNew }) => (isNew ? id : -id));
}

const idOf = (number: number) => idAt(number, partition);

async function bytesOf(key: string): Promise<Buffer> {
  const bytes = (await binary(runtime.redis).get(key)) as Buffer | null;
  return bytes ?? Buffer.alloc(0);
}

async function rowsOf(block: number): Promise<number[][]> {
  const bytes = await bytesOf(keys.block(channelId, block));
  return Array.from({ length: bytes.length / BYTES_PER_ROW }, (_, at) =>
    [0, 4, 8, 12].map((offset) => bytes.readUInt32LE(at * BYTES_PER_ROW + offset)),
  );
}

test("ids follow each other from the first number on, and stand in every index and under every exact value", async () => {
  const { redis } = runtime;
  const ids = [...(await create("A", "B")), ...(await create("C"))];
  expect(ids).toEqual([1, 2, 3].map(idOf));
  const members = ids.map(indexMember);
  const index = (order: "id" | "ship" | "upd") =>
    redis.zRangeWithScores(keys.index(channelId, order), 0, -1);
  const scored = (scoreOf: (id: number) => number) =>
    ids.map((id, at) => ({ value: members[at] ?? "", score: scoreOf(id) }));
  expect(await index("id")).toEqual(scored((id) => id));
  expect(await index("ship")).toEqual(scored(() => SHIP_DAY));
  expect(await index("upd")).toEqual(scored(() => 0));
  const values = [
    ["orderReference", "ORDER"],
    ["custom1", "RED"],
    ["custom3", "BIG"],
  ] as const;
  for (const [field, value] of values) {
    const found = await redis.sMembers(keys.exact(channelId, field, value));
    expect(found.map(Number).toSorted((one, other) => one - other)).toEqual(ids);
  }
  const hot = await readHotShipments(redis, ids);
  expect(ids.map((id) => [hot.get(id)?.rank, hot.get(id)?.version, hot.get(id)?.updated])).toEqual([
    [0, 1, 0],
    [1, 1, 0],
    [2, 1, 0],
  ]);
  expect(await redis.hGet(keys.shipment(ids[0] ?? 0), "v")).toBe("1 0 0 0");
});

test("rows go on in the next block where one is full", async () => {
  // As removals leave it.
  await runtime.redis.hSet(keys.rows(channelId), "gone", String(ROWS_PER_BLOCK - 2));
  const ids = await create("A", "B", "C");
  expect((await rowsOf(0)).slice(-2).map(([id]) => id)).toEqual(ids.slice(0, 2));
  expect((await rowsOf(1)).map(([id]) => id)).toEqual(ids.slice(2));
});

test("rows go on where others have gone on to meanwhile, past the blocks that were known", async () => {
  await create("A");
  await runtime.redis.hSet(keys.rows(channelId), "gone", String(2 * ROWS_PER_BLOCK - 3));
  const ids = await create("B", "C", "D");
  expect((await rowsOf(1)).slice(-2).map(([id]) => id)).toEqual(ids.slice(0, 2));
  expect((await rowsOf(2)).map(([id]) => id)).toEqual(ids.slice(2));
});

test("a value that many shipments have has a bitmap of their ranks", async () => {
  const { redis } = runtime;
  const [first = 0] = await create("A");
  const others = Array.from({ length: MANY_OF_ONE_VALUE - 2 }, (_, at) => idOf(1_000 + at));
  const bits = () => bytesOf(keys.exactBits(channelId, "custom1", "RED"));
  await redis.sAdd(keys.exact(channelId, "custom1", "RED"), others.map(String));
  await redis.zAdd(
    keys.index(channelId, "id"),
    others.map((id) => ({ score: id, value: indexMember(id) })),
  );
  expect(await bits()).toHaveLength(0);
  await redis.set(keys.shipmentIds, "9000");
  await create("B");
  const full = Buffer.alloc(MANY_OF_ONE_VALUE / 8, 0xff);
  expect([first, await bits()]).toEqual([idOf(1), full]);
  await create("C");
  expect(await bits()).toEqual(Buffer.concat([full, Buffer.from([0x80])]));
});

test("rows stand at their ranks, with no time of a change, and the row log tells each", async () => {
  const ids = [...(await create("A", "B")), ...(await create("C"))];
  const day = SHIP_DAY + 719_528;
  expect(await rowsOf(0)).toEqual(ids.map((id) => [id, 0, day, WAITING]));
  const log = await bytesOf(keys.rowLog(channelId));
  const ranks = Array.from({ length: (log.length - 8) / 4 }, (_, at) =>
    log.readUInt32LE(8 + at * 4),
  );
  expect([log.readDoubleLE(0), ranks]).toEqual([0, [0, 1, 2]]);
});

test("what was created is one entry of the change log, and what exists already is none", async () => {
  const { redis } = runtime;
  const [first, second] = await create("A", "B");
  expect(await create("A", "B", "C")).toEqual([-(first ?? 0), -(second ?? 0), idOf(5)]);
  expect(await create("A")).toEqual([-(first ?? 0)]);
  const entries = (await redis.xRange(keys.changes, "-", "+")) ?? [];
  expect(entries.map(({ message }) => message["s"])).toEqual([`${first} ${second}`, `${idOf(5)}`]);
  expect(entries.map(({ message }) => String(message["created"]).split("\n").length)).toEqual([
    2, 1,
  ]);
  expect(await redis.hGet(logCountsKey(keys.changes), "logged")).toBe("3");
  expect(await rowsOf(0)).toHaveLength(3);
});

test("an id of more than 32 bits is cut into the two columns that hold it", async () => {
  const first = (100 * 2 ** 32) / idStride();
  await runtime.redis.set(keys.shipmentIds, String(first - 1));
  const [id = 0] = await create("A");
  expect(id).toBe(idOf(first));
  const [row] = await rowsOf(0);
  expect(row?.[0]).toBe(partition);
  expect(row?.[3]).toBe(100 * 256 + WAITING);
});

test("in a channel that shipments have left a row's rank counts them, and is its score by id", async () => {
  const { redis } = runtime;
  await create("A");
  // As a removal leaves it.
  await redis.hSet(keys.rows(channelId), "gone", "4");
  const [id = 0] = await create("B");
  const scores = await redis.zRangeWithScores(keys.index(channelId, "id"), 0, -1);
  expect(scores.find(({ value }) => value === indexMember(id))?.score).toBe(5);
  expect((await rowsOf(0))[5]?.[0]).toBe(id);
  expect((await readHotShipments(redis, [id])).get(id)?.rank).toBe(5);
});

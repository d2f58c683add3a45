/** A call that commits many shipments does all of it for those that stand as they were read, and nothing for the others. */
import { expect, test } from "bun:test";
import { LOGS } from "#core/platform/log/streams.ts";
import { binary } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  indexMember,
  logCountsKey,
  shipmentPartition,
} from "#core/platform/redis/keys.ts";
import { type Change, decodeChangeEntry } from "#core/shipments/store/change-log.ts";
import { BYTES_PER_ROW } from "#core/shipments/store/columns.ts";
import {
  type Commit,
  commitShipments,
  type HotShipment,
  readHotShipments,
  readShipments,
} from "#core/shipments/store/shipments.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

const runtime = forAll(() => openTestRuntime(testSetup()));

const NOW_MS = Date.parse("2026-11-20T10:00:00Z");

function changeOf({ id, meta }: HotShipment): Change {
  const { companyId, channelId } = meta;
  const reported = { courierStatus: `città ${id} 𝄞`, place: null, status: null, detail: 0 };
  const fact = { key: `key-${id}`, occurredAtMs: 1, receivedAtMs: 2, ...reported };
  return { companyId, channelId, fact, changed: true, firstOccurrence: true, lane: null };
}

function commitOf(from: HotShipment, changes: number): Commit {
  const state = { ...from.state, pair: { status: "IN_TRANSIT", detail: 0 } as const };
  return { from, state, facts: [], changes: Array(changes).fill(changeOf(from)), stamp: true };
}

test("changes of shipments that others have changed meanwhile are not appended, all others are", async () => {
  const { redis } = runtime;
  const ids: number[] = [];
  for (let n = 0; n < 6; n += 1) ids.push(await addShipment(runtime, `C${n}`));
  const log = companyKeys(shipmentPartition(ids[0] ?? 0)).changes;
  for (const outdated of [[], [0], [2, 3], [5], [0, 1, 2, 3, 4, 5]]) {
    const hot = [...(await readHotShipments(redis, ids)).values()];
    await redis.xTrim(log, "MAXLEN", 0);
    const commits = hot.map((shipment, at) => {
      const version = shipment.version - Number(outdated.includes(at));
      return commitOf({ ...shipment, version }, 1 + (at % 3));
    });
    const outcomes = await commitShipments(redis, commits, NOW_MS);
    expect(outcomes).toEqual(
      hot.map((_, at) => (outdated.includes(at) ? "conflict" : "committed")),
    );
    const entries = (await redis.xRange(log, "-", "+")) ?? [];
    for (const { message } of entries) {
      const lines = String(message["change"]).trimEnd().split("\n");
      for (const line of lines) expect(() => JSON.parse(line)).not.toThrow();
    }
    const reportedNow = entries
      .flatMap(({ message }) => LOGS.change.split(message))
      .map((fields) => decodeChangeEntry(fields));
    expect(reportedNow.map((one) => one.type === "changed" && one.change.fact.key)).toEqual(
      hot.flatMap(({ id }, at) =>
        outdated.includes(at) ? [] : Array(1 + (at % 3)).fill(`key-${id}`),
      ),
    );
  }
});

test("facts may be mapped with any configuration that is not older than the one required, or with any where none is", async () => {
  const { redis } = runtime;
  const id = await addShipment(runtime, "MAPPED");
  const { mappingFloor } = companyKeys(shipmentPartition(id));
  const outcomeWith = async (version: number) => {
    const [from] = (await readHotShipments(redis, [id])).values();
    const commits = from ? [commitOf(from, 1)] : [];
    return (await commitShipments(redis, commits, NOW_MS, version))[0];
  };
  expect(await outcomeWith(0)).toBe("committed");
  await redis.set(mappingFloor, "7");
  expect(await outcomeWith(6)).not.toBe("committed");
  expect(await outcomeWith(7)).toBe("committed");
  await redis.del(mappingFloor);
});

test("a shipment keeps its statusUpdatedAt through commits that do not move it", async () => {
  const { redis } = runtime;
  const id = await addShipment(runtime, "KEPT");
  const updatedAt = async () => (await readShipments(redis, [id]))[0]?.statusUpdatedAtMs;
  const commit = async (stamp: boolean) => {
    const [from] = (await readHotShipments(redis, [id])).values();
    if (!from) throw new Error("no shipment");
    await commitShipments(redis, [{ ...commitOf(from, 0), stamp }], NOW_MS);
  };
  expect(await updatedAt()).toBeNull();
  await commit(false);
  expect(await updatedAt()).toBeNull();
  await commit(true);
  const stamped = await updatedAt();
  expect(stamped).toBeGreaterThanOrEqual(NOW_MS);
  await commit(false);
  expect(await updatedAt()).toBe(stamped ?? 0);
});

test("what was committed is counted, and stands in the index and the row of each shipment that it moved", async () => {
  const { redis } = runtime;
  const ids: number[] = [];
  for (let n = 0; n < 4; n += 1) ids.push(await addShipment(runtime, `ROW${n}`));
  const [first = 0] = ids;
  const keys = companyKeys(shipmentPartition(first));
  const counted = async () => {
    const ledger = await redis.hmGet(keys.ledger, ["applied", "released"]);
    const logged = await redis.hGet(logCountsKey(keys.changes), "logged");
    return [...ledger, logged].map(Number);
  };
  const before = await counted();
  const hot = [...(await readHotShipments(redis, ids)).values()];
  const counts = { applied: 3, released: 2 };
  const commits = hot.map((from, at) => ({
    ...commitOf(at === 3 ? { ...from, version: from.version - 1 } : from, 1),
    stamp: at !== 1,
    counts,
  }));
  await commitShipments(redis, commits, NOW_MS);
  const after = await counted();
  expect(after.map((value, at) => value - (before[at] ?? 0))).toEqual([9, 6, 3]);
  const seconds = (await readShipments(redis, ids)).map((one) => one?.statusUpdatedAtMs ?? null);
  expect(seconds.map((ms) => ms !== null)).toEqual([true, false, true, false]);
  const { channelId } = hot[0]?.meta ?? { channelId: 0 };
  const scores = await redis.zmScore(keys.index(channelId, "upd"), ids.map(indexMember));
  expect(scores).toEqual(seconds.map((ms) => (ms ?? 0) / 1_000));
  const block = (await binary(redis).get(keys.block(channelId, 0))) as unknown as Buffer;
  const rows = hot.map(({ rank }) => block.readUInt32LE(rank * BYTES_PER_ROW + 4));
  expect(rows).toEqual(seconds.map((ms) => (ms ?? 0) / 1_000));
  const [again] = (await readHotShipments(redis, [first])).values();
  const one = { applied: 1, released: 0 };
  if (again) await commitShipments(redis, [{ ...commitOf(again, 0), counts: one }], NOW_MS);
  expect((await counted()).map((value, at) => value - (after[at] ?? 0))).toEqual([1, 0, 0]);
});

/** A call that commits many shipments does all of it for those that stand as they were read, and nothing for the others. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { companyKeys, shipmentPartition } from "#core/redis/client/keys.ts";
import { type Change, decodeChangeEntry } from "#core/redis/log/change-log.ts";
import { LOGS } from "#core/redis/log/streams.ts";
import {
  type Commit,
  commitShipments,
  type HotShipment,
  readHotShipments,
  readShipments,
} from "#core/redis/shipments/shipments.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";
import { addShipment } from "#test/support/shipments.ts";

let runtime: TestRuntime;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
});
afterAll(() => runtime.end());

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

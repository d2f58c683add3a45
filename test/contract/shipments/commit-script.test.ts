/** commit.lua, one call at a time: the seconds of statusUpdatedAt, and the counts of unmapped codes. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { run } from "#core/platform/redis/client.ts";
import { declaredKeys } from "#core/platform/redis/declared-keys.ts";
import { indexMember } from "#core/platform/redis/keys.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { commitScript } from "#core/shipments/store/shipments.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

/** Seconds since 1970. */
const NOW = 1_800_000_000;

const { redis, stop } = await openTestRedis();
beforeEach(() => redis.flushAll());
afterAll(stop);

interface Committed {
  readonly id: number;
  readonly company?: string;
  readonly stamp?: boolean;
}

/** How the unmapped events of a code become more or fewer in a shipment. */
interface Delta {
  readonly id: number;
  readonly code?: string;
  readonly events: number;
  /** Some are left. */
  readonly isLeft?: boolean;
  /** When they were seen first and last, and the description that they had. */
  readonly seen?: readonly [first: number, last: number, description: string];
}

interface Terms {
  readonly now?: number;
  /** Shipments of a company that may share a second. */
  readonly share?: number;
  /** From the first second to the one that it ends with. */
  readonly skip?: readonly [from: number, to: number];
  readonly codesLimit?: number;
  readonly deltas?: readonly Delta[];
}

/** @returns for each shipment its statusUpdatedAt, 0 when it was not stamped */
async function commit(shipments: readonly Committed[], terms: Terms = {}): Promise<number[]> {
  const { now = NOW, share = 3, skip = [0, 0], codesLimit = 10, deltas = [] } = terms;
  const names = ["changes", "ledger", "floor", "codes", "log-counts"];
  const { declared, declare, declareRun } = declaredKeys(names);
  for (const { id } of shipments) await redis.hSet(`shipment:${id}`, "v", "1 0 0 0");
  const rows = shipments.flatMap(({ id, company = "one", stamp = false }) => [
    ...[String(id), indexMember(id), "1 0 0 0", "2 0 0 ", "0", "0"],
    ...[declare(`shipment:${id}`), declare(`clock:${company}`)],
    ...[declareRun(`rows:${company}`, `index:${company}`), 0],
    ...[0, 0, 0, Number(stamp), 0],
    ...[0, 0, 0, 0, 0, 0],
  ]);
  const codes = deltas.map(({ id, code = "X", events, isLeft = true, seen = [1, 1, ""] }) => [
    ...[shipments.findIndex((one) => one.id === id) + 1, code, seen[2]],
    ...[String(seen[0]), String(seen[1]), declareRun(`counts:${code}`, `shipments:${code}`)],
    ...[events, Number(isLeft)],
  ]);
  const numbers = [now, share, 1, codesLimit, ...skip].map(String);
  const states = shipments.map(() => "state");
  const args = [...numbers, packList(rows), packList(codes), "", ...states];
  return run<number[]>(redis, commitScript, declared, args);
}

describe("company-clock.lua", () => {
  let lastId = 0;

  const stamped = (count: number, company = "one"): Committed[] =>
    Array.from({ length: count }, () => {
      lastId += 1;
      return { id: lastId, company, stamp: true };
    });

  test("shipments share a second up to the limit, and the rest take the seconds after it", async () => {
    const shipments = stamped(7);
    const seconds = [NOW, NOW, NOW, NOW + 1, NOW + 1, NOW + 1, NOW + 2];
    expect(await commit(shipments)).toEqual(seconds);
    for (const [at, { id }] of shipments.entries()) {
      expect(await redis.hGet(`shipment:${id}`, "v")).toBe(`2 0 0 ${seconds[at]}`);
      expect(await redis.zScore("index:one", indexMember(id))).toBe(seconds[at] ?? 0);
    }
    expect(await commit(stamped(3))).toEqual([NOW + 2, NOW + 2, NOW + 3]);
    expect(await commit(stamped(3), { now: NOW + 3 })).toEqual([NOW + 3, NOW + 3, NOW + 4]);
    expect(await commit(stamped(4), { now: NOW + 6 })).toEqual([
      ...[NOW + 6, NOW + 6, NOW + 6],
      NOW + 7,
    ]);
  });

  test("each company has its own clock, which only stamped shipments move", async () => {
    const [one, two] = [stamped(2), stamped(2, "two")];
    const shipments = [
      ...one.slice(0, 1),
      ...two,
      ...one.slice(1),
      { id: 9_999, company: "three" },
    ];
    expect(await commit(shipments, { share: 1 })).toEqual([NOW, NOW, NOW + 1, NOW + 1, 0]);
    expect(await redis.exists("clock:three")).toBe(0);
    expect(await commit(stamped(1, "two"), { share: 2 })).toEqual([NOW + 1]);
  });

  test("no second of the repeated hour is used, not even when a burst runs into it", async () => {
    const [from, to] = [NOW, NOW + 3_600];
    const at = async (now: number, count: number, company: string) =>
      commit(stamped(count, company), { now, share: 2, skip: [from, to] });
    expect(await at(from - 1, 6, "before")).toEqual([
      ...[from - 1, from - 1, to],
      ...[to, to + 1, to + 1],
    ]);
    expect(await at(from, 1, "first")).toEqual([to]);
    expect(await at(from + 9, 2, "first")).toEqual([to, to + 1]);
    expect(await at(to - 1, 1, "last")).toEqual([to]);
    expect(await at(to, 3, "after")).toEqual([to, to, to + 1]);
    expect(await at(to + 1, 1, "later")).toEqual([to + 1]);
  });
});

describe("unmapped-codes.lua", () => {
  /** Commits the shipments that are named. */
  async function count(deltas: readonly Delta[], codesLimit = 10): Promise<void> {
    const ids = new Set(deltas.map(({ id }) => id));
    await commit(
      [...ids].map((id) => ({ id })),
      { deltas, codesLimit },
    );
  }

  const codes = async () => (await redis.sMembers("codes")).toSorted();
  const countsOf = (code: string) => redis.hGetAll(`counts:${code}`);
  const eventsOf = async (code: string) => Number((await countsOf(code))["events"]);
  const shipmentsOf = (code: string) => redis.zRange(`shipments:${code}`, 0, -1);
  const untold = async () => Number(await redis.hGet("ledger", "untold"));

  test("counts the events of each code, and lists the shipments that have them", async () => {
    await count([
      { id: 2, events: 2, seen: [5, 7, "what X means"] },
      { id: 1, events: 1, seen: [5, 6, "what X meant"] },
      { id: 1, code: "Y", events: 1 },
    ]);
    expect(await codes()).toEqual(["X", "Y"]);
    const seen = { first: "5", last: "7", description: "what X means" };
    expect(await countsOf("X")).toEqual({ events: "3", ...seen });
    expect(await redis.zRangeWithScores("shipments:X", 0, -1)).toEqual([
      { value: "1", score: 1 },
      { value: "2", score: 2 },
    ]);
    expect([await eventsOf("Y"), await shipmentsOf("Y")]).toEqual([1, ["1"]]);
    await count([{ id: 3, events: 4 }]);
    expect([await eventsOf("X"), await shipmentsOf("X")]).toEqual([7, ["1", "2", "3"]]);
    expect(await redis.exists("ledger")).toBe(0);
  });

  test("keeps when a code was first and last seen, and its latest description", async () => {
    const see = (...all: readonly NonNullable<Delta["seen"]>[]) =>
      count(all.map((seen, at) => ({ id: at + 1, events: 1, seen })));
    const seen = async () => {
      const { first, last, description } = await countsOf("X");
      return [Number(first), Number(last), description];
    };
    await see([50, 60, "b"], [40, 45, "a"], [55, 60, "c"]);
    expect(await seen()).toEqual([40, 60, "c"]);
    await see([45, 60, "d"]);
    expect(await seen()).toEqual([40, 60, "d"]);
    await see([30, 59, "e"]);
    expect(await seen()).toEqual([30, 60, "d"]);
    await see([100, 110, "f"]);
    expect(await seen()).toEqual([30, 110, "f"]);
    await count([{ id: 1, events: -1, seen: [1, 200, "g"] }]);
    expect(await seen()).toEqual([30, 110, "f"]);
  });

  test("removes a shipment with no events left, and the code with its last shipment", async () => {
    const gone = (id: number): Delta => ({ id, events: -1, isLeft: false });
    await count([1, 2, 3, 4, 5].map((id) => ({ id, events: 2 })));
    await count([{ id: 1, events: -1 }, gone(2)]);
    expect([await eventsOf("X"), await shipmentsOf("X")]).toEqual([8, ["1", "3", "4", "5"]]);
    await count([gone(3), gone(4)]);
    expect([await eventsOf("X"), await shipmentsOf("X")]).toEqual([6, ["1", "5"]]);
    await count([gone(1)]);
    expect([await eventsOf("X"), await shipmentsOf("X")]).toEqual([5, ["5"]]);
    // A shipment that came while the list was full is not in it.
    await count([gone(9)]);
    expect([await codes(), await shipmentsOf("X")]).toEqual([["X"], ["5"]]);
    await count([gone(5), { id: 6, events: 1 }]);
    expect([await codes(), await shipmentsOf("X")]).toEqual([["X"], ["6"]]);
    await count([{ id: 7, events: 1 }]);
    await count([gone(6), gone(7)]);
    expect(await redis.exists(["codes", "counts:X", "shipments:X"])).toBe(0);
  });

  test("ignores fewer events of a code that is not listed", async () => {
    await count([{ id: 1, events: -1 }]);
    expect(await redis.exists(["codes", "counts:X", "shipments:X", "ledger"])).toBe(0);
  });

  test("lists 2 codes; events of a third only add to the number not listed", async () => {
    await count([{ id: 1, events: 1 }], 2);
    await count([{ id: 1, code: "Y", events: 1 }], 2);
    await count([{ id: 1, code: "Z", events: 3 }], 2);
    expect([await codes(), await untold()]).toEqual([["X", "Y"], 3]);
    expect(await redis.exists(["counts:Z", "shipments:Z"])).toBe(0);
    const more = ["X", "Z", "W"].map((code) => ({ id: 2, code, events: 1 }));
    await count(more, 2);
    expect([await codes(), await untold(), await eventsOf("X")]).toEqual([["X", "Y"], 5, 2]);
    await count([{ id: 3, code: "Z", events: 1 }], 3);
    expect([await codes(), await untold()]).toEqual([["X", "Y", "Z"], 5]);
  });
});

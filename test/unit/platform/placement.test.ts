/** Which master should have which partition (docs/operations/redis.md, "Placement"). */
import { expect, test } from "bun:test";
import {
  BASE_BYTES,
  BASE_CALLS,
  loadsOf,
  type Placed,
  planPlacement,
  unevenness,
  weigh,
} from "#core/placement/rules/plan.ts";
import { BATCH_BYTES, batchesOf } from "#core/placement/store/move-slots.ts";

const tags = ["e", "t", "k"].flatMap((family) =>
  Array.from({ length: 16 }, (_, n) => `{${family}${n}}`),
);
const even = (master: (at: number) => string): Placed[] =>
  tags.map((tag, at) => ({ tag, master: master(at), weight: 1 / tags.length }));

function after(partitions: readonly Placed[], masters: readonly string[]): Placed[] {
  const moves = new Map(planPlacement(partitions, masters).map(({ tag, to }) => [tag, to]));
  return partitions.map((one) => ({ ...one, master: moves.get(one.tag) ?? one.master }));
}

const counts = (partitions: readonly Placed[], masters: readonly string[]) =>
  masters.map((name) => partitions.filter(({ master }) => master === name).length);

test("partitions of equal weight are spread over the masters by number, whatever the number of masters", () => {
  for (let many = 1; many <= tags.length; many += 1) {
    const masters = Array.from({ length: many }, (_, at) => `m${at}`);
    const placed = after(
      even(() => "m0"),
      masters,
    );
    const found = counts(placed, masters);
    expect([many, Math.max(...found)]).toEqual([many, Math.ceil(tags.length / many)]);
    expect([many, unevenness(placed, masters)]).toEqual([many, expect.closeTo(1, 6)]);
  }
});

test("a placement that is even already moves nothing, and a repeated plan moves nothing more", () => {
  const masters = ["a", "b", "c"];
  expect(
    planPlacement(
      even((at) => masters[at % 3] ?? ""),
      masters,
    ),
  ).toEqual([]);
  const moved = after(
    even((at) => (at < 40 ? "a" : "b")),
    masters,
  );
  expect(planPlacement(moved, masters)).toEqual([]);
});

test("a master that is to be emptied loses all its partitions, and only those move where the others were even", () => {
  const before = even((at) => ["a", "b", "c"][at % 3] ?? "");
  const moves = planPlacement(before, ["a", "b"]);
  expect(moves.map(({ from }) => from)).toEqual(Array.from({ length: 16 }, () => "c"));
  expect(counts(after(before, ["a", "b"]), ["a", "b", "c"])).toEqual([24, 24, 0]);
});

test("a new, empty master takes partitions from each of the others", () => {
  const before = even((at) => ["a", "b", "c"][at % 3] ?? "");
  const moves = planPlacement(before, ["a", "b", "c", "d"]);
  expect(moves).toHaveLength(12);
  expect(moves.every(({ to }) => to === "d")).toBe(true);
});

test("a heavy partition stands alone, and the light ones share the other masters", () => {
  const masters = ["a", "b", "c"];
  const weights = tags.map((_, at) => (at === 0 ? 0.4 : 0.6 / 47));
  const before = tags.map((tag, at) => ({ tag, master: "a", weight: weights[at] ?? 0 }));
  const loads = loadsOf(after(before, masters), masters);
  expect(Math.max(...loads.values())).toBeLessThan(0.42);
  expect(unevenness(after(before, masters), masters)).toBeLessThan(1.06);
});

test("weights are the mean of the shares of bytes and calls, and those of an empty store are equal", () => {
  const empty = weigh(tags.map((tag) => ({ tag, bytes: 0, calls: 0 })));
  for (const weight of empty.values()) expect(weight).toBeCloseTo(1 / 48, 9);
  const two = weigh([
    { tag: "{e0}", bytes: 3 * BASE_BYTES - BASE_BYTES, calls: BASE_CALLS - BASE_CALLS },
    { tag: "{e1}", bytes: 0, calls: 3 * BASE_CALLS - BASE_CALLS },
  ]);
  expect(two.get("{e0}")).toBeCloseTo((3 / 4 + 1 / 4) / 2, 9);
  expect(two.get("{e1}")).toBeCloseTo((1 / 4 + 3 / 4) / 2, 9);
});

test("keys go over in batches of 1 MiB at most, and a larger key goes alone", () => {
  const key = (name: string, size: number) => ({ key: name, size });
  expect(batchesOf([key("a", BATCH_BYTES - 1), key("b", 1), key("c", 1)])).toEqual([
    ["a", "b"],
    ["c"],
  ]);
  expect(batchesOf([key("a", 1), key("b", BATCH_BYTES + 1), key("c", 1)])).toEqual([
    ["a"],
    ["b"],
    ["c"],
  ]);
  expect(batchesOf([])).toEqual([]);
});

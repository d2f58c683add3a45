/** The reference scripts, called one at a time: which live or archived shipments a courier's number finds. */
import { beforeEach, describe, expect, test } from "bun:test";
import compactSource from "#core/events/store/compact.lua" with { type: "text" };
import forgetSource from "#core/events/store/forget.lua" with { type: "text" };
import registerSource from "#core/events/store/register.lua" with { type: "text" };
import { binary, run, script } from "#core/platform/redis/client.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

const GENERATIONS = 2;
const SHIP_DAY = 20_000;
/** An id of more than 4 bytes. */
const LATE = 2 ** 32 + 7;
const [NEW, OLD] = [0, 1];

/** A shipment under a reference. */
interface Item {
  readonly of: string;
  readonly id: number;
  readonly company?: number;
  /** What a bucket holds of it after its id. */
  readonly rest?: string;
  readonly isPlaceholder?: boolean;
}

const keysOf = (reference: string, generations = GENERATIONS) => [
  reference,
  ...Array.from({ length: generations }, (_, generation) => bucketOf(reference, generation)),
];
const bucketOf = (reference: string, generation: number) => `${reference}:${generation}`;
const nameOf = (reference: string) => `name of ${reference}`;

const startOf = (id: number) => `[${id},`;
const lineOf = ({ id, company = 1 }: Item) => `[${id},5,0,null,${company},${SHIP_DAY}]`;

function idBytes(id: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes.writeUIntLE(id, 0, 5);
  return bytes;
}

/** As a bucket holds it. */
const compactOf = ({ id, rest = "ended" }: Item) => Buffer.concat([idBytes(id), Buffer.from(rest)]);
/** The line of an archived shipment whose reference has other shipments too. */
const archivedLineOf = (item: Item) =>
  `[${item.id},5,0,null,"${compactOf(item).toString("hex")}",${item.company ?? 1},${SHIP_DAY}]`;

/** @returns the shipments that a reference finds in its own key, in their order */
async function found(reference: string): Promise<number[]> {
  const lines = (await store.redis.get(reference))?.split("\n") ?? [];
  return lines.map((line) => JSON.parse(line)[0]);
}

const putInto = (generation: number, item: Item) =>
  store.redis.hSet(bucketOf(item.of, generation), nameOf(item.of), compactOf(item));

/** @returns what a bucket holds of the reference */
async function inBucket(reference: string, generation: number): Promise<Buffer | null> {
  const value = await binary(store.redis).hGet(bucketOf(reference, generation), nameOf(reference));
  return value as unknown as Buffer | null;
}

describe("register.lua", () => {
  /** @returns how many were left out or removed at a limit */
  const register = (
    items: readonly Item[],
    { perCompany = 10, inAll = 100, generations = GENERATIONS } = {},
  ) =>
    run<number>(
      store.redis,
      script(registerSource),
      items.flatMap(({ of }) => keysOf(of, generations)),
      [
        ...[perCompany, inAll, generations].map(String),
        ...items.flatMap((item) => [startOf(item.id), lineOf(item).slice(startOf(item.id).length)]),
        ...items.map(({ of }) => nameOf(of)),
      ],
    );

  test.each([0, 1, 2])(
    "a reference finds each of its shipments once, with %d generations",
    async (generations) => {
      const items = [
        { of: "a", id: 12 },
        { of: "b", id: 1 },
        { of: "a", id: 1 },
        { of: "c", id: 3 },
      ];
      for (let times = 0; times < 2; times += 1) {
        expect(await register(items, { generations })).toBe(0);
        expect([await found("a"), await found("b"), await found("c")]).toEqual([[12, 1], [1], [3]]);
      }
      expect(await store.redis.get("b")).toBe(lineOf({ of: "b", id: 1 }));
      expect(await store.redis.dbSize()).toBe(3);
    },
  );

  /** Of one company under one reference. */
  const shipments = (...ids: readonly number[]) => ids.map((id) => ({ of: "a", id }));

  test("finds the latest 3 of a company's 4 shipments, in whatever order they come", async () => {
    const limits = { perCompany: 3 };
    expect(await register(shipments(8, 2, 6), limits)).toBe(0);
    expect((await found("a")).toSorted()).toEqual([2, 6, 8]);
    expect(await register(shipments(4), limits)).toBe(1);
    expect(await found("a")).toEqual([4, 6, 8]);
    expect(await register(shipments(3), limits)).toBe(1);
    expect(await found("a")).toEqual([4, 6, 8]);
    expect(await register([{ of: "a", id: 1, company: 2 }], limits)).toBe(0);
    expect(await found("a")).toEqual([1, 4, 6, 8]);
    expect(await register(shipments(5, 7), limits)).toBe(2);
    expect(await found("a")).toEqual([1, 6, 7, 8]);
  });

  test("keeps 4 of 5 shipments: the latest of each company before the second of any", async () => {
    const limits = { perCompany: 3, inAll: 4 };
    const items = [
      { of: "a", id: 9, company: 1 },
      { of: "a", id: 8, company: 1 },
      { of: "a", id: 3, company: 2 },
      { of: "a", id: 2, company: 2 },
    ];
    expect(await register(items, limits)).toBe(0);
    expect((await found("a")).toSorted()).toEqual([2, 3, 8, 9]);
    expect(await register([{ of: "a", id: 1, company: 3 }], limits)).toBe(1);
    expect(await found("a")).toEqual([1, 3, 8, 9]);
    expect(await register([{ of: "a", id: 7, company: 1 }], limits)).toBe(1);
    expect(await found("a")).toEqual([1, 3, 8, 9]);
    expect(await register([{ of: "a", id: 4, company: 4 }], limits)).toBe(1);
    expect(await found("a")).toEqual([1, 3, 4, 9]);
  });

  test.each([
    ["newest", NEW],
    ["oldest", OLD],
  ])("keeps an archived shipment of the %s generation beside a new one", async (_, generation) => {
    const archived = { of: "b", id: LATE };
    await putInto(generation, archived);
    await putInto(generation, { of: "c", id: 3 });
    const items = ["a", "b"].map((of) => ({ of, id: 9 }));
    expect(await register(items)).toBe(0);
    const hex = compactOf(archived).toString("hex");
    const [, live] = items.map(lineOf);
    expect(await store.redis.get("b")).toBe(`[${LATE},0,0,null,"${hex}",${LATE},0]\n${live}`);
    expect(await inBucket("b", generation)).toBeNull();
    expect(await found("a")).toEqual([9]);
    expect(await inBucket("c", generation)).not.toBeNull();
  });

  test("leaves an archived shipment that is registered again as it is", async () => {
    const archived = { of: "a", id: LATE };
    await putInto(OLD, archived);
    expect(await register([archived])).toBe(0);
    expect(await store.redis.exists("a")).toBe(0);
    expect(await inBucket("a", OLD)).toEqual(compactOf(archived));
  });
});

describe("compact.lua", () => {
  /** @returns how many stand in buckets */
  const compact = (...items: readonly Item[]) =>
    run<number>(
      store.redis,
      script(compactSource),
      items.flatMap(({ of }) => keysOf(of)),
      [
        String(GENERATIONS),
        packList(
          items.flatMap((item) => [
            ...[startOf(item.id), archivedLineOf(item)],
            ...[item.isPlaceholder ? "" : nameOf(item.of), compactOf(item)],
          ]),
        ),
        "5",
      ],
    );
  const putLines = (reference: string, ...items: readonly Item[]) =>
    store.redis.set(reference, items.map(lineOf).join("\n"));

  test("moves the only shipment of a reference to the newest bucket", async () => {
    const items = ["a", "b", "c"].map((of, at) => ({ of, id: LATE + at }));
    for (const item of items) await putLines(item.of, item);
    for (let times = 0; times < 2; times += 1) {
      expect(await compact(...items)).toBe(3);
      for (const item of items) {
        expect(await store.redis.exists(item.of)).toBe(0);
        expect(await inBucket(item.of, NEW)).toEqual(compactOf(item));
        expect(await inBucket(item.of, OLD)).toBeNull();
      }
    }
  });

  test("marks a shipment with others beside it, or a placeholder, as archived in place", async () => {
    const shipment = (id: number) => ({ of: "a", id });
    const [one, two, three] = [shipment(1), shipment(12), shipment(3)];
    await putLines("a", one, two, three);
    const placeholder = { of: "b", id: 4, isPlaceholder: true };
    await putLines("b", placeholder);
    for (let times = 0; times < 2; times += 1) {
      expect(await compact(one, three, placeholder)).toBe(0);
      const lines = [archivedLineOf(one), lineOf(two), archivedLineOf(three)];
      expect(await store.redis.get("a")).toBe(lines.join("\n"));
      expect(await store.redis.get("b")).toBe(archivedLineOf(placeholder));
    }
    expect(await store.redis.keys("*:*")).toEqual([]);
  });

  test("leaves a reference to another shipment, or to none, as it is", async () => {
    const other = { of: "a", id: 12 };
    await putLines("a", other);
    await putInto(NEW, { of: "b", id: 12 });
    await putInto(OLD, { of: "b", id: 1 });
    const placeholder = { of: "d", id: 1, isPlaceholder: true };
    await store.redis.hSet(bucketOf("d", NEW), "", compactOf(placeholder));
    const before = await store.redis.dbSize();
    expect(await compact(placeholder, ...["a", "b", "c"].map((of) => ({ of, id: 1 })))).toBe(0);
    expect(await store.redis.get("a")).toBe(lineOf(other));
    expect(await inBucket("b", NEW)).toEqual(compactOf({ of: "b", id: 12 }));
    expect(await store.redis.dbSize()).toBe(before);
  });

  test("writes new data of an archived shipment to the newest bucket", async () => {
    await putInto(OLD, { of: "a", id: LATE, rest: "not ended" });
    const again = { of: "a", id: LATE, rest: "ended" };
    expect(await compact(again)).toBe(1);
    expect(await inBucket("a", NEW)).toEqual(compactOf(again));
    expect(await store.redis.exists("a")).toBe(0);
  });
});

describe("forget.lua", () => {
  /** @returns how many references found their shipment */
  const forget = (items: readonly Item[], generations = GENERATIONS) =>
    run<number>(
      store.redis,
      script(forgetSource),
      items.flatMap(({ of }) => keysOf(of, generations)),
      [
        String(generations),
        ...items.flatMap(({ of, id }) => [startOf(id), nameOf(of), idBytes(id)]),
      ],
    );
  const put = (reference: string, ...ids: readonly number[]) =>
    store.redis.set(reference, ids.map((id) => lineOf({ of: reference, id })).join("\n"));

  test.each([0, 2])(
    "removes a shipment and keeps the others of its reference, with %d generations",
    async (generations) => {
      await put("a", 1, 12, 3);
      await put("b", 1);
      await put("c", 12);
      const items = ["a", "b", "c", "d"].map((of) => ({ of, id: 1 }));
      expect(await forget(items, generations)).toBe(2);
      expect([await found("a"), await found("c")]).toEqual([[12, 3], [12]]);
      expect((await store.redis.keys("*")).toSorted()).toEqual(["a", "c"]);
      expect(await forget(items, generations)).toBe(0);
      expect(await forget([{ of: "a", id: 3 }], generations)).toBe(1);
      expect(await found("a")).toEqual([12]);
    },
  );

  test("removes a shipment from the buckets of every generation, and no other shipment", async () => {
    for (const generation of [NEW, OLD]) {
      await putInto(generation, { of: "a", id: LATE });
      await store.redis.hSet(
        bucketOf("a", generation),
        "another name",
        compactOf({ of: "a", id: LATE }),
      );
    }
    await putInto(OLD, { of: "b", id: LATE, rest: "" });
    await putInto(NEW, { of: "c", id: 7 });
    const items = ["a", "b", "c"].map((of) => ({ of, id: LATE }));
    expect(await forget(items)).toBe(2);
    for (const generation of [NEW, OLD]) {
      expect(await store.redis.hKeys(bucketOf("a", generation))).toEqual(["another name"]);
    }
    expect(await inBucket("b", OLD)).toBeNull();
    expect(await inBucket("c", NEW)).toEqual(compactOf({ of: "c", id: 7 }));
    expect(await forget(items)).toBe(0);
  });
});

/** Changes that are decided once, twice, and past the decisions that a shipment keeps: what is made, answered and counted. */
import { beforeEach, expect, test } from "bun:test";
import { run } from "#core/platform/redis/client.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { forAll } from "#test/support/for-all.ts";
import { scriptNamed } from "#test/support/scripts/webhook-scripts.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

interface Change {
  readonly shipment: string;
  readonly event: string;
  /** Endpoints it is sent to. */
  readonly to: readonly string[];
  /** Verdicts of the others. */
  readonly not?: readonly string[];
}

const KEEP = 2;
const FROM_MS = 5_000;

/** @returns for each change how many deliveries were made, -1 when it was decided before */
function decide(changes: readonly Change[], more: readonly string[] = []): Promise<number[]> {
  const endpoints = [...new Set(changes.flatMap(({ to }) => to))];
  const keys = ["ring", "turns", "failing", "ledger"];
  for (const id of endpoints) {
    keys.push(`queue:${id}`, `retries:${id}`, `log:${id}`, `failed:${id}`);
  }
  const [list, texts]: [string[], string[]] = [[], []];
  for (const { shipment, event, to, not = [] } of changes) {
    keys.push(`decisions:${shipment}`, ...to.map((id) => `delivery:${event}:${id}`));
    list.push(event, String(to.length + not.length), ...not);
    for (const id of to) list.push("send", `${event}:${id}`, String(endpoints.indexOf(id) + 1));
    texts.push(`decision of ${event}`, ...to.map((id) => `${id} ${event}`));
  }
  const numbers = [FROM_MS, 60_000, KEEP, 1_000].map(String);
  const lists = [packList(endpoints), packList([...list, ...more])];
  const args = [...numbers, "lane full", "1e15", ...lists, ...texts];
  return run<number[]>(store.redis, scriptNamed("decide"), keys, args);
}

const changesOf = (shipment: string, events: readonly string[]) =>
  events.map((event): Change => ({ shipment, event, to: ["a"], not: ["filtered"] }));
const counted = async () =>
  (await store.redis.hmGet("ledger", ["webhook:send", "webhook:filtered"])).map(Number);

test(`a shipment keeps ${KEEP} decisions; changes past them are sent all the same, each once`, async () => {
  const changes = changesOf("s", ["one", "two", "three", "four"]);
  expect(await decide(changes.slice(0, KEEP + 1))).toEqual([1, 1, 1]);
  const kept = { one: "decision of one", two: "decision of two" };
  expect(await store.redis.hGetAll("decisions:s")).toEqual(kept);
  expect(await decide(changes)).toEqual([-1, -1, -1, 1]);
  expect(await store.redis.hGetAll("decisions:s")).toEqual(kept);
  const queued = ["one:a", "two:a", "three:a", "four:a"];
  expect(await store.redis.lRange("queue:a", 0, -1)).toEqual(queued);
  const texts = queued.map((id) => store.redis.hGet(`delivery:${id}`, "i"));
  expect(await Promise.all(texts)).toEqual(["a one", "a two", "a three", "a four"]);
  expect(await decide(changesOf("other", ["five"]))).toEqual([1]);
  expect(await store.redis.hLen("decisions:other")).toBe(1);
});

test("invariant 10: the ledger counts a delivery once, however often its change is handed in", async () => {
  const changes = changesOf("s", ["one", "two", "three"]);
  await decide(changes);
  expect((await counted())[0]).toBe(3);
  await decide(changes);
  await decide(changes.slice(KEEP));
  expect((await counted())[0]).toBe(3);
});

test("a change is answered with the number of its deliveries, which may be none", async () => {
  const changes: Change[] = [
    { shipment: "s", event: "one", to: ["a", "b", "c"] },
    { shipment: "s", event: "two", to: [], not: ["filtered", "disabled"] },
  ];
  expect(await decide(changes)).toEqual([3, 0]);
  expect(await counted()).toEqual([3, 1]);
  expect(await decide(changes)).toEqual([-1, -1]);
  expect(await counted()).toEqual([3, 1]);
});

test("a list with one text too many is refused before anything is written", async () => {
  const changes = changesOf("s", ["one"]);
  await expect(decide(changes, ["surplus"])).rejects.toThrow("a change is cut off");
  expect(await store.redis.dbSize()).toBe(0);
});

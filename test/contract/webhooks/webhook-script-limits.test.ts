/** What one call of a script of the webhooks takes, and that it refuses one more before it has changed anything. */
import { expect, test } from "bun:test";
import { run } from "#core/platform/redis/client.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { forAll } from "#test/support/for-all.ts";
import {
  type ScriptCall,
  type ScriptName,
  scriptNamed,
} from "#test/support/scripts/webhook-scripts.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);

const names = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}`);
const times = (count: number, items: (n: number) => string[]) =>
  Array.from({ length: count }, (_, n) => items(n)).flat();

const change = (sends: number) => [
  ...["evt", String(sends)],
  ...times(sends, (n) => ["send", `d${n}`, "1"]),
];

function decide(changes: number, sends: number): ScriptCall {
  return {
    keys: names(4 + 4 + changes * (1 + sends), "key"),
    arguments: [
      ...["1", "1000", "1000", "1000", "full", "1e15"],
      packList(["ep"]),
      packList(times(changes, () => change(sends))),
      ...times(changes, () => ["[]", ...names(sends, "frozen")]),
    ],
  };
}

const result = (n: number) => [`d${n}`, "1", "failed", "1", "[]", "", "", "", ""];

/** Failing, silent, start, life, where failing endpoints begin, no retries first. */
const LEASE_LIMITS = ["2", "5", "4", "1", "1e15", "0"];
const TERMS = "0 10 0 0 0 1000";

type Limit = [script: ScriptName, what: string, most: number, call: (count: number) => ScriptCall];

const LIMITS: Limit[] = [
  [
    "alert",
    "alerts",
    500,
    (count) => ({
      keys: names(5, "key"),
      arguments: ["1", ...times(count, (n) => [`ep${n}`, "1", "warning"])],
    }),
  ],
  ["decide", "changes", 500, (count) => decide(count, 0)],
  ["decide", "deliveries", 1_000, (count) => decide(1, count)],
  [
    "drain",
    "deliveries",
    500,
    (count) => ({
      keys: names(7 + count, "key"),
      arguments: ["ep", "off", String(count), ...names(count, "d")],
    }),
  ],
  [
    "finish",
    "results",
    1_000,
    (count) => ({
      keys: names(15 + 5 + count, "key"),
      arguments: [
        ...["1", "1", "1", "1e15", "4", "1", "1"],
        packList(["ep", String(count), "10", "0", "", "", "", ...times(count, result)]),
      ],
    }),
  ],
  [
    "lease",
    "deliveries",
    1_000,
    (count) => ({
      keys: names(9 + 1, "key"),
      arguments: ["1", "1", String(count), "0", "0", ...LEASE_LIMITS, "1", "ep", TERMS],
    }),
  ],
  [
    "lease",
    "endpoints",
    400,
    (count) => ({
      keys: names(9 + count, "key"),
      arguments: [
        ...["1", "1", "1", "0", "0", ...LEASE_LIMITS, String(count), ...names(count, "ep")],
        ...times(count, () => [TERMS]),
      ],
    }),
  ],
  [
    "lease",
    "deliveries for silent endpoints",
    1_000,
    (count) => ({
      keys: names(9 + 1, "key"),
      arguments: ["1", "1", "0", "0", String(count), ...LEASE_LIMITS, "1", "ep", TERMS],
    }),
  ],
  [
    "reclaim",
    "leases",
    100,
    (count) => ({
      keys: names(7 + 3 * count, "key"),
      arguments: ["1", "1e15", ...names(count, "ep d ")],
    }),
  ],
  [
    "resume",
    "endpoints",
    100,
    (count) => ({
      keys: names(5 + 2 * count, "key"),
      arguments: ["1", "1e15", ...names(count, "ep")],
    }),
  ],
  [
    "renew",
    "leases",
    1_000,
    (count) => ({
      keys: ["key"],
      arguments: ["1", ...names(count, "ep d ")],
    }),
  ],
  [
    "replay",
    "deliveries",
    500,
    (count) => ({
      keys: names(4 + 5 * count, "key"),
      arguments: ["1", "1e15", "1", "1", "", "", "", ...times(count, (n) => [`d${n}`, "ep", ""])],
    }),
  ],
];

test.each(LIMITS)("%s.lua takes no more %s than %i", async (name, _, most, call) => {
  await store.redis.flushAll();
  const calls = [most, most + 1].map(call);
  const [last, more] = calls as [ScriptCall, ScriptCall];
  const refused = run(store.redis, scriptNamed(name), more.keys, more.arguments);
  await expect(refused).rejects.toThrow(/malformed|fit|belong/);
  expect(await store.redis.dbSize()).toBe(0);
  await run(store.redis, scriptNamed(name), last.keys, last.arguments);
});

test("finish.lua records nothing where no result is given", async () => {
  await store.redis.flushAll();
  const args = ["1", "1", "1", "1e15", "4", "1", "1", packList([])];
  expect(await run<number>(store.redis, scriptNamed("finish"), names(15, "key"), args)).toBe(0);
  expect(await store.redis.dbSize()).toBe(0);
});

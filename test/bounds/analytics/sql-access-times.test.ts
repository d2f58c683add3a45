/** What a statement over SQL access costs at the most: the engine, for each function that is allowed, and the event loop. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { ClickHouseClient } from "@clickhouse/client";
import { ALLOWED_FUNCTIONS, PATTERN_FUNCTIONS } from "#analytics/sql/allowed-functions.ts";
import { openSqlAccess } from "#analytics/sql-access.ts";
import {
  type EngineFunction,
  functionsOf,
  manyFunctions,
} from "#test/support/data/engine-functions.ts";
import { watchLoop } from "#test/support/loop-holds.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";

const HOLD_LIMIT_MS = 50;
/** The garbage of what came before may be collected in any of them. */
const TRIES = 4;
/** Characters of a text, and elements of a list: what compares all of one with all of another takes seconds of CPU. */
const LARGE = 32_000;
/** CPU time. The slowest function on the list takes a third of it. */
const FUNCTION_LIMIT_MS = 300;
const TICK_MS = 10;

const LARGE_ARGUMENTS = {
  S: `materialize(repeat('ab', ${LARGE / 2}))`,
  T: `materialize(repeat('ba', ${LARGE / 2}))`,
  J: `materialize(concat('{"a":[', arrayStringConcat(arrayMap(x -> '1', range(${LARGE / 2})), ','), ']}'))`,
  A: `materialize(range(${LARGE}))`,
  B: `materialize(arrayReverse(range(${LARGE})))`,
  X: `materialize(arrayMap(x -> toString(x), range(${LARGE / 4})))`,
  M: `materialize(mapFromArrays(range(${LARGE}), range(${LARGE})))`,
  k: "5",
  s: "'ab'",
  f: "(x -> x)",
  g: "((x, y) -> x + y)",
} as const;

/** Letters of `LARGE_ARGUMENTS`: whatever a function takes, it takes one of them. */
const SHAPES = [
  ...["S", "J", "A", "X", "M", "SS", "ST", "JT", "SX", "AB", "XX", "Sk", "Ss", "sS"],
  ...["fA", "gM", "Sss", "SsS", "gAB", "ABA"],
];
/** Of aggregate functions, over rows. */
const ROWS = [
  "number",
  "number, number",
  "toString(number)",
  "toDateTime(number), number % 2 = 0, number % 3 = 0",
];

function statementsWith(name: string, isAggregate: boolean): string[] {
  if (isAggregate)
    return ROWS.map((given) => `SELECT ignore(${name}(${given})) FROM numbers(100000) FORMAT Null`);

  const isPattern =
    PATTERN_FUNCTIONS.some((one) => one.toLowerCase() === name.toLowerCase()) ||
    name === "splitByRegexp";
  const shapes = SHAPES.filter(
    (shape) => !isPattern || shape.at(name === "splitByRegexp" ? 0 : 1) === "s",
  );
  const ofShape = (shape: string) =>
    [...shape].map((letter) => LARGE_ARGUMENTS[letter as keyof typeof LARGE_ARGUMENTS]).join(", ");
  return shapes.map((shape) => `SELECT ignore(${name}(${ofShape(shape)})) FORMAT Null`);
}

/** 0 where the function does not take such arguments. */
async function cpuMsOf(client: ClickHouseClient, query: string): Promise<number> {
  const before = usedCpuMs();
  try {
    await client.command({ query });
  } catch {
    return 0;
  }
  return usedCpuMs() - before;
}

/** Of this process and its children: the engine computes in one of them. */
function usedCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + children.reduce((sum, pid) => sum + ticksOf(pid) * TICK_MS, 0);
}

/** In user and system mode, by proc(5). */
function ticksOf(pid: string): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

function childrenOf(process: string): string[] {
  if (!existsSync(process)) return [];
  const lists = readdirSync(process).map((id) => readFileSync(`${process}/${id}/children`, "utf8"));
  return lists.flatMap((list) => list.split(" ").filter((pid) => pid !== ""));
}

let children: readonly string[] = [];
let store: TestClickhouse;

beforeAll(async () => {
  store = await openTestClickhouse();
  children = childrenOf("/proc/self/task");
});

afterAll(() => store?.end());

test("a short statement that becomes 30,000 functions holds nobody up", async () => {
  const access = openSqlAccess(store.config);
  const watch = watchLoop();
  let heldMs = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && heldMs >= HOLD_LIMIT_MS; tries += 1) {
    watch.longestMs();
    await expect(access.ask(manyFunctions(), "csv", "somebody")).rejects.toThrow();
    heldMs = watch.longestMs();
  }
  watch.stop();
  await access.close();
  expect(heldMs).toBeLessThan(HOLD_LIMIT_MS);
});

test("each allowed function takes a time that grows no faster than its largest argument", async () => {
  const engine = new Map<string, EngineFunction>();
  for (const one of await functionsOf(store.writer)) engine.set(one.name, one);
  const names = ALLOWED_FUNCTIONS.map((name) => engine.get(name)?.alias_to || name);
  const slow: string[] = [];
  for (const name of new Set(names)) {
    for (const statement of statementsWith(name, engine.get(name)?.is_aggregate === 1)) {
      let cpuMs = Number.POSITIVE_INFINITY;
      for (let tries = 0; tries < TRIES && cpuMs >= FUNCTION_LIMIT_MS; tries += 1) {
        cpuMs = Math.min(cpuMs, await cpuMsOf(store.writer, statement));
      }
      if (cpuMs >= FUNCTION_LIMIT_MS) slow.push(`${statement}: ${cpuMs} ms`);
    }
  }
  expect(slow).toEqual([]);
}, 300_000);

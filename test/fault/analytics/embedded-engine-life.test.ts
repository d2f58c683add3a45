/**
 * The embedded ClickHouse is a child process that may end at any time: nothing is lost or counted twice, whoever asks next starts it
 * again, and no engine outlives the processes that use it.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { clickhouseErrorType, openBare, openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { ENGINE_FOLDER, ENGINE_NAMES, useEngine } from "#analytics/clickhouse/embedded-engine.ts";
import { startAnalytics } from "#analytics/main.ts";
import { identityOf } from "#core/platform/embedded/embedded-folder.ts";
import { serversOf } from "#core/platform/embedded/embedded-program.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { changeLogs } from "#core/platform/redis/keys.ts";
import { deliveredShipments, laneFields } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

const ROOT = join(import.meta.dir, "..", "..", "..");
/** Hours of work in a single block of rows, between two of which the engine looks at the time. */
const RUNAWAY =
  "SELECT arraySum(arrayMap(x -> editDistance(repeat('a', 30000 + x % 2), repeat('b', 30000)), range(10000)))";

let root: string;
let config: Config;
const ends: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "waybill-engine-"));
  config = readConfig({ DATA_DIR: join(root, "data") });
});

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await rm(root, { recursive: true, force: true });
});

/** Of all engines on the folder, whoever started them. */
async function pids(dataDir = config.dataDir): Promise<number[]> {
  const identity = await identityOf(join(dataDir, ENGINE_FOLDER));
  return identity ? serversOf({ names: ENGINE_NAMES }, identity) : [];
}

async function opened(settings = {}, given = config): Promise<ClickHouseClient> {
  const client = await openBare(given, settings);
  ends.push(() => client.close());
  return client;
}

/** With other times than the product's. */
function engineWith(times: { sleepAfterMs: number; overtimeMs: number }): void {
  const engine = useEngine(config.dataDir, times);
  ends.push(engine.release);
}

async function textOf(client: ClickHouseClient, query: string): Promise<string> {
  return (await (await client.query({ query, format: "TabSeparated" })).text()).trim();
}

/** A process that asks the engine of the folder once for each line of its input. */
async function startAsking() {
  const program = `
    import { openBare } from "#analytics/clickhouse/clickhouse.ts";
    import { readConfig } from "#core/platform/environment/config.ts";
    const client = await openBare(readConfig({ DATA_DIR: ${JSON.stringify(config.dataDir)} }), {});
    for await (const _ of console) {
      const answer = await client.query({ query: "SELECT 'answered'", format: "TabSeparated" });
      process.stdout.write(await answer.text());
    }
    await client.close();`;
  const child = Bun.spawn([process.execPath, "-e", program], {
    cwd: ROOT,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  ends.push(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  return {
    child,
    async ask() {
      child.stdin.write("ask\n");
      child.stdin.flush();
      return (await lines.read()).value?.trim();
    },
  };
}

test("an engine killed again and again in the middle of inserts loses no row and counts none twice", async () => {
  /** More than a batch. */
  const ROWS = 40_000;
  const runtime = await openTestRuntime(testSetup(), { LOG_LEVEL: "silent" });
  ends.push(runtime.end);
  const { dataDir } = runtime.config;
  const role = await startAnalytics(runtime);
  const benchmarks = await openBenchmarks(runtime.config);
  const behind = async () =>
    (await readLags(runtime.redis)).find(({ group }) => group === "analytics")?.entries ?? 0;
  for (const first of [1, 1 + ROWS, 1 + 2 * ROWS]) {
    const rows = deliveredShipments(ROWS, (at) => ({ shipmentId: first + at, destCap: "10129" }));
    const pipeline = runtime.redis.multi();
    for (const row of rows) pipeline.xAdd(changeLogs()[0] ?? "", "*", laneFields(row));
    const before = await behind();
    await pipeline.execAsPipeline();
    await eventually(
      async () => (await behind()) < before + ROWS,
      "inserts are under way",
      200_000,
    );
    for (const pid of await pids(dataDir)) process.kill(pid, "SIGKILL");
  }
  await eventually(async () => (await behind()) === 0, "the backlog drains", 200_000);
  const question = { originCap: null, weightKg: null, couriers: ["GLS_ITA"] };
  const nowMs = Date.parse("2026-11-20T12:00:00+01:00");
  // The last engine may have been killed after its last insert, and the next one still be starting.
  const [answer] = await eventually(
    () =>
      benchmarks
        .deliveryTimes({ ...question, destCap: "10129", nowMs })
        .catch(() => false as const),
    "benchmarks are answered",
  );
  expect(answer?.sampleSize).toBe(3 * ROWS);
  await role.stop();
  await benchmarks.close();
}, 300_000);

test("an engine that nobody asks ends, and the next statement is answered by another one with the same rows", async () => {
  engineWith({ sleepAfterMs: 2_000, overtimeMs: 60_000 });
  const writer = await openClickhouse(config, "write");
  ends.push(() => writer.close());
  await writer.command({ query: "CREATE TABLE kept (n UInt8) ENGINE = MergeTree ORDER BY n" });
  await writer.command({ query: "INSERT INTO kept VALUES (1), (2), (3)" });
  const [first] = await pids();
  await eventually(async () => (await pids()).length === 0, "it sleeps");
  expect(await textOf(writer, "SELECT sum(n) FROM kept")).toBe("6");
  expect(await pids()).not.toEqual([first]);
});

test("an engine does not sleep while a statement runs, however long that takes", async () => {
  engineWith({ sleepAfterMs: 2_000, overtimeMs: 60_000 });
  const client = await opened();
  await textOf(client, "SELECT 1");
  const [pid] = await pids();
  const slow =
    "SELECT count() FROM numbers(5) WHERE sleepEachRow(1) = 0 SETTINGS max_block_size = 1";
  expect(await textOf(client, slow)).toBe("5");
  expect(await pids()).toEqual([pid ?? 0]);
});

test("a statement within its time is answered, and one that the engine can stop is refused alone", async () => {
  const client = await opened({ max_execution_time: 12 });
  const [pid] = await pids();
  expect(await textOf(client, "SELECT sleep(2)")).toBe("0");
  const long = "SELECT count() FROM numbers(100000000000) WHERE sipHash64(number) = 1";
  const error = await textOf(client, long).catch((thrown) => thrown);
  expect(clickhouseErrorType(error)).toBe("TIMEOUT_EXCEEDED");
  expect(await pids()).toEqual(pid === undefined ? await pids() : [pid]);
});

test("a statement that does not stop ends with the engine, and the next one is answered", async () => {
  engineWith({ sleepAfterMs: 60_000, overtimeMs: 1_000 });
  const client = await opened({ max_execution_time: 1 });
  await textOf(client, "SELECT 1");
  const [pid] = await pids();
  const error = await textOf(client, RUNAWAY).catch((thrown) => thrown);
  expect(clickhouseErrorType(error)).toBe("TIMEOUT_EXCEEDED");
  await eventually(async () => !(await pids()).includes(pid ?? 0), "it has ended");
  expect(await textOf(client, "SELECT 2")).toBe("2");
});

test("the last client of a process ends the engine", async () => {
  const [one, other] = [await openBare(config, {}), await openBare(config, {})];
  await textOf(one, "SELECT 1");
  await one.close();
  expect(await textOf(other, "SELECT 1")).toBe("1");
  expect(await pids()).toHaveLength(1);
  await other.close();
  expect(await pids()).toEqual([]);
});

test("no engine outlives a process that is killed, and another one on the folder goes on with its own", async () => {
  const [starter, joining] = [await startAsking(), await startAsking()];
  expect(await starter.ask()).toBe("answered");
  const [first] = await pids();
  expect(await joining.ask()).toBe("answered");
  expect(await pids()).toEqual([first ?? 0]);
  starter.child.kill("SIGKILL");
  await eventually(async () => !(await pids()).includes(first ?? 0), "its engine has ended");
  expect(await joining.ask()).toBe("answered");
  expect(await pids()).toHaveLength(1);
  joining.child.kill("SIGKILL");
  await eventually(async () => (await pids()).length === 0, "no engine is left");
});

test("processes that ask at the same moment start one engine", async () => {
  const asking = await Promise.all([startAsking(), startAsking(), startAsking()]);
  const answers = await Promise.all(asking.map(({ ask }) => ask()));
  expect(answers).toEqual(["answered", "answered", "answered"]);
  expect(await pids()).toHaveLength(1);
});

test("a folder that was moved while its engine runs is served by another engine in its new place", async () => {
  const client = await opened();
  await textOf(client, "SELECT 1");
  const moved = readConfig({ DATA_DIR: join(root, "moved") });
  await rename(config.dataDir, moved.dataDir);
  const error = await textOf(client, "SELECT 1").catch((thrown) => thrown);
  expect(error).toBeInstanceOf(Error);
  const other = await opened({}, moved);
  const answers = async () => (await textOf(other, "SELECT 2").catch(() => "")) === "2";
  await eventually(answers, "it is served in its new place");
  expect(await pids(moved.dataDir)).toHaveLength(1);
});

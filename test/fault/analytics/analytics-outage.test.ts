/** ClickHouse down for long: nothing is lost, only benchmarks are unavailable, memory stays bounded, the backlog drains by itself. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { openInsights } from "#analytics/insights.ts";
import { startAnalytics } from "#analytics/main.ts";
import { countRefused, readCourierCounts } from "#core/events/store/courier-counts.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { changeLogs } from "#core/platform/redis/keys.ts";
import { deliveredShipments, laneFields } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import {
  type ClickhouseServer,
  startClickhouseHttp,
} from "#test/support/servers/clickhouse-http.ts";

const NOW_MS = Date.parse("2026-11-20T12:00:00+01:00");
const CLOSED_PORT = "http://127.0.0.1:1";
const ROWS = 6_000;
/** Changes in one batch (`analytics/main.ts`). */
const BATCH = 32_000;
/** Twice as many are more than what is in hand and what is read ahead. */
const BACKLOG = 40_000;

const runtime = forAll(() => openTestRuntime(testSetup(), { LOG_LEVEL: "silent" }));

function question(destCap: string) {
  return { destCap, originCap: null, weightKg: null, couriers: ["GLS_ITA"], nowMs: NOW_MS };
}

async function append(destCap: string, first: number, count: number): Promise<void> {
  const rows = deliveredShipments(count, (at) => ({ shipmentId: first + at, destCap }));
  const [log = ""] = changeLogs();
  const pipeline = runtime.redis.multi();
  for (const row of rows) pipeline.xAdd(log, "*", laneFields(row));
  await pipeline.execAsPipeline();
}

async function unacknowledged(): Promise<number> {
  const lags = await readLags(runtime.redis);
  return lags.find(({ group }) => group === "analytics")?.entries ?? 0;
}

async function held(): Promise<number> {
  const pending = await Promise.all(
    changeLogs().map((key) => runtime.redis.xPending(key, "analytics")),
  );
  return pending.reduce((sum, one) => sum + one.pending, 0);
}

async function countOne(): Promise<void> {
  await countRefused(runtime.redis, "GLS_ITA", [{ outcome: "UNKNOWN_TRACKING" }], NOW_MS);
}

describe("a server whose port is closed", () => {
  test("the backlog waits in Redis, and the process holds one batch of it however long it grows", async () => {
    const config = { ...runtime.config, clickhouseUrl: CLOSED_PORT };
    const role = await startAnalytics({ ...runtime, config });
    await append("10126", 1, BACKLOG);
    await countOne();
    await eventually(async () => (await held()) > 0, "a batch is in hand");
    await append("10126", 1 + BACKLOG, BACKLOG);
    await countOne();
    expect(await held()).toBeLessThanOrEqual(2 * BATCH);
    expect(await unacknowledged()).toBe(2 * BACKLOG);
    expect((await readCourierCounts(runtime.redis)).counts).toMatchObject([{ events: 2 }]);
    await role.stop();
    expect(await unacknowledged()).toBe(2 * BACKLOG);
  });

  test("questions are 503 with Retry-After at once, benchmarks and the data team's alike", async () => {
    const address = { clickhouseUrl: CLOSED_PORT, clickhouseReadUrl: CLOSED_PORT };
    const config = { ...runtime.config, ...address };
    const benchmarks = await openBenchmarks(config);
    const insights = openInsights(config);
    const faults = await Promise.all(
      [
        benchmarks.deliveryTimes(question("10126")),
        benchmarks.efficiencyIndex(question("10126")),
        insights.lane(question("10126")),
        insights.quality(0, NOW_MS),
        insights.sql.ask("SELECT 1", "json", "somebody"),
      ].map((answer) => (answer as Promise<unknown>).catch((error) => error)),
    );
    for (const fault of faults) {
      expect(fault).toMatchObject({ status: 503, headers: { "retry-after": "5" } });
    }
    await Promise.all([benchmarks.close(), insights.close()]);
  });
});

describe("a server that is killed and starts again", () => {
  let server: ClickhouseServer;
  let own: TestRuntime;

  beforeAll(async () => {
    server = await startClickhouseHttp();
    own = await openTestRuntime(testSetup(), {
      LOG_LEVEL: "silent",
      CLICKHOUSE_URL: server.address,
    });
  });
  afterAll(async () => {
    await own?.end();
    await server?.stop();
  });

  async function add(first: number): Promise<void> {
    const rows = deliveredShipments(BACKLOG, (at) => ({
      shipmentId: first + at,
      destCap: "10128",
    }));
    const pipeline = own.redis.multi();
    for (const row of rows) pipeline.xAdd(changeLogs()[0] ?? "", "*", laneFields(row));
    await pipeline.execAsPipeline();
  }

  const behind = async () =>
    (await readLags(own.redis)).find(({ group }) => group === "analytics")?.entries;

  test("in the middle of its inserts: every row counts once, benchmarks are 503 meanwhile, and nobody does anything", async () => {
    const role = await startAnalytics(own);
    const benchmarks = await openBenchmarks(own.config);
    await add(1);
    await eventually(async () => (await behind()) !== BACKLOG, "inserts are under way");
    await server.kill();
    await add(1 + BACKLOG);
    const fault = await benchmarks.deliveryTimes(question("10128")).catch((error) => error);
    expect(fault).toMatchObject({ status: 503, code: "BENCHMARKS_UNAVAILABLE" });
    expect(await behind()).toBeGreaterThanOrEqual(BACKLOG);
    await server.restart();
    await eventually(async () => (await behind()) === 0, "the backlog drains", 200_000);
    const [answer] = await benchmarks.deliveryTimes(question("10128"));
    expect(answer?.sampleSize).toBe(2 * BACKLOG);
    await role.stop();
    await benchmarks.close();
  }, 300_000);
});

test("an embedded engine that cannot be started: everything waits, and drains by itself once it can", async () => {
  const folder = join(runtime.config.dataDir, "clickhouse");
  await writeFile(folder, "no folder");
  const role = await startAnalytics(runtime);
  const benchmarks = await openBenchmarks(runtime.config);
  await append("10127", 100_000, ROWS);
  const fault = await benchmarks.deliveryTimes(question("10127")).catch((error) => error);
  expect(fault).toMatchObject({ status: 503, code: "BENCHMARKS_UNAVAILABLE" });
  expect(await unacknowledged()).toBe(2 * BACKLOG + ROWS);

  await rm(folder);
  await eventually(async () => (await unacknowledged()) === 0, "the backlog drains", 200_000);
  const sample = async (destCap: string) => {
    const answer = await benchmarks.deliveryTimes(question(destCap)).catch(() => []);
    return answer[0]?.sampleSize;
  };
  await eventually(
    async () => (await sample("10126")) === 2 * BACKLOG,
    "all of the first outage count",
  );
  expect(await sample("10127")).toBe(ROWS);
  const isEmpty = async () => (await readCourierCounts(runtime.redis)).counts.length === 0;
  await eventually(isEmpty, "the counts of an hour that is over are taken over");
  await role.stop();
  await benchmarks.close();
}, 300_000);

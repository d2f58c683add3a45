/** design.md, "Starting, stopping, failing": the demo and real data never share a store. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkClickhouse } from "#analytics/check-clickhouse.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { DEMO_FIRST_ID } from "#core/configuration/store/demo-identity.ts";
import { beginEmptying, WrongStore } from "#core/configuration/store/store-kind.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { tryLock } from "#core/platform/process/file-lock.ts";
import { createLog } from "#core/platform/process/log.ts";
import { SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import { applySetupFile, openRuntime, openStore } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { demoSetup } from "#demo/demo-setup.ts";
import { resetDemo } from "#demo/reset-demo.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { startClickhouseHttp } from "#test/support/servers/clickhouse-http.ts";

const log = createLog("silent");
const DEMO = demoSetup("https://127.0.0.1:1", () => "http://127.0.0.1:1");
let root = "";
let dataDir = "";

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "waybill-kind-"));
});
beforeEach(async () => {
  dataDir = await mkdtemp(join(root, "store-"));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const configOf = (isDemo: boolean) => ({
  ...readConfig({ DATA_DIR: dataDir, WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8" }),
  isDemo,
});

/** As a start does it, up to its roles. */
async function fill(isDemo: boolean, ...setups: readonly SetupFile[]): Promise<void> {
  const runtime = await openRuntime(configOf(isDemo), log);
  try {
    for (const setup of setups) await applySetupFile(runtime, setup);
  } finally {
    await runtime.close();
  }
}

/** What an earlier version has written has no mark. */
async function dropMark(): Promise<void> {
  const store = await openStore(configOf(false), log);
  await store.redis.hDel(SYSTEM_KEY, "kind");
  await store.close();
}

const refusal = (isDemo: boolean) =>
  fill(isDemo).then(
    () => null,
    (error: unknown) => (error instanceof WrongStore ? error.message : error),
  );

test("a store of the demo is refused to a real start, which is told of DATA_DIR and --reset-demo", async () => {
  await fill(true, DEMO);
  const message = await refusal(false);
  expect(message).toStartWith(`${dataDir} holds the demo's data`);
  for (const way of ["DATA_DIR", "npm start -- --reset-demo"]) expect(message).toContain(way);
  expect(await refusal(true)).toBeNull();
}, 120_000);

test("a store of real data is refused to the demo, which is told of DATA_DIR", async () => {
  await fill(false, testSetup());
  const message = await refusal(true);
  expect(message).toStartWith(`${dataDir} holds real data`);
  expect(message).toContain("DATA_DIR");
  expect(await refusal(false)).toBeNull();
}, 120_000);

test("a store in which a start has written nothing yet is anybody's", async () => {
  await fill(false);
  expect(await refusal(true)).toBeNull();
  expect(await refusal(false)).toBeNull();
}, 120_000);

test("a store of an earlier version is the demo's if it has the demo's companies alone, and real otherwise", async () => {
  await fill(false, DEMO);
  await dropMark();
  expect(await refusal(false)).toContain("holds the demo's data");
  expect(await refusal(true)).toBeNull();
  await dropMark();
  const { companies = [], couriers: _, ...rest } = testSetup();
  await fill(true, { ...rest, companies: companies.map(({ code }) => ({ code })) });
  await dropMark();
  expect(await refusal(true)).toContain("holds real data");
  expect(await refusal(false)).toBeNull();
}, 120_000);

test("--reset-demo empties the demo's store, after which any start may take it, and never real data", async () => {
  await fill(true, DEMO);
  await resetDemo(configOf(true), log);
  expect(await refusal(false)).toBeNull();
  await fill(false, testSetup());
  await expect(resetDemo(configOf(false), log)).rejects.toThrow("never removes");
  expect(await refusal(false)).toBeNull();
}, 120_000);

test("a reset that was interrupted keeps every start away until it is repeated", async () => {
  await fill(true, DEMO);
  const store = await openStore(configOf(true), log);
  expect(await beginEmptying(store.redis, dataDir)).toBe(true);
  await store.close();
  for (const isDemo of [true, false]) {
    expect(await refusal(isDemo)).toContain("run npm start -- --reset-demo again");
  }
  await resetDemo(configOf(true), log);
  expect(await refusal(false)).toBeNull();
}, 120_000);

test("a ClickHouse server of the other kind, or of an installation whose Redis is empty, is refused", async () => {
  const server = await startClickhouseHttp();
  const own = (isDemo: boolean) => ({ ...configOf(isDemo), clickhouseUrl: server.address });
  const open = async (isDemo: boolean) => {
    const runtime = await openRuntime(own(isDemo), log, { checks: [checkClickhouse] });
    await runtime.close();
  };
  // Without tables, and then without rows, it is anybody's.
  await open(true);
  const clickhouse = await openClickhouse(own(false), "write");
  await applySchema(clickhouse, own(false));
  await open(false);

  const insert = (id: number) =>
    clickhouse.command({
      query: `INSERT INTO deliveries (shipment_id, courier, version) VALUES (${id}, 'GLS', 1)`,
    });
  await insert(1);
  await expect(open(true)).rejects.toThrow("CLICKHOUSE_URL holds real data");
  await expect(open(false)).rejects.toThrow("Redis is empty: finish the restore of Redis");
  await insert(DEMO_FIRST_ID);
  await open(true);
  await expect(open(false)).rejects.toThrow("CLICKHOUSE_URL holds the demo's data");
  await fill(false, testSetup());
  await open(false);
  await clickhouse.close();
  await server.stop();
}, 120_000);

test("bun run setup and roles alone are real, and refuse the demo's store with status 1", async () => {
  await fill(true, DEMO);
  const path = join(root, "setup.json");
  await writeFile(path, JSON.stringify(testSetup()));
  for (const command of [
    ["bun", "cli/main.ts", "setup", path],
    ["bun", "api/main.ts"],
  ]) {
    const { errors, status } = await outcomeOf(startCommand(command, { DATA_DIR: dataDir }));
    expect([status, errors.split("\n").length]).toEqual([1, 2]);
    expect(errors).toContain("holds the demo's data");
  }
}, 300_000);

test("without DATA_DIR the demo has a folder of its own, which a second demo is refused", async () => {
  const own = join(dataDir, ".data", "demo");
  await mkdir(own, { recursive: true });
  const first = tryLock(join(own, "demo.lock"), "a");
  const command = [process.execPath, join(process.cwd(), "cli", "main.ts"), "start"];
  const { errors, status } = await outcomeOf(startCommand(command, {}, { cwd: dataDir }));
  first?.release();
  expect(status).toBe(1);
  expect(errors).toContain(`The demo is running on ${await realpath(own)}`);
});

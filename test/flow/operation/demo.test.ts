/** The demo as a newcomer starts it: every page of the panel has something to show, and what it shows is plausible. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createLog } from "#core/platform/process/log.ts";
import { startEmbeddedRedis } from "#core/platform/redis/embedded/embedded.ts";
import { DEMO_COURIERS } from "#demo/couriers.ts";
import { DEMO_CHANNELS } from "#demo/demo-setup.ts";
import { BENCHMARK_PLACES, PLACES } from "#demo/places.ts";
import { request } from "#test/support/clients/merchant.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { areReady } from "#test/support/product/product.ts";
import { freePort } from "#test/support/servers/free-port.ts";

const PROGRAM = resolve("cli/main.ts");
const START_LIMIT_MS = 120_000;
const COURIERS = DEMO_COURIERS.map(({ code }) => code);
const [{ cap: CAP }] = BENCHMARK_PLACES;
/** What a scan takes until it is told: neither at once nor hours later. */
const DELAY_SECONDS = { least: 30, most: 3 * 3_600 };

let folder: string;
let panel: string;
let env: Readonly<Record<string, string>>;
let operator: Readonly<Record<string, string>>;
let demo: ReturnType<typeof startCommand>;
let output: Promise<string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-demo-"));
  const port = await freePort();
  panel = `http://127.0.0.1:${port}`;
  env = { PANEL_PORT: String(port), MIMALLOC_PURGE_DELAY: "60000" };
  const own = { ...env, LOG_LEVEL: "info", DRAIN_SECONDS: "" };
  demo = startCommand(["bun", PROGRAM, "start"], own, { cwd: folder });
  output = new Response(demo.stdout).text();
  await eventually(() => areReady([panel]), "the demo is ready", START_LIMIT_MS);
  const token = await readFile(join(folder, ".data", "demo", "secrets", "panel-token"), "utf8");
  operator = { authorization: `Bearer ${token.trim()}` };
}, START_LIMIT_MS);

afterAll(async () => {
  demo?.kill("SIGTERM");
  await demo?.exited;
  await rm(folder, { recursive: true, force: true });
}, 300_000);

// biome-ignore lint/suspicious/noExplicitAny: answers of many calls, looked at member by member
async function get(path: string): Promise<any> {
  const { status, body } = await request("GET", `${panel}/panel/api${path}`, undefined, operator);
  expect([path, status]).toEqual([path, 200]);
  return body;
}

/** The answer once it is as the demo's data make it. */
function once<T>(path: string, isThere: (body: T) => boolean): Promise<T> {
  const answer = async () => {
    const body = (await get(path)) as T;
    return isThere(body) ? body : null;
  };
  return eventually(answer, path, START_LIMIT_MS, 200) as Promise<T>;
}

// biome-ignore lint/suspicious/noExplicitAny: see get()
type Row = Record<string, any>;
interface Rows {
  readonly items: readonly Row[];
}
interface Trace {
  readonly events: readonly Row[];
}
const hasRows = ({ items }: Rows) => items.length > 0;
const each = ({ items }: Rows, name: string) => [...new Set(items.map((one) => one[name]))].sort();

test("imports have ended, each with the lines that were faulty", async () => {
  const isOver = ({ items }: Rows) =>
    items.length >= DEMO_CHANNELS.length && items.every(({ state }) => state === "completed");
  const jobs = await once<Rows>("/jobs", isOver);
  expect(each(jobs, "channelCode")).toEqual(DEMO_CHANNELS.map(({ code }) => code).sort());
  for (const { failedItems, processedItems, totalItems } of jobs.items) {
    expect([processedItems, failedItems]).toEqual([totalItems, 2]);
  }
}, 300_000);

test("the overview has traffic, stores that answer, and books that balance", async () => {
  interface Overview {
    readonly rates: { readonly appliedPerSecond: number };
    readonly ledger: { readonly sent: number };
  }
  const isAlive = ({ rates, ledger }: Overview) => rates.appliedPerSecond > 0 && ledger.sent > 0;
  const overview = await once<Overview>("/overview", isAlive);
  expect(overview).toMatchObject({
    ledger: { failed: 0, difference: { received: 0 } },
    stores: { redis: { ready: true }, clickhouse: { ready: true } },
  });
}, 300_000);

test("shipments of every channel have a timeline", async () => {
  for (const company of ["aurora", "tirreno"]) {
    const path = `/shipments?companyCode=${company}&status=DELIVERED`;
    const { items } = await once<Rows>(path, hasRows);
    const isTold = ({ events }: Trace) =>
      events.length > 2 && events.some((one) => one["decisions"].length > 0);
    await once<Trace>(`/shipments/${items[0]?.["id"]}/trace`, isTold);
  }
}, 300_000);

test("every channel has an endpoint with a day of attempts, one of which fails now and then", async () => {
  const failing: string[] = [];
  for (const { code } of DEMO_CHANNELS) {
    const { items } = (await get(`/channels/${code}/webhooks`)) as Rows;
    const { total, hours } = await get(`/webhooks/${items[0]?.["endpointId"]}/stats`);
    expect(hours.length).toBeGreaterThanOrEqual(23);
    expect(total.successRate).toBeGreaterThan(0.75);
    if (total.successRate < 0.98) failing.push(code);
    const log = `/webhooks/${items[0]?.["endpointId"]}/deliveries`;
    await once<Rows>(log, hasRows);
  }
  expect(failing).toEqual(["aurora-market"]);
}, 300_000);

test("couriers report with plausible delays, and have codes that are not mapped and one that was", async () => {
  const quality = await once<Rows>(
    "/analytics/quality?days=30",
    ({ items }) =>
      items.some(({ unmappedShare }) => unmappedShare > 0) && items.length === COURIERS.length,
  );
  expect(each(quality, "courier")).toEqual(COURIERS.toSorted());
  for (const { delayP50, delayP95 } of quality.items) {
    expect(delayP50).toBeGreaterThan(DELAY_SECONDS.least);
    expect(delayP95).toBeLessThan(DELAY_SECONDS.most);
  }
  const mapped = await once<Rows>("/couriers/POSTE_ITA/remaps", ({ items }) =>
    items.some(({ state }) => state === "done"),
  );
  expect(mapped.items[0]?.["progress"].events).toBeGreaterThan(0);
  const others = COURIERS.filter((code) => code !== "POSTE_ITA").toSorted();
  const unmapped = await once<Rows>(
    "/unmapped-codes",
    (rows) =>
      Bun.deepEquals(each(rows, "courier"), others) &&
      rows.items.some(({ suggestion }) => suggestion !== null),
  );
  expect(unmapped.items.every(({ parcels }) => parcels > 0)).toBe(true);
}, 300_000);

test("the benchmarks have a year of months, every province, a lane with intervals, and weights", async () => {
  const trend = await once<Rows>("/analytics/trend", hasRows);
  expect(each(trend, "courier")).toEqual(COURIERS.toSorted());
  expect(each(trend, "month").length).toBeGreaterThanOrEqual(12);
  const provinces = (await get("/analytics/provinces")) as Rows;
  expect(provinces.items.length).toBeGreaterThanOrEqual(PLACES.length - 1);
  for (const path of [`/analytics/lane?destCap=${CAP}`, `/analytics/weights?destCap=${CAP}`]) {
    const { items } = (await get(path)) as Rows;
    // A row of few deliveries has a median without an interval.
    const shown = items.filter(({ leadMedianInterval }) => leadMedianInterval !== null);
    expect([path, shown.length >= COURIERS.length]).toEqual([path, true]);
    for (const { leadMedian, leadMedianInterval } of shown) {
      expect(leadMedianInterval.low).toBeLessThanOrEqual(leadMedian);
      expect(leadMedianInterval.high).toBeGreaterThanOrEqual(leadMedian);
    }
  }
}, 300_000);

describe("the rest", () => {
  test("companies, accounts, the audit log and the bill have rows, and the stores nothing to change", async () => {
    expect(each(await get("/companies"), "code")).toEqual(["aurora", "tirreno"]);
    const accounts = await once<Rows>("/accounts", ({ items }) => items.length >= 6);
    expect(each(accounts, "kind")).toEqual(["company", "courier", "operator"]);
    await once<Rows>("/audit", ({ items }) => items.some(({ actor }) => actor?.includes("@")));
    const { total } = await once<{ total: number }>(
      "/channels/aurora-shop/address-checks",
      (checks) => checks.total > 0,
    );
    expect(total).toBe(8);
    const findings = (await get("/doctor")) as { readonly ok: boolean }[];
    expect(findings.filter(({ ok }) => !ok)).toEqual([]);
  }, 300_000);

  test("nothing is stuck: there is no dead letter, as our code has processed everything", async () => {
    expect((await get("/dead-letters")).items).toEqual([]);
  });
});

describe("a command that is told of no store", () => {
  const run = (...args: string[]) =>
    outcomeOf(startCommand(["bun", PROGRAM, ...args], env, { cwd: folder }));
  const data = () => join(folder, ".data");

  test("examines and asks the demo where that alone is running, and says so", async () => {
    // What an earlier start with real data has left.
    await mkdir(join(data(), "secrets"), { recursive: true });
    await writeFile(join(data(), "secrets", "panel-token"), "of-another-store");
    for (const name of ["doctor", "slots"]) {
      const { output, errors } = await run(name);
      expect([name, errors]).toEqual([name, ""]);
      expect(output).toStartWith(
        "This is the demo's store, in .data/demo: nothing else is running.",
      );
    }
    expect((await run("slots", "--json")).errors).toStartWith("This is the demo's store");
    expect((await run("sql", "SELECT 40 + 2 AS n", "--format", "csv")).output).toContain("42");
    expect(await run("archive", "--status")).toMatchObject({ status: 0, errors: "" });
    expect(existsSync(join(data(), "redis"))).toBe(false);
  }, 300_000);

  test("backs up neither before it has been told which", async () => {
    const refused = await run("backup", "copy");
    expect([refused.status, refused.errors]).toEqual([
      1,
      expect.stringContaining("set DATA_DIR=.data/demo"),
    ]);
    expect([existsSync(join(folder, "copy")), existsSync(join(data(), "redis"))]).toEqual([
      false,
      false,
    ]);
  }, 300_000);

  test("examines the store of real data where that is running too, and says how to examine the demo's", async () => {
    const own = await startEmbeddedRedis(data(), createLog("silent"));
    const { output } = await run("doctor").finally(own.stop);
    expect(output).toMatch(/^This is the store in \S*\.data\. .*DATA_DIR=\.data\/demo/);
  }, 300_000);
});

test("a signal stops it without a drain", async () => {
  demo.kill("SIGTERM");
  expect(await output).toContain('"msg":"stopping"');
  expect(await output).not.toContain('"msg":"draining"');
});

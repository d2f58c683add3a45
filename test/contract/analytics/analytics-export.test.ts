/** The scheduled export: one Parquet file for each day and table, written again when the day changes. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetMetadata } from "hyparquet";
import {
  EXPIRING_DAYS,
  exportDays,
  MANIFEST,
  type Manifest,
  readManifest,
} from "#analytics/export/export-days.ts";
import { type ExportTarget, openTarget } from "#analytics/export/open-target.ts";
import { startExport } from "#analytics/export/start.ts";
import { startAnalytics } from "#analytics/main.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { ConfigFaults, readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { EXPORT_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { LockLost, takeLock } from "#core/platform/redis/lock.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";
import { startObjectStore } from "#test/support/servers/object-store.ts";
import { CLICKHOUSE_KINDS } from "#test/support/servers/servers.ts";

const log = createLog("silent");
const DAY_MS = 86_400_000;
/** The real time: ClickHouse drops attempts past their retention by its own clock. */
const NOW_MS = Date.now();
const dayOf = (ago: number) => daysAgo(ago, NOW_MS);
const RETENTION = { eventRetentionMonths: 24, attemptRetentionDays: 90 };

function delivery(shipmentId: number, deliveredOn: string, version = 1, removed = 0) {
  return {
    shipment_id: shipmentId,
    company: "0123456789abcdef",
    channel: "fedcba9876543210",
    courier: "GLS_ITA",
    dest_cap: "00184",
    origin_cap: "",
    origin_area: "",
    weight_kg: null,
    weight_band: "",
    ship_date: "2026-11-01",
    delivered_on: deliveredOn,
    lead_days: 2,
    transit_days: null,
    attempts: 1,
    exceptions: 0,
    is_return: false,
    version,
    removed,
  };
}

function attempt(at: string) {
  return {
    endpoint_id: "wh_1",
    channel: "fedcba9876543210",
    delivery_id: at,
    event_id: "e",
    generation: 1,
    attempt: 1,
    at,
    http_status: 200,
    error: "",
    latency_ms: 5,
    outcome: "DELIVERED",
  };
}

describe.each(CLICKHOUSE_KINDS)("the export, ClickHouse: %s", (kind) => {
  let store: TestClickhouse;
  let reader: TestClickhouse["writer"];
  let folder: string;
  let target: ExportTarget;

  beforeAll(async () => {
    store = await openTestClickhouse(kind);
    reader = store.writer;
  });

  afterAll(() => store?.end());

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-lake-"));
    target = openTarget({ ...store.config, exportTo: folder });
    for (const table of ["deliveries", "events", "event_outcomes", "attempts"]) {
      await store.writer.command({ query: `TRUNCATE TABLE ${table}` });
    }
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function pass(
    nowMs = NOW_MS,
    into = target,
    assertHeld: () => Promise<void> = async () => {},
  ) {
    const deps = { clickhouse: store.writer, target: into, config: RETENTION, assertHeld };
    const manifest = await readManifest({ target: into, log });
    return exportDays({ ...deps, isStopping: () => false }, manifest, nowMs);
  }

  const insert = (table: string, values: unknown[]) =>
    store.writer.insert({ table, values, format: "JSONEachRow" });

  const pathOf = (table: string, day: string) =>
    join(folder, table, `day=${day}`, `${table}.parquet`);

  async function rowsOf(path: string): Promise<Record<string, unknown>[]> {
    const query = `SELECT * FROM file('${path}', Parquet) ORDER BY 1, 2`;
    return (await reader.query({ query, format: "JSONEachRow" })).json();
  }

  test("texts are texts in its files, those of a fixed length too, and what is computed is there", async () => {
    await insert("deliveries", [delivery(1, "2026-11-03")]);
    await pass();
    const file = await Bun.file(pathOf("deliveries", "2026-11-03")).arrayBuffer();
    const columns = new Map(parquetMetadata(file).schema.map((one) => [one.name, one]));
    for (const name of ["company", "dest_cap", "courier"]) {
      expect([name, columns.get(name)?.converted_type]).toEqual([name, "UTF8"]);
    }
    expect(columns.get("is_evidence")?.type).toBe("BOOLEAN");
  });

  test("a month of returns alone has no figures in courier_performance: NULL, not 0", async () => {
    await insert("deliveries", [{ ...delivery(1, "2026-11-03"), is_return: true }]);
    const query = "SELECT * FROM courier_performance";
    const answer = await reader.query({ query, format: "JSONEachRow" });
    expect(await answer.json()).toMatchObject([
      {
        deliveries: 0,
        returns: 1,
        lead_median: null,
        lead_mean: null,
        lead_p90: null,
        first_attempt_share: null,
        exception_share: null,
      },
    ]);
  });

  test("writes what a table has of each day, and readers of Parquet find the same rows", async () => {
    await insert("deliveries", [
      delivery(1, "2026-11-03"),
      delivery(2, "2026-11-03"),
      delivery(3, "2026-11-04"),
    ]);
    await insert("attempts", [
      attempt(`${dayOf(1)} 23:59:59.999`),
      attempt(`${dayOf(0)} 00:00:00`),
    ]);
    expect(await pass()).toBe(4);
    expect(await rowsOf(pathOf("deliveries", "2026-11-03"))).toMatchObject([
      { shipment_id: 1, company: "0123456789abcdef", courier: "GLS_ITA", dest_cap: "00184" },
      { shipment_id: 2, transit_days: null, lead_days: 2, is_return: false },
    ]);
    expect(await rowsOf(pathOf("deliveries", "2026-11-04"))).toHaveLength(1);
    expect(await rowsOf(pathOf("attempts", dayOf(0)))).toHaveLength(1);
  });

  test("a day that has not changed is not written again, and one that has is: corrected, moved or emptied", async () => {
    const days = ["2026-11-03", "2026-11-04", "2026-11-05", "2026-11-06"];
    await insert(
      "deliveries",
      days.map((day, at) => delivery(at + 1, day)),
    );
    expect(await pass()).toBe(4);
    expect(await pass(NOW_MS + DAY_MS)).toBe(0);
    const inode = async () => (await stat(pathOf("deliveries", "2026-11-03"))).ino;
    const before = await inode();
    await insert("deliveries", [
      { ...delivery(2, "2026-11-04", 2), attempts: 3 },
      delivery(3, "2026-11-06", 2),
    ]);
    expect(await pass(NOW_MS + DAY_MS)).toBe(3);
    expect(await inode()).toBe(before);
    expect(await rowsOf(pathOf("deliveries", "2026-11-04"))).toMatchObject([{ attempts: 3 }]);
    expect(await rowsOf(pathOf("deliveries", "2026-11-05"))).toEqual([]);
    expect(await rowsOf(pathOf("deliveries", "2026-11-06"))).toHaveLength(2);
    expect(await pass(NOW_MS + DAY_MS)).toBe(0);
  });

  test("rows at the end of their retention leave ClickHouse and stay in the lake", async () => {
    const last = RETENTION.attemptRetentionDays - EXPIRING_DAYS;
    await insert("attempts", [
      attempt(`${dayOf(last)} 23:00:00`),
      attempt(`${dayOf(last + 1)} 23:00:00`),
    ]);
    expect(await pass()).toBe(1);
    await store.writer.command({ query: "TRUNCATE TABLE attempts" });
    expect(await pass(NOW_MS + DAY_MS)).toBe(0);
    expect(await rowsOf(pathOf("attempts", dayOf(last)))).toHaveLength(1);
  });

  test("a pass that is cut short is repeated by the next one, and a torn manifest exports everything", async () => {
    await insert("deliveries", [delivery(1, "2026-11-03"), delivery(2, "2026-11-04")]);
    let files = 0;
    const lost = async () => {
      files += 1;
      if (files === 2) throw new LockLost();
    };
    await expect(pass(NOW_MS, target, lost)).rejects.toThrow(LockLost);
    expect(await pass()).toBe(2);
    const manifest: Manifest = JSON.parse(await readFile(join(folder, MANIFEST), "utf8"));
    expect(manifest.finishedAtMs).toBe(NOW_MS);
    await Bun.write(join(folder, MANIFEST), '{"version":1,"tab');
    expect(await pass()).toBe(2);
  });

  test("the same files go to an S3-compatible store, signed, under their prefix", async () => {
    await insert("deliveries", [delivery(1, "2026-11-03")]);
    const bucket = startObjectStore("the-key");
    const s3 = { endpoint: bucket.url, region: "eu-south-1", accessKeyId: "the-key" };
    const into = openTarget({
      ...store.config,
      exportTo: "s3://lake/waybill/",
      s3: { ...s3, secretAccessKey: "the-secret" },
    });
    expect(await pass(NOW_MS, into)).toBe(1);
    expect(await pass(NOW_MS, into)).toBe(0);
    const names = ["lake/waybill/deliveries/day=2026-11-03/deliveries.parquet"];
    expect([...bucket.objects.keys()].sort()).toEqual([...names, `lake/waybill/${MANIFEST}`]);
    const local = join(folder, "fetched.parquet");
    await Bun.write(local, bucket.objects.get(names[0] ?? "") ?? "");
    expect(await rowsOf(local)).toMatchObject([{ shipment_id: 1 }]);
    const stranger = openTarget({
      ...store.config,
      exportTo: "s3://lake/waybill",
      s3: { ...s3, accessKeyId: "another", secretAccessKey: "the-secret" },
    });
    await expect(pass(NOW_MS, stranger)).rejects.toThrow("AccessDenied");
    await bucket.stop();
  });
});

describe("the schedule", () => {
  test("the analytics role exports when the latest export is old enough, one process at a time", async () => {
    const folder = await mkdtemp(join(tmpdir(), "waybill-lake-"));
    const env = { EXPORT_TO: folder, EXPORT_EVERY_MINUTES: "60" };
    const runtime = await openTestRuntime(testSetup(), env);
    const finishedAt = async (): Promise<number> => {
      const text = await readFile(join(folder, MANIFEST), "utf8").catch(() => "{}");
      return JSON.parse(text).finishedAtMs ?? 0;
    };
    const analytics = await startAnalytics(runtime);
    const first = await eventually(finishedAt, "the first export has ended");
    /** Its first look has ended when it has stopped. */
    const look = async () => {
      await startExport(runtime)?.stop();
      return finishedAt();
    };
    await advanceClock(runtime.redis, 59 * 60);
    await runtime.live.refresh();
    expect(await look()).toBe(first);
    await advanceClock(runtime.redis, 60);
    await runtime.live.refresh();
    const other = await takeLock(runtime.redis, EXPORT_LOCK_KEY, {
      leaseMs: 60_000,
      waitLimitMs: 60_000,
    });
    expect(await look()).toBe(first);
    await other?.release();
    await eventually(async () => (await look()) > first, "the second export has ended");
    await analytics.stop();
    await runtime.end();
    await rm(folder, { recursive: true, force: true });
  });

  test("a target without its keys, or that is none, stops the start", () => {
    const faultsOf = (env: Record<string, string>): readonly string[] => {
      try {
        readConfig(env);
        return [];
      } catch (error) {
        return error instanceof ConfigFaults ? error.faults : [];
      }
    };
    expect(faultsOf({ EXPORT_TO: "s3://lake/x" })).toEqual([
      "EXPORT_TO: needs AWS_ACCESS_KEY_ID.",
      "EXPORT_TO: needs AWS_SECRET_ACCESS_KEY.",
    ]);
    expect(faultsOf({ EXPORT_TO: "gs://lake" })).toHaveLength(1);
    const keys = { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" };
    expect(faultsOf({ EXPORT_TO: "s3://lake", ...keys })).toEqual([]);
  });
});

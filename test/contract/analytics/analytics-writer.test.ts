/** The change log's way into ClickHouse: batches, redelivery, refusals, outage. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { applySchema, TABLE_NAMES, VERSION_VIEW } from "#analytics/clickhouse/apply-schema.ts";
import { startAnalytics } from "#analytics/main.ts";
import { benchmarkHandler } from "#analytics/write/write-batches.ts";
import type { EventRow } from "#core/benchmarks/rules/event-row.ts";
import type { Handler, LogItem } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { companyKeys } from "#core/platform/redis/keys.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { decodeChangeEntry, encodeChange } from "#core/shipments/store/change-log.ts";
import {
  deliveredShipment,
  deliveredShipments,
  laneEntry,
  laneFields,
} from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";
import { CLICKHOUSE_KINDS } from "#test/support/servers/servers.ts";

const NOW_MS = Date.parse("2026-11-20T12:00:00+01:00");
const AWAY = "http://127.0.0.1:1";

function question(destCap: string) {
  return { destCap, originCap: null, weightKg: null, couriers: ["GLS_ITA"], nowMs: NOW_MS };
}

describe.each(CLICKHOUSE_KINDS)("the handler, ClickHouse: %s", (kind) => {
  let store: TestClickhouse;
  let handle: Handler;

  beforeAll(async () => {
    store = await openTestClickhouse(kind);
    handle = benchmarkHandler({
      clickhouse: async () => store.writer,
      forget: async () => {},
      mac: (text) => Bun.hash(text).toString(16).padStart(16, "0"),
    });
  });

  afterAll(() => store.end());

  async function rowsOf(destCap: string): Promise<Record<string, unknown>[]> {
    const answer = await store.writer.query({
      query:
        "SELECT * FROM deliveries FINAL WHERE dest_cap = {destCap:String} ORDER BY shipment_id",
      query_params: { destCap },
      format: "JSONEachRow",
    });
    return answer.json();
  }

  test("a row says lane, days and trouble, and company and channel only as keyed hashes", async () => {
    const row = deliveredShipment({
      shipmentId: 42,
      destCap: "10121",
      originCap: "80121",
      weightKg: 2.5,
      transitDays: 1,
      attempts: 2,
      exceptions: 1,
      plannedOn: "2026-09-02",
    });
    expect(await handle([laneEntry(row)])).toEqual([]);
    expect(await rowsOf("10121")).toEqual([
      {
        shipment_id: 42,
        company: expect.stringMatching(/^[0-9a-f]{16}$/),
        channel: expect.stringMatching(/^[0-9a-f]{16}$/),
        courier: "GLS_ITA",
        dest_cap: "10121",
        origin_cap: "80121",
        origin_area: "SUD",
        weight_kg: 2.5,
        weight_band: "1-3",
        ship_date: "2026-09-01",
        delivered_on: "2026-09-03",
        lead_days: 2,
        transit_days: 1,
        attempts: 2,
        exceptions: 1,
        is_return: false,
        planned_on: "2026-09-02",
        version: 1,
        removed: 0,
      },
    ]);
  });

  test("a fact's row has each member in its column, and its instants to the millisecond, as far as a column holds them", async () => {
    const fact: EventRow = {
      key: "fact-1",
      courier: "GLS_ITA",
      code: 'A"B\t\\C',
      reasonCode: "R'7\n",
      occurredAtMs: Date.UTC(2026, 10, 2, 8) + 7,
      receivedAtMs: Date.UTC(2026, 10, 2, 9),
      messageIndex: 3,
      status: "DELIVERED",
      detail: 100,
      terminal: true,
      outOfOrder: true,
      isReturn: true,
      destCap: "10129",
      originCap: "80121",
      weightKg: 2.5,
      shipDate: "2026-10-30",
      estimatedOn: "2026-11-03",
      version: 9,
      messageId: "message-1",
    };
    const clocks = [5, -1, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
    const others = clocks.map((occurredAtMs, at) => ({
      ...fact,
      key: `clock-${at}`,
      occurredAtMs,
    }));
    expect(await handle([factEntry(43, [fact, ...others])])).toEqual([]);
    const answer = await store.writer.query({
      query: "SELECT * FROM events WHERE shipment_id = 43 ORDER BY fact_key",
      format: "JSONEachRow",
    });
    const rows = await answer.json<Record<string, unknown>>();
    expect(rows.map((row) => row["occurred_at"])).toEqual([
      "1970-01-01 00:00:00.005",
      "1969-12-31 23:59:59.999",
      "1900-01-01 00:00:00.000",
      "2299-12-31 00:00:00.000",
      "2026-11-02 08:00:00.007",
    ]);
    expect(rows.at(-1)).toEqual({
      shipment_id: 43,
      fact_key: "fact-1",
      courier: "GLS_ITA",
      company: expect.stringMatching(/^[0-9a-f]{16}$/),
      channel: expect.stringMatching(/^[0-9a-f]{16}$/),
      code: 'A"B\t\\C',
      reason_code: "R'7\n",
      occurred_at: "2026-11-02 08:00:00.007",
      received_at: "2026-11-02 09:00:00.000",
      place: 3,
      status: "DELIVERED",
      status_detail: 100,
      terminal: true,
      out_of_order: true,
      is_return: true,
      dest_cap: "10129",
      origin_cap: "80121",
      weight_kg: 2.5,
      ship_date: "2026-10-30",
      estimated_on: "2026-11-03",
      version: 9,
      message_id: "message-1",
    });
  });

  test("an entry that is neither a creation nor a change, or a number that is none, fails alone", async () => {
    const none: LogItem = { key: "{k1}:changes", id: "1-2", fields: { s: "1" } };
    const faulty = [
      none,
      laneEntry(deliveredShipment({ shipmentId: 60, destCap: "10130", attempts: 1.5 })),
      laneEntry(deliveredShipment({ shipmentId: Number.NaN, destCap: "10130" })),
    ];
    const failures = await handle([...faulty, laneEntry(deliveredShipment({ destCap: "10130" }))]);
    expect(failures.map(({ entry }) => entry)).toEqual(faulty);
    expect(await rowsOf("10130")).toHaveLength(1);
  });

  test("a batch sent again counts once", async () => {
    const batch = deliveredShipments(30, (at) => ({ shipmentId: 100 + at, destCap: "10122" })).map(
      laneEntry,
    );
    await handle(batch);
    await handle(batch);
    expect(await rowsOf("10122")).toHaveLength(30);
  });

  test("a batch whose insert ClickHouse has recorded without its rows is written, also in a table that an earlier version made", async () => {
    const alter = (change: string) =>
      store.writer.command({ query: `ALTER TABLE deliveries ${change}` });
    await alter("MODIFY SETTING non_replicated_deduplication_window = 1000");
    const batch = deliveredShipments(30, (at) => ({ shipmentId: 150 + at, destCap: "10125" })).map(
      laneEntry,
    );
    await handle(batch);
    await alter("DELETE WHERE dest_cap = '10125' SETTINGS mutations_sync = 2");
    await handle(batch);
    expect(await rowsOf("10125")).toHaveLength(30);
  });

  test("a row is on disk when its insert is confirmed, also in a table that an earlier version made", async () => {
    const syncs = async () => {
      const answer = await store.writer.query({
        query:
          "SELECT sum(value) AS n FROM system.events WHERE event IN ('FileSync', 'DirectorySync')",
        format: "JSONEachRow",
      });
      const [row] = await answer.json<{ n: number | string }>();
      return Number(row?.n);
    };
    const syncsOf = async (shipmentId: number) => {
      const before = await syncs();
      await handle([laneEntry(deliveredShipment({ shipmentId, destCap: "10126" }))]);
      return (await syncs()) - before;
    };
    const reset = (table: string) =>
      store.writer.command({
        query: `ALTER TABLE ${table} RESET SETTING fsync_after_insert, fsync_part_directory`,
      });
    for (const table of TABLE_NAMES) await reset(table);
    await store.writer.command({ query: `DROP VIEW ${VERSION_VIEW}` });
    expect(await syncsOf(400)).toBe(0);
    await applySchema(store.writer, store.config);
    expect(await syncsOf(401)).toBeGreaterThan(2);
    const answer = await store.writer.query({
      query: `SELECT name FROM system.tables WHERE database = currentDatabase()
              AND engine_full LIKE '%fsync_after_insert = 1, fsync_part_directory = 1%' ORDER BY name`,
      format: "JSONEachRow",
    });
    const durable = await answer.json<{ name: string }>();
    expect(durable.map(({ name }) => name)).toEqual(TABLE_NAMES.toSorted());
  });

  test("entries without a lane are done and write nothing", async () => {
    const created: LogItem = { key: "{k1}:changes", id: "1-1", fields: { s: "1", created: "{}" } };
    expect(await handle([created])).toEqual([]);
  });

  test("a row that ClickHouse refuses fails alone and all others are written", async () => {
    const rows = deliveredShipments(50, (at) => ({ shipmentId: 200 + at, destCap: "10123" }));
    const entries = rows.map(laneEntry);
    const faulty = [
      laneEntry(deliveredShipment({ shipmentId: 300, destCap: "10123-toolong" })),
      laneEntry(
        deliveredShipment({ shipmentId: 301, destCap: "10123", deliveredOn: "never", leadDays: 1 }),
      ),
      laneEntry(deliveredShipment({ shipmentId: 302, destCap: "10123", leadDays: Number.NaN })),
      laneEntry(deliveredShipment({ shipmentId: 303, destCap: "10123", version: 0 })),
      { key: "{k1}:changes", id: "9-9", fields: { s: "5", change: "{" } },
    ];
    const batch = [...entries.slice(0, 10), ...faulty, ...entries.slice(10)];
    const failures = await handle(batch);
    expect(failures.map(({ entry }) => entry).sort(byId)).toEqual(faulty.toSorted(byId));
    expect(failures.every(({ reason }) => reason.length > 0)).toBe(true);
    expect(await rowsOf("10123")).toHaveLength(50);
  });

  test("more rows than one insert takes go in several", async () => {
    const rows = deliveredShipments(12_000, (at) => ({ shipmentId: 1_000 + at, destCap: "10124" }));
    expect(await handle(rows.map(laneEntry))).toEqual([]);
    expect(await rowsOf("10124")).toHaveLength(12_000);
  });

  test("ClickHouse away is Unavailable, never a failure of an entry", async () => {
    const away = benchmarkHandler({
      clickhouse: () => Promise.reject(new Error("connect ECONNREFUSED")),
      forget: async () => {},
      mac: (text) => text,
    });
    await expect(away([laneEntry(deliveredShipment({}))])).rejects.toBeInstanceOf(Unavailable);
  });

  test("tables that are gone are made again with the next try", async () => {
    let forgotten = 0;
    const gone = benchmarkHandler({
      clickhouse: async () => store.writer,
      forget: async () => {
        forgotten += 1;
      },
      mac: (text) => text.padEnd(16, ".").slice(0, 16),
    });
    await store.writer.command({ query: "RENAME TABLE deliveries TO deliveries_away" });
    expect(await gone([laneEntry(deliveredShipment({}))]).catch((error) => error)).toBeInstanceOf(
      Unavailable,
    );
    expect(forgotten).toBe(1);
    await store.writer.command({ query: "RENAME TABLE deliveries_away TO deliveries" });
  });
});

function factEntry(shipmentId: number, events: readonly EventRow[]): LogItem {
  const entry = laneEntry(deliveredShipment({ shipmentId }));
  const decoded = decodeChangeEntry(entry.fields);
  if (decoded.type === "created") throw new Error("not a change");
  const change = encodeChange({ ...decoded.change, lane: null, events });
  return { ...entry, fields: { ...entry.fields, change } };
}

function byId(one: LogItem, other: LogItem): number {
  return one.id.localeCompare(other.id);
}

describe("the role", () => {
  let runtime: TestRuntime;
  let benchmarks: Benchmarks;

  beforeAll(async () => {
    runtime = await openTestRuntime(testSetup(), { LOG_LEVEL: "silent" });
  });

  afterAll(async () => {
    await benchmarks?.close();
    await runtime.end();
  });

  const { changes } = companyKeys(0);

  async function unacknowledged(): Promise<number> {
    const lags = await readLags(runtime.redis);
    return lags.find(({ log, group }) => log === "change" && group === "analytics")?.entries ?? 0;
  }

  test("ClickHouse away: the start succeeds and every row waits; once it is there, all of them count", async () => {
    const rows = deliveredShipments(25, (at) => ({ shipmentId: 1 + at, destCap: "10125" }));
    for (const row of rows) await runtime.redis.xAdd(changes, "*", laneFields(row));
    const away = await startAnalytics({
      ...runtime,
      config: { ...runtime.config, clickhouseUrl: AWAY },
    });
    await eventually(
      async () => (await runtime.redis.xPending(changes, "analytics")).pending > 0,
      "the consumer holds the batch",
    );
    await away.stop();
    expect(await unacknowledged()).toBe(25);

    const back = await startAnalytics(runtime);
    await eventually(async () => (await unacknowledged()) === 0, "the backlog drains");
    benchmarks = await openBenchmarks(runtime.config);
    const [answer] = await benchmarks.deliveryTimes(question("10125"));
    expect(answer).toMatchObject({ status: "ok", sampleSize: 25, leadMedian: 2 });
    await back.stop();
  });

  test("what was written is there after a restart, and reading goes on while the writer is closed", async () => {
    const again = await startAnalytics(runtime);
    await runtime.redis.xAdd(
      changes,
      "*",
      laneFields(deliveredShipment({ shipmentId: 99, destCap: "10125" })),
    );
    await eventually(
      async () => (await benchmarks.deliveryTimes(question("10125")))[0]?.sampleSize === 26,
      "the new delivery counts",
    );
    await again.stop();
    expect((await benchmarks.deliveryTimes(question("10125")))[0]?.sampleSize).toBe(26);
  });

  test("the embedded folder lies under DATA_DIR", async () => {
    expect(await Bun.file(join(runtime.config.dataDir, "clickhouse", "status")).exists()).toBe(
      true,
    );
  });
});

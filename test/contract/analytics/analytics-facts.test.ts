/** Facts in ClickHouse: each applied fact one row in effect, no personal data, corrected when its mapping is. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { drainCounts } from "#analytics/write/drain-counts.ts";
import { benchmarkHandler } from "#analytics/write/write-batches.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { readCourierCounts } from "#core/events/store/courier-counts.ts";
import type { LogItem } from "#core/platform/log/consumer.ts";
import { logEntry } from "#core/platform/log/log-entry.ts";
import { changeLogs } from "#core/platform/redis/keys.ts";
import { splitChanges } from "#core/shipments/store/change-log.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { seededRandom } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";
import { CLICKHOUSES } from "#test/support/servers/servers.ts";

describe.each(CLICKHOUSES)("ClickHouse: %s", (kind) => {
  let product: TestAnalytics;
  /** Every change log entry there ever was: the log itself is trimmed. */
  const entries: LogItem[] = [];

  beforeAll(async () => {
    product = await openTestAnalytics(testSetup(), kind);
    const { redis } = product.runtime;
    // A group that acknowledges nothing keeps every entry in its log.
    for (const key of changeLogs())
      await redis.xGroupCreate(key, "keeper", "0", { MKSTREAM: true });
  });

  afterAll(() => product?.end());

  test("the settings doctor finds nothing to change, and names a table of the archive that would count a repeated insert twice", async () => {
    const all = (await product.call("GET", "/panel/api/doctor")).body;
    expect(all.filter(({ ok }: { ok: boolean }) => !ok)).toEqual([]);
    const codes = all.map(({ code }: { code: string }) => code);
    expect(codes).toContain("clickhouse-deduplication");
    const writer = await openClickhouse(product.runtime.config, "write");
    const setting = "non_replicated_deduplication_window";
    try {
      await writer.command({ query: `ALTER TABLE archived_index MODIFY SETTING ${setting} = 0` });
      const wrong = (await product.call("GET", "/panel/api/doctor")).body;
      expect(wrong.filter(({ ok }: { ok: boolean }) => !ok)).toMatchObject([
        { code: "clickhouse-deduplication", found: "no window: archived_index" },
      ]);
    } finally {
      await writer.command({
        query: `ALTER TABLE archived_index MODIFY SETTING ${setting} = 1000`,
      });
      await writer.close();
    }
  });

  async function collectEntries(): Promise<void> {
    entries.length = 0;
    for (const key of changeLogs()) {
      const found = await product.runtime.redis.xRange(key, "-", "+");
      for (const { id, message } of found ?? []) {
        entries.push(...logEntry(key, id, message, splitChanges).items);
      }
    }
  }

  const CODES = ["INF", "DEP", "TRN", "OUT", "HLD", "DLV", "XYZ"];
  const TEXT = "Consegnata a Mario Rossi, tel 333 1234567";

  interface Sent {
    readonly shipmentId: number;
    readonly code: string;
    readonly occurredAtMs: number;
    /** Position in the order of sending. */
    readonly index: number;
  }

  /** Events of several shipments, each sent on its own at random times, so that many come out of order. */
  async function sendRandomEvents(): Promise<Sent[]> {
    const random = seededRandom(5);
    const sent: Sent[] = [];
    const numbers = ["A1", "A2", "A3", "A4", "A5"];
    const ids = new Map<string, number>();
    for (const name of numbers) ids.set(name, await addShipment(product.runtime, name));
    for (let message = 0; message < 6; message += 1) {
      const events = Array.from({ length: 10 }, () => {
        const trackingNumber = numbers[Math.floor(random() * numbers.length)] ?? "A1";
        const code = CODES[Math.floor(random() * CODES.length)] ?? "TRN";
        const occurredAtMs = Date.UTC(2026, 10, 10) + Math.floor(random() * 86_400_000);
        sent.push({
          shipmentId: ids.get(trackingNumber) ?? 0,
          code,
          occurredAtMs,
          index: sent.length,
        });
        return event({
          trackingNumber,
          occurredAt: new Date(occurredAtMs).toISOString().replace("Z", "+00:00"),
          status: { code, description: TEXT },
          reason: { code: "R7", description: TEXT },
          location: { name: "Via Mario Rossi 1" },
          delivery: { signedBy: "Mario Rossi" },
        });
      });
      await push(product.ingest, events);
      await product.settled();
    }
    return sent;
  }

  const MAPPED: Readonly<Record<string, string>> = {
    INF: "INFO_RECEIVED",
    DEP: "DEPARTED",
    TRN: "IN_TRANSIT",
    OUT: "OUT_FOR_DELIVERY",
    HLD: "EXCEPTION",
    DLV: "DELIVERED",
    XYZ: "",
  };

  /** One text that changes when any figure of any table or view does. */
  async function figures(): Promise<string> {
    const tables = ["events FINAL", "deliveries FINAL", "event_outcomes FINAL"];
    const all = [...tables, "lanes", "courier_performance", "event_quality", "sla"];
    const texts = await Promise.all(
      all.map(async (name) => {
        const rows = await product.sql(`SELECT * FROM ${name}`);
        return rows.map((row) => JSON.stringify(row)).sort();
      }),
    );
    return JSON.stringify(texts);
  }

  describe("one row for each applied fact", () => {
    let sent: Sent[] = [];

    test("ids, codes, times, mapped status, CAPs and weight agree with what was sent", async () => {
      sent = await sendRandomEvents();
      const rows = await product.sql(
        `SELECT shipment_id, code, reason_code, status, toUnixTimestamp64Milli(occurred_at) AS occurred,
         dest_cap, origin_cap, weight_kg, courier
       FROM events FINAL ORDER BY shipment_id, occurred`,
      );
      const expected = sent
        .toSorted(
          (one, other) =>
            one.shipmentId - other.shipmentId || one.occurredAtMs - other.occurredAtMs,
        )
        .map(({ shipmentId, code, occurredAtMs }) => ({
          shipment_id: shipmentId,
          code,
          reason_code: "R7",
          status: MAPPED[code],
          occurred: occurredAtMs,
          dest_cap: "00118",
          origin_cap: "20121",
          weight_kg: 1,
          courier: "GLS_ITA",
        }));
      expect(rows as unknown).toEqual(expected);
    });

    test("out of order are those that happened before one that had been received earlier", async () => {
      const late = sent.filter((one) =>
        sent.some(
          (other) =>
            other.shipmentId === one.shipmentId &&
            other.index < one.index &&
            other.occurredAtMs > one.occurredAtMs,
        ),
      );
      const [row] = await product.sql(
        "SELECT countIf(out_of_order) AS late, count() AS facts FROM events FINAL",
      );
      expect(late.length).toBeGreaterThan(10);
      expect(row).toEqual({ late: late.length, facts: sent.length });
    });

    test("no name, number or free text of a sender is in any table", async () => {
      for (const table of ["events", "deliveries", "event_outcomes"]) {
        const rows = JSON.stringify(await product.sql(`SELECT * FROM ${table}`));
        expect(rows).not.toMatch(/Rossi|333 1234567|Consegnata|acme/);
      }
      const owners = await product.sql("SELECT DISTINCT company, channel FROM events");
      expect(owners).toEqual([
        {
          company: expect.stringMatching(/^[0-9a-f]{16}$/),
          channel: expect.stringMatching(/^[0-9a-f]{16}$/),
        },
      ]);
    });

    test("every batch again, twice, reversed and cut otherwise, changes no figure of any table or view", async () => {
      await push(product.ingest, [{ eventId: "x" }, event({ trackingNumber: "nobody" })]);
      await eventually(
        async () =>
          (
            await product.sql(
              "SELECT sum(events) AS n FROM event_outcomes FINAL WHERE outcome = 'INVALID'",
            )
          )[0].n === 1,
        "the outcomes are taken over",
      );
      await collectEntries();
      expect(entries.length).toBeGreaterThan(50);
      const before = await figures();
      const writer = await openClickhouse(product.runtime.config, "write");
      const handle = benchmarkHandler({
        clickhouse: async () => writer,
        forget: async () => {},
        mac: product.runtime.secrets.vault.mac,
      });
      for (const batch of [entries, entries.toReversed(), entries]) {
        for (let from = 0; from < batch.length; from += 17) {
          expect(await handle(batch.slice(from, from + 17))).toEqual([]);
        }
      }
      const { redis, live } = product.runtime;
      for (let pass = 0; pass < 3; pass += 1) {
        await drainCounts({ redis, live, clickhouse: async () => writer });
      }
      await writer.close();
      expect(await figures()).toBe(before);
    });

    test("remapping a code puts its rows right and adds none", async () => {
      const count = "SELECT count() AS facts, countIf(status = '') AS unmapped FROM events FINAL";
      const [before] = await product.sql(count);
      expect(before.unmapped).toBeGreaterThan(3);
      const { status } = await product.call("PUT", "/panel/api/couriers/GLS_ITA/catalogue/XYZ", {
        description: "Sosta",
        terminal: false,
        status: "DELAY",
      });
      expect(status).toBe(200);
      await eventually(async () => {
        const [after] = await product.sql(count);
        return after.unmapped === 0 && after.facts === before.facts;
      }, "the rows are mapped");
      const [row] = await product.sql(
        "SELECT DISTINCT status FROM events FINAL WHERE code = 'XYZ'",
      );
      expect(row).toEqual({ status: "DELAY" });
    });
  });

  describe("what changes afterwards", () => {
    const rowsOf = (shipmentId: number, columns: string, table: string) =>
      product.sql(
        `SELECT ${columns} FROM ${table} FINAL WHERE shipment_id = ${shipmentId} ORDER BY ALL`,
      );

    test("an event that was parked is one row once its shipment is there, in full when it comes again first", async () => {
      const early = (trackingNumber: string) =>
        event({
          trackingNumber,
          occurredAt: "2026-11-10T08:00:00+01:00",
          status: { code: "DEP", description: TEXT },
          reason: { code: "R9", description: TEXT },
        });
      const [kept, again] = [early("EARLY-1"), early("EARLY-2")];
      const outcomesOf = async (...events: unknown[]) => {
        const { body } = await push(product.ingest, events);
        return body.results.map((one: { outcome: string }) => one.outcome);
      };
      expect(await outcomesOf(kept, again)).toEqual(["UNKNOWN_TRACKING", "UNKNOWN_TRACKING"]);
      const first = await addShipment(product.runtime, "EARLY-1");
      const second = await addShipment(product.runtime, "EARLY-2");
      const next = event({ trackingNumber: "EARLY-1" });
      expect(await outcomesOf(next, again)).toEqual(["ACCEPTED", "ACCEPTED"]);
      await product.settled();
      expect(await outcomesOf(kept)).toEqual(["DUPLICATE"]);
      await product.settled();
      const facts = (id: number) => rowsOf(id, "code, reason_code, status", "events");
      expect(await facts(first)).toEqual([
        { code: "DEP", reason_code: "", status: "DEPARTED" },
        { code: "TRN", reason_code: "", status: "IN_TRANSIT" },
      ]);
      expect(await facts(second)).toEqual([{ code: "DEP", reason_code: "R9", status: "DEPARTED" }]);
    });

    test("a delivery is taken back when its code means something else, and counts again when it means delivery", async () => {
      const id = await addShipment(product.runtime, "TURN", { shipDate: "2026-11-09" });
      const delivered = (occurredAt: string) =>
        event({ trackingNumber: "TURN", occurredAt, status: { code: "DLV", description: TEXT } });
      await push(product.ingest, [delivered("2026-11-12T10:00:00+01:00")]);
      await product.settled();
      const rows = () => rowsOf(id, "delivered_on, lead_days, removed", "deliveries");
      const first = { delivered_on: "2026-11-12", lead_days: 3, removed: 0 };
      expect(await rows()).toEqual([first]);
      const map = (status: string | null, terminal: boolean) =>
        product.call("PUT", "/panel/api/couriers/GLS_ITA/catalogue/DLV", {
          description: "Consegnata",
          terminal,
          status,
        });
      await map("EXCEPTION", false);
      await eventually(async () => (await rows()).length === 0, "the delivery is taken back");
      await map("DELIVERED", true);
      await eventually(async () => (await rows()).length === 1, "it counts again");
      expect(await rows()).toEqual([first]);
    });

    test("promises reach the view of on-time deliveries: the first estimate, the last one before the delivery, and the planned date", async () => {
      const plannedOn = "2026-11-12";
      const id = await addShipment(product.runtime, "PROMISE", { plannedOn });
      const estimate = (code: string, occurredAt: string, day?: string) =>
        event({
          trackingNumber: "PROMISE",
          occurredAt,
          status: { code, description: TEXT },
          ...(day !== undefined && { delivery: { estimatedDeliveryDate: day } }),
        });
      await push(product.ingest, [
        estimate("DLV", "2026-11-13T10:00:00+01:00", "2026-11-13"),
        estimate("TRN", "2026-11-11T10:00:00+01:00", "2026-11-12"),
        estimate("DEP", "2026-11-10T10:00:00+01:00", "2026-11-14"),
        estimate("INF", "2026-11-09T10:00:00+01:00"),
      ]);
      await product.settled();
      expect(await rowsOf(id, "toString(planned_on) AS planned", "deliveries")).toEqual([
        { planned: "2026-11-12" },
      ]);
      const view = () =>
        product.sql(
          `SELECT sum(first_estimate_deliveries) AS first, sum(first_estimate_share) AS first_share,
           sum(last_estimate_deliveries) AS last, sum(last_estimate_share) AS last_share,
           sum(planned_deliveries) AS planned, sum(planned_share) AS planned_share FROM on_time`,
        );
      const figures = { first: 1, first_share: 1, last: 1, last_share: 0 };
      expect(await view()).toEqual([{ ...figures, planned: 1, planned_share: 0 }]);
    });

    test("a late event that tells of an earlier delivery corrects the days", async () => {
      const id = await addShipment(product.runtime, "LATE", { shipDate: "2026-11-09" });
      const reported = (code: string, occurredAt: string) =>
        event({ trackingNumber: "LATE", occurredAt, status: { code, description: TEXT } });
      await push(product.ingest, [reported("DLV", "2026-11-13T10:00:00+01:00")]);
      await product.settled();
      await push(product.ingest, [reported("DEP", "2026-11-10T10:00:00+01:00")]);
      await product.settled();
      expect(await rowsOf(id, "lead_days, transit_days", "deliveries")).toEqual([
        { lead_days: 4, transit_days: 3 },
      ]);
    });
  });

  describe("outcomes that are no facts", () => {
    const outcomes = () =>
      product.sql(
        `SELECT outcome, rule, sum(events) AS n FROM event_outcomes FINAL WHERE courier = 'BRT_ITA'
       GROUP BY outcome, rule ORDER BY outcome, rule`,
      );

    test("are counted by courier, hour and rule, without what the sender wrote", async () => {
      const options = { token: "tok_brt_1", courier: "BRT_ITA" };
      await addShipment(product.runtime, "B1", { courier: "BRT_ITA" });
      const known = event({ trackingNumber: "B1", status: { code: "700", description: "x" } });
      const unknown = event({ trackingNumber: "B2" });
      const { status: _, ...withoutStatus } = event({ trackingNumber: "B1" });
      const strange = { ...event({ trackingNumber: "B1", occurredAt: "now" }), Rossi: "Mario" };
      await push(product.ingest, [known, unknown, withoutStatus, strange], options);
      await push(product.ingest, [known], options);
      await eventually(async () => (await outcomes()).length === 7, "the counts are taken over");
      expect(await outcomes()).toEqual([
        { outcome: "ACCEPTED", rule: "", n: 1 },
        { outcome: "DUPLICATE", rule: "", n: 1 },
        { outcome: "INVALID", rule: "", n: 2 },
        { outcome: "RULE", rule: "BAD_FORMAT occurredAt", n: 1 },
        { outcome: "RULE", rule: "REQUIRED status", n: 1 },
        { outcome: "RULE", rule: "UNKNOWN_FIELD other", n: 1 },
        { outcome: "UNKNOWN_TRACKING", rule: "", n: 1 },
      ]);
    });

    test("are forgotten in Redis once their hour is over, and stay in ClickHouse", async () => {
      const { redis, live } = product.runtime;
      const before = await outcomes();
      await advanceClock(redis, 4 * 3_600);
      await live.refresh();
      await eventually(
        async () => (await readCourierCounts(redis)).counts.length === 0,
        "they are forgotten",
      );
      expect(await outcomes()).toEqual(before);
    });
  });

  describe("retention", () => {
    test("raw events go when they are older than the configured months; deliveries stay", async () => {
      const { config } = product.runtime;
      const writer = await openClickhouse(config, "write");
      const ttl = async () => {
        const answer = await writer.query({
          query: "SELECT create_table_query AS text FROM system.tables WHERE name = 'events'",
          format: "JSONEachRow",
        });
        const [row = { text: "" }] = await answer.json<{ text: string }>();
        return /TTL [^\n]*?Month\(\d+\)/.exec(row.text)?.[0];
      };
      expect(await ttl()).toBe("TTL toDateTime(received_at) + toIntervalMonth(24)");
      await writer.command({
        query: `INSERT INTO events SELECT * REPLACE (toString(1) AS fact_key,
                now64() - INTERVAL 30 DAY AS received_at) FROM events LIMIT 1`,
      });
      await applySchema(writer, { ...config, eventRetentionMonths: 24 });
      await writer.command({ query: "OPTIMIZE TABLE events FINAL" });
      const old = "SELECT count() AS n FROM events WHERE fact_key = '1'";
      expect(await product.sql(old)).toEqual([{ n: 1 }]);
      // One month is at least 28 days, and a row of 30 days may be younger: so two.
      await writer.command({
        query: `INSERT INTO events SELECT * REPLACE (toString(2) AS fact_key,
                now64() - INTERVAL 70 DAY AS received_at) FROM events LIMIT 1`,
      });
      await applySchema(writer, { ...config, eventRetentionMonths: 2 });
      expect(await ttl()).toBe("TTL toDateTime(received_at) + toIntervalMonth(2)");
      await writer.command({ query: "OPTIMIZE TABLE events FINAL" });
      const left = await product.sql("SELECT fact_key FROM events WHERE fact_key IN ('1', '2')");
      expect(left).toEqual([{ fact_key: "1" }]);
      await writer.close();
    });
  });
});

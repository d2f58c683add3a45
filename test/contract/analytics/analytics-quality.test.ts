/** What operators and the data team read: recomputed here from the raw rows, the slow way. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ClickHouseClient } from "@clickhouse/client";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { type CourierQuality, type Insights, openInsights } from "#analytics/insights.ts";
import { benchmarkHandler } from "#analytics/write/write-batches.ts";
import { CAP_PREFIXES } from "#core/benchmarks/rules/cap-prefix.ts";
import { medianInterval } from "#core/benchmarks/rules/day-counts.ts";
import type { EventRow } from "#core/benchmarks/rules/event-row.ts";
import type { LogItem } from "#core/platform/log/consumer.ts";
import { type Change, decodeChangeEntry, encodeChange } from "#core/shipments/store/change-log.ts";
import {
  type DeliveredShipment,
  deliveredShipments,
  laneEntry,
  seededRandom,
} from "#test/support/data/lanes.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";
import { CLICKHOUSES } from "#test/support/servers/servers.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** The views look at the engine's own clock. */
const NOW_MS = Date.now();
const COURIERS = ["BRT_ITA", "GLS_ITA", "SDA_ITA"];

/** As the API answers it. */
function intervalOf(leads: readonly number[]) {
  const counts = [...Map.groupBy(leads, (days) => days)].map(
    ([days, same]) => [days, same.length] as const,
  );
  const interval = medianInterval(counts.toSorted(([one], [other]) => one - other));
  return {
    lead_median_low_days: interval?.low ?? null,
    lead_median_high_days: interval?.high ?? null,
  };
}

describe.each(CLICKHOUSES)("ClickHouse: %s", (kind) => {
  let store: TestClickhouse;
  let reader: ClickHouseClient;
  let insights: Insights;
  let handle: (entries: readonly LogItem[]) => Promise<unknown>;

  beforeAll(async () => {
    store = await openTestClickhouse(kind);
    reader = await openClickhouse(store.config, "read");
    insights = openInsights(store.config);
    handle = benchmarkHandler({
      clickhouse: async () => store.writer,
      forget: async () => {},
      mac: (text) => Bun.hash(text).toString(16).padStart(16, "0").slice(0, 16),
    });
  });

  afterAll(async () => {
    await insights.close();
    await reader.close();
    await store.end();
  });

  async function select<T>(query: string): Promise<T[]> {
    return (await reader.query({ query, format: "JSONEachRow" })).json<T>();
  }

  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);

  function randomDeliveries(count: number): DeliveredShipment[] {
    const random = seededRandom(3);
    const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
    return deliveredShipments(count, (at) => {
      const deliveredAtMs = NOW_MS - Math.floor(random() * 300) * DAY_MS - DAY_MS;
      const leadDays = Math.floor(random() ** 2 * 8);
      return {
        shipmentId: 1 + at,
        courier: pick(COURIERS),
        destCap: pick(["00184", "20121", "90133", "07026"]),
        originCap: pick(["20121", "80121", null]),
        weightKg: pick([0.5, 4, 12, null]),
        deliveredOn: day(deliveredAtMs),
        shipDate: day(deliveredAtMs - leadDays * DAY_MS),
        leadDays,
        transitDays: pick([leadDays, null]),
        attempts: pick([1, 1, 1, 2]),
        exceptions: pick([0, 0, 0, 1]),
        isReturn: random() < 0.05,
      };
    });
  }

  const rank = (values: readonly number[], percent: number) =>
    values.toSorted((one, other) => one - other)[Math.ceil((percent * values.length) / 100) - 1] ??
    0;
  const mean = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / values.length;

  describe("deliveries", () => {
    const rows = randomDeliveries(1_500);
    const counted = rows.filter(({ isReturn }) => !isReturn);

    beforeAll(async () => {
      await handle(rows.map(laneEntry));
      await handle(rows.toReversed().map(laneEntry));
    });

    test("provinces by CAP prefix", async () => {
      const found = await insights.provinces("", NOW_MS);
      const expected = [...Map.groupBy(counted, ({ destCap }) => destCap.slice(0, 2))].sort();
      expect(found.length).toBe(expected.length);
      expected.forEach(([prefix, own], at) => {
        const leads = own.map(({ leadDays }) => leadDays);
        expect(found[at]).toMatchObject({
          prefix,
          deliveries: own.length,
          leadMedian: rank(leads, 50),
        });
        expect(found[at]?.leadMean).toBeCloseTo(mean(leads), 0.9);
      });
      expect(found.map(({ provinces }) => provinces)).toEqual([
        "Roma",
        "Sassari",
        "Milano, Monza e Brianza",
        "Palermo",
      ]);
      const one = await insights.provinces("GLS_ITA", NOW_MS);
      const own = counted.filter(({ courier }) => courier === "GLS_ITA");
      expect(one.reduce((sum, row) => sum + row.deliveries, 0)).toBe(own.length);
    });

    test("trend by month", async () => {
      const found = await insights.trend("20121", NOW_MS);
      const own = counted.filter(({ destCap }) => destCap === "20121");
      const cells = Map.groupBy(own, (row) => `${row.courier} ${row.deliveredOn.slice(0, 7)}-01`);
      expect(found.length).toBe(cells.size);
      for (const { courier, month, deliveries: size, leadMedian } of found) {
        const leads = (cells.get(`${courier} ${month}`) ?? []).map(({ leadDays }) => leadDays);
        expect([size, leadMedian]).toEqual([leads.length, rank(leads, 50)]);
      }
    });

    test("a lane with its distribution, of the finest grain with a sample of 20", async () => {
      const lane = { destCap: "20121", originCap: null, weightKg: 4, nowMs: NOW_MS };
      const found = await insights.lane(lane);
      expect(found.map(({ courier }) => courier).sort()).toEqual(COURIERS);
      for (const row of found) {
        const own = counted.filter((one) => one.destCap === "20121" && one.courier === row.courier);
        const weighed = own.filter(({ weightKg }) => weightKg === 4);
        const cell = weighed.length >= 20 ? weighed : own;
        expect(row.grain).toBe(weighed.length >= 20 ? "cap_weight" : "cap");
        const leads = cell.map(({ leadDays }) => leadDays);
        expect(row.leads.flatMap(([days, size]) => Array(size).fill(days))).toEqual(
          leads.toSorted((one, other) => one - other),
        );
        expect(row.leadP90).toBe(rank(leads, 90));
      }
    });

    test("the view courier_performance", async () => {
      const found = await select<Record<string, number | string>>(
        "SELECT * FROM courier_performance",
      );
      const cells = Map.groupBy(rows, (row) => `${row.courier} ${row.deliveredOn.slice(0, 7)}-01`);
      expect(found.length).toBe(cells.size);
      for (const row of found) {
        const all = cells.get(`${row["courier"]} ${row["month"]}`) ?? [];
        const own = all.filter(({ isReturn }) => !isReturn);
        const leads = own.map(({ leadDays }) => leadDays);
        expect(row).toMatchObject({
          deliveries: own.length,
          returns: all.length - own.length,
          lead_median: rank(leads, 50),
          lead_p90: rank(leads, 90),
        });
        const first = own.filter(({ attempts }) => attempts === 1).length / own.length;
        expect(row["first_attempt_share"] as number).toBeCloseTo(first, 3);
      }
    });

    test("the view lanes has every grain, and marks cells of which one company supplies over 60 %", async () => {
      const found = await select<Record<string, number | string>>("SELECT * FROM lanes");
      const caps = found.filter((row) => row["grain"] === "cap");
      for (const row of caps) {
        const own = counted.filter(
          (one) => one.courier === row["courier"] && one.destCap === row["dest_cap"],
        );
        const leads = own.map(({ leadDays }) => leadDays);
        expect(row).toMatchObject({
          deliveries: own.length,
          lead_median: rank(leads, 50),
          lead_p90: rank(leads, 90),
          lead_median_days: rank(leads, 50),
          lead_p90_days: rank(leads, 90),
          ...intervalOf(leads),
          companies: 1,
          top_company_share: 1,
          dominated: 1,
        });
      }
      const origins = found.filter(
        (row) => row["grain"] === "origin_cap_dest_weight" && row["dest_cap"] === "20121",
      );
      const own = counted.filter(
        (one) => one.destCap === "20121" && one.originCap !== null && one.weightKg !== null,
      );
      const cells = new Set(own.map((one) => `${one.courier} ${one.originCap} ${one.weightKg}`));
      expect(origins.length).toBe(cells.size);
      const shared = (share: number) =>
        deliveredShipments(20, (at) => ({
          shipmentId: 9_000 + share * 100 + at,
          destCap: `5012${share}`,
          deliveredOn: day(NOW_MS - DAY_MS),
          shipDate: day(NOW_MS - 2 * DAY_MS),
          leadDays: 1,
        })).map((row, at) => ofCompany(laneEntry(row), at < share + 10 ? 1 : 2));
      await handle([...shared(2), ...shared(3)]);
      const marks = await select<{ dest_cap: string; dominated: number }>(
        "SELECT dest_cap, top_company_share, dominated FROM lanes WHERE dest_cap LIKE '5012%' ORDER BY dest_cap",
      );
      expect(marks).toEqual([
        { dest_cap: "50122", top_company_share: 0.6, dominated: 0 } as never,
        { dest_cap: "50123", top_company_share: 0.65, dominated: 1 } as never,
      ]);
    });

    test("the view sla counts the share within so many days, and knows every prefix's area", async () => {
      const found = await select<{ courier: string; delivered: number; quick: number }>(
        `SELECT courier, sum(delivered) AS delivered, sum(sla.within_2_days * sla.delivered) AS quick
       FROM sla WHERE origin_area != '' GROUP BY courier ORDER BY courier`,
      );
      expect(found.map(({ courier }) => courier)).toEqual(COURIERS);
      for (const { courier, delivered, quick } of found) {
        const own = counted.filter((row) => row.courier === courier && row.originCap !== null);
        expect(delivered).toBe(own.length);
        const within = own.filter(({ leadDays }) => leadDays <= 2).length;
        // Shares have four digits.
        expect(Math.abs(quick - within)).toBeLessThan(delivered / 5_000);
      }
      const rowsByPrefix = CAP_PREFIXES.map(({ prefix }, at) =>
        laneEntry({
          ...(rows[0] as DeliveredShipment),
          shipmentId: 20_000 + at,
          courier: `P${prefix}`,
          destCap: `${prefix}100`,
          isReturn: false,
        }),
      );
      await handle(rowsByPrefix);
      const areas = await select<{ courier: string; dest_area: string }>(
        "SELECT courier, dest_area FROM sla WHERE courier LIKE 'P%' ORDER BY courier",
      );
      expect(areas).toEqual(
        CAP_PREFIXES.map(({ prefix, area }) => ({ courier: `P${prefix}`, dest_area: area })),
      );
    });
  });

  function ofCompany(entry: LogItem, companyId: number): LogItem {
    return { ...entry, fields: withChange(entry, { companyId }) };
  }

  let nextEntry = 1;

  function factEntry(events: readonly EventRow[]): LogItem {
    nextEntry += 1;
    const [base] = deliveredShipments(1, () => ({}));
    const entry = laneEntry(base as DeliveredShipment);
    const fields = { ...withChange(entry, { lane: null, events }), s: String(nextEntry) };
    return { ...entry, fields };
  }

  function withChange({ fields }: LogItem, members: Partial<Change>): Record<string, string> {
    const decoded = decodeChangeEntry(fields);
    if (decoded.type === "created") throw new Error("not a change");
    const change = { ...decoded.change, ...decoded.readRows(), ...members };
    return { ...fields, change: encodeChange(change) };
  }

  function randomFact(at: number, random: () => number): EventRow {
    const receivedAtMs = NOW_MS - Math.floor(random() * 12) * DAY_MS - HOUR_MS;
    return {
      key: `fact-${at}`,
      courier: COURIERS[at % 3] ?? "GLS_ITA",
      code: "TRN",
      reasonCode: null,
      occurredAtMs: receivedAtMs - Math.floor(random() * 90_000 - 5_000) * 1000,
      receivedAtMs,
      messageIndex: 0,
      status: random() < 0.1 ? null : "IN_TRANSIT",
      detail: 0,
      terminal: false,
      outOfOrder: random() < 0.2,
      isReturn: false,
      destCap: null,
      originCap: null,
      weightKg: null,
      shipDate: "2026-11-01",
      version: 1,
    };
  }

  function expectAhead({ aheadShare, aheadEvents }: CourierQuality, facts: EventRow[]): void {
    const ahead = facts.filter((one) => one.occurredAtMs > one.receivedAtMs);
    expect(ahead.length).toBeGreaterThan(0);
    expect(aheadShare).toBeCloseTo(ahead.length / facts.length);
    expect(aheadEvents).toHaveLength(Math.min(5, ahead.length));
    const times = ahead.map((one) => [one.occurredAtMs, one.receivedAtMs]);
    for (const { occurredAtMs, receivedAtMs, code } of aheadEvents) {
      expect(times).toContainEqual([occurredAtMs, receivedAtMs]);
      expect(code).toBe("TRN");
    }
    const newest = Math.max(...ahead.map(({ receivedAtMs }) => receivedAtMs));
    expect(aheadEvents[0]?.receivedAtMs).toBe(newest);
  }

  describe("courier quality", () => {
    test("delays, order, mapping and outcomes agree with the raw rows", async () => {
      const random = seededRandom(8);
      const facts = Array.from({ length: 400 }, (_, at) => randomFact(at, random));
      await handle(facts.map((fact) => factEntry([fact])));
      await handle([factEntry([])]);
      const hour = Math.floor(NOW_MS / HOUR_MS) - 2;
      const outcome = (name: string, events: number, rule = "") => ({
        hour: hour * 3_600,
        courier: "GLS_ITA",
        outcome: name,
        rule,
        events,
      });
      await store.writer.insert({
        table: "event_outcomes",
        format: "JSONEachRow",
        values: [
          outcome("ACCEPTED", 80),
          outcome("DUPLICATE", 10),
          outcome("INVALID", 6),
          outcome("UNKNOWN_TRACKING", 4),
          outcome("RULE", 6, "REQUIRED status"),
          outcome("RULE", 2, "IN_FUTURE occurredAt"),
        ],
      });
      const since = NOW_MS - 7 * DAY_MS;
      const found = await insights.quality(since, NOW_MS);
      expect(found.map(({ courier }) => courier)).toEqual(COURIERS);
      for (const row of found) {
        const own = facts.filter((one) => one.courier === row.courier && one.receivedAtMs >= since);
        const delays = own.map(({ occurredAtMs, receivedAtMs }) =>
          Math.max(0, Math.floor(receivedAtMs / 1000) - Math.floor(occurredAtMs / 1000)),
        );
        expect(row.facts).toBe(own.length);
        expect(row.delayP50).toBe(rank(delays, 50));
        expect(row.outOfOrderShare).toBeCloseTo(
          own.filter(({ outOfOrder }) => outOfOrder).length / own.length,
        );
        expect(row.unmappedShare).toBeCloseTo(
          own.filter(({ status }) => status === null).length / own.length,
        );
        expectAhead(row, own);
        const sorted = delays.toSorted((one, other) => one - other);
        const near = [Math.floor(own.length * 0.95) - 1, Math.floor(own.length * 0.95)];
        expect(near.map((at) => sorted[at])).toContain(row.delayP95 as number);
      }
      expect(found.find(({ courier }) => courier === "GLS_ITA")).toMatchObject({
        received: 100,
        duplicateShare: 0.1,
        invalidShare: 0.06,
        unknownTrackingShare: 0.04,
        inFuture: 2,
        brokenRules: [
          { rule: "REQUIRED status", events: 6 },
          { rule: "IN_FUTURE occurredAt", events: 2 },
        ],
      });
      expect(found.find(({ courier }) => courier === "SDA_ITA")).toMatchObject({
        received: 0,
        inFuture: 0,
        duplicateShare: null,
      });
    });

    test("a courier is silent when the last hours bring under a tenth of the same hours of the weeks before", async () => {
      const current = Math.floor(NOW_MS / HOUR_MS);
      const rows = Array.from({ length: 24 * 7 * 5 }, (_, back) => current - 1 - back).flatMap(
        (hour) => {
          const isRecent = hour >= current - 3;
          const row = (courier: string, events: number) => ({
            hour: hour * 3_600,
            courier,
            outcome: "ACCEPTED",
            rule: "",
            events,
          });
          return [
            ...(isRecent ? [] : [row("QUIET", 50)]),
            row("STEADY", 50),
            row("SMALL", isRecent ? 0 : 2),
            ...(isRecent ? [row("NEW", 500)] : []),
          ].filter(({ events }) => events > 0);
        },
      );
      await store.writer.insert({ table: "event_outcomes", format: "JSONEachRow", values: rows });
      const found = new Map((await insights.silence(NOW_MS)).map((row) => [row.courier, row]));
      expect(found.get("QUIET")).toMatchObject({ seen: 0, silent: true });
      expect(found.get("QUIET")?.expected).toBeCloseTo(150, 5);
      expect(found.get("QUIET")?.lastHourMs).toBe((current - 4) * HOUR_MS);
      expect(found.get("STEADY")).toMatchObject({ seen: 150, silent: false });
      expect(found.get("SMALL")).toMatchObject({ seen: 0, silent: false });
      expect(found.get("NEW")).toMatchObject({ weeks: 0, expected: 0, silent: false });
    });
  });
});

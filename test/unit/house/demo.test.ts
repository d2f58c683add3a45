/** The demo's data: what a newcomer sees first must be plausible and valid. */
import { describe, expect, test } from "bun:test";
import type { Row } from "#analytics/write/rows.ts";
import { checkEvent } from "#core/events/rules/event.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import { checkSetup } from "#core/setup/rules/setup.ts";
import { DEMO_COURIERS } from "#demo/couriers.ts";
import { demoSetup } from "#demo/demo-setup.ts";
import { BENCHMARK_PLACES } from "#demo/places.ts";
import { createPlanner } from "#demo/planner.ts";
import { createRoad } from "#demo/road.ts";
import { meansSomething, summaryText } from "#demo/summary-line.ts";
import { linesToTry, welcome } from "#demo/welcome.ts";
import { planYear, YEAR_TABLE } from "#demo/year.ts";
import { seededRandom } from "#test/support/data/lanes.ts";

const setup = demoSetup("https://localhost:9443", (mode) => `http://localhost:9444/${mode}`);
/** A Monday morning after the end of summer time. */
const NOW_MS = Date.parse("2026-11-02T09:00:00+01:00");
const now = () => NOW_MS;

describe("the demo setup", () => {
  test("is a valid setup file with two companies, three channels and four couriers", () => {
    expect(checkSetup(setup)).toEqual([]);
    expect(setup.companies).toHaveLength(2);
    expect(setup.companies?.flatMap(({ channels }) => channels ?? [])).toHaveLength(3);
    expect(setup.couriers).toHaveLength(4);
  });

  test("gives every courier 15 codes or more, one of them unmapped", () => {
    for (const { catalogue = [] } of setup.couriers ?? []) {
      expect(catalogue.length).toBeGreaterThanOrEqual(15);
      expect(catalogue.filter(({ status }) => status === undefined)).toHaveLength(1);
    }
  });
});

describe("the simulated couriers", () => {
  const planner = createPlanner(seededRandom(7), now);
  const consignments = Array.from({ length: 500 }, () => planner.plan({}));

  test("send valid events, 5 to 9 a shipment, all of them past and with an offset", () => {
    for (const { events } of consignments) {
      expect(events.length).toBeGreaterThanOrEqual(5);
      expect(events.length).toBeLessThanOrEqual(9);
      for (const event of events) {
        expect(checkEvent(event)).toEqual([]);
        expect(event.occurredAt).toMatch(/\+0[12]:00$/);
        expect(instantOf(event.occurredAt)).toBeLessThan(NOW_MS);
      }
    }
  });

  test("plan the events of a shipment in the order in which they happened", () => {
    for (const { events } of consignments) {
      const instants = events.map(({ occurredAt }) => instantOf(occurredAt));
      expect(instants).toEqual(instants.toSorted((one, other) => one - other));
    }
  });

  test("show failed attempts, returns, pickup points and an unmapped code", () => {
    const reported = new Set(
      consignments.flatMap(({ events }) => events.map((e) => e.status.code)),
    );
    for (const { vocabulary } of DEMO_COURIERS) {
      for (const step of ["absent", "returned", "atPoint", "measured"] as const) {
        expect(reported).toContain(vocabulary[step][0]);
      }
    }
  });

  test("deliver what the benchmark lanes need", () => {
    const [destination] = BENCHMARK_PLACES;
    const [courier] = DEMO_COURIERS;
    if (!courier) throw new Error("the demo has no courier");
    for (let count = 0; count < 100; count += 1) {
      const { events } = planner.plan({ courier, destination, mustArrive: true });
      expect(events.at(-1)?.status.code).toBe(courier.vocabulary.delivered[0]);
    }
  });

  test("tell events twice, out of order and of strangers' parcels", () => {
    const road = createRoad(planner, seededRandom(11));
    road.add(consignments);
    const own = new Set(consignments.flatMap(({ events }) => events.map((e) => e.eventId)));
    const reportedNow = Array.from({ length: 100 }, () => road.next(20)).flat();
    const ids = reportedNow.map(({ event }) => event.eventId);
    expect(new Set(ids).size).toBeLessThan(ids.length);
    expect(ids.some((id) => !own.has(id))).toBe(true);
    const position = new Map(
      consignments.flatMap(({ events }) => events.map((e, at) => [e.eventId, at])),
    );
    const early = ids.filter((id, at) => {
      const before = id.replace(/\d+$/, String(position.get(id) ?? 0));
      return (position.get(id) ?? 0) > 0 && !ids.slice(0, at).includes(before);
    });
    expect(early.length).toBeGreaterThan(0);
  });
});

describe("the past year", () => {
  const owners = [0, 1, 2].map((at) => ({ company: `company-${at}`, channel: `channel-${at}` }));
  const rows = planYear(owners, seededRandom(3), NOW_MS);
  const at = (name: string) => YEAR_TABLE.columns.indexOf(name);
  const leadOf = (own: readonly Row[]) =>
    own.reduce((sum, row) => sum + Number(row[at("lead_days")]), 0) / own.length;

  test("has months of deliveries, more before Christmas and few in August, and all lie in the past", () => {
    const byMonth = Map.groupBy(rows, (row) => String(row[at("ship_date")]).slice(0, 7));
    expect(byMonth.size).toBeGreaterThanOrEqual(12);
    const inMonth = (month: string) => byMonth.get(month)?.length ?? 0;
    expect(inMonth("2025-12")).toBeGreaterThan(1.5 * inMonth("2026-05"));
    expect(inMonth("2026-08")).toBeLessThan(0.6 * inMonth("2026-05"));
    expect(leadOf(byMonth.get("2025-12") ?? [])).toBeGreaterThan(
      leadOf(byMonth.get("2026-05") ?? []),
    );
    for (const row of rows) {
      expect(Date.parse(String(row[at("delivered_on")]))).toBeLessThan(NOW_MS);
    }
  });

  test("has a slow lane: one courier to the islands", () => {
    const lane = (courier: string, cap: string) =>
      rows.filter((row) => row[at("courier")] === courier && row[at("dest_cap")] === cap);
    expect(lane("POSTE_ITA", "90133").length).toBeGreaterThan(20);
    const slower = leadOf(lane("POSTE_ITA", "90133")) - leadOf(lane("POSTE_ITA", "20121"));
    expect(slower).toBeGreaterThan(3);
  });
});

test("a parcel that arrives today has its earlier steps on earlier days", () => {
  const planner = createPlanner(seededRandom(5), now);
  const day = "2026-11-02";
  const parcels = Array.from({ length: 100 }, () => planner.plan({ daysAgo: 0 }));
  for (const { events } of parcels) {
    expect(events[0]?.occurredAt.startsWith(day)).toBe(false);
    expect(events.at(-1)?.occurredAt.startsWith(day)).toBe(true);
  }
});

test("the live line tells rate, outcomes, webhooks and lag in one row", () => {
  const text = summaryText(
    {
      outcomes: { accepted: 12_345, duplicate: 210, unknownTracking: 98, invalid: 0 },
      webhooks: { verified: 9_876, unverified: 0 },
      lags: [
        { log: "event", group: "track", entries: 5, seconds: 0 },
        { log: "change", group: "webhooks", entries: 7, seconds: 0 },
      ],
    },
    62.4,
  );
  expect(text).toBe(
    "62 events/s  accepted 12,345  duplicates 210  unknown 98  webhooks 9,876 delivered and verified  lag 12",
  );
});

test("the live line shows no figures before events were accepted, webhooks arrived and the lag of the start is gone", () => {
  const figures = (accepted: number, verified: number, entries: number) => ({
    outcomes: { accepted, duplicate: 0, unknownTracking: 0, invalid: 0 },
    webhooks: { verified, unverified: 0 },
    lags: [{ log: "change", group: "webhooks", entries, seconds: 0 }] as const,
  });
  for (const [accepted, verified, entries] of [
    [0, 0, 802],
    [40, 0, 20],
    [40, 12, 802],
    [0, 0, 0],
  ] as const) {
    expect(meansSomething(figures(accepted, verified, entries))).toBe(false);
  }
  expect(meansSomething(figures(40, 12, 40))).toBe(true);
});

test("the banner of any start says where the operator's token is", () => {
  const urls = { api: "http://a", ingest: "http://i", panel: "http://p" };
  const text = welcome(urls, "in /data/secrets/panel-token");
  expect(text).toContain("with the operator's token, in /data/secrets/panel-token,");
  expect(text).not.toContain("above");
});

test("the README's lines are those that the demo prints", async () => {
  const readme = await Bun.file("README.md").text();
  for (const line of linesToTry("http://127.0.0.1:8080")) expect(readme).toContain(`\n${line}\n`);
});

/** `POST /v2/couriers/promise` over HTTP with the real engine behind it (docs/analytics.md, "Expected delivery"). */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { startAnalytics } from "#analytics/main.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { companyKeys } from "#core/platform/redis/keys.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import { holidaysBetween, workingDay, workingDayNumber } from "#core/platform/time/working-days.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { deliveredShipments, laneFields } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestApi, type TestApi } from "#test/support/product/api.ts";

const LANE = { destCap: "00184", originCap: "20121", weightKg: 2 };

let api: TestApi;
let analytics: Running;
/** A working day about two months ago, so that the deliveries lie in the window. */
let shipped: number;

beforeAll(async () => {
  api = await openTestApi(testSetup(), "embedded");
  analytics = await startAnalytics(api.runtime);
  shipped = workingDayNumber(daysAgo(60, api.runtime.live.now()));
  await deliver();
});
afterAll(async () => {
  await analytics?.stop();
  await api?.end();
});

/** The example of the document: working days 1, 2, 3 and 4; another courier that needs 3; one with 19 deliveries. */
async function deliver(): Promise<void> {
  const delivered = (courier: string, firstId: number, days: readonly number[]) =>
    deliveredShipments(days.length, (at) => ({
      ...LANE,
      shipmentId: firstId + at,
      courier,
      shipDate: workingDay(shipped),
      deliveredOn: workingDay(shipped + (days[at] ?? 0)),
    }));
  const of = (count: number, days: number) => Array.from({ length: count }, () => days);
  const rows = [
    ...delivered("GLS_ITA", 1, [...of(2, 1), ...of(10, 2), ...of(6, 3), ...of(2, 4)]),
    ...delivered("BRT_ITA", 100, of(20, 3)),
    ...delivered("SDA_ITA", 200, of(19, 1)),
  ];
  const { redis } = api.runtime;
  for (const row of rows) await redis.xAdd(companyKeys(0).changes, "*", laneFields(row));
  await eventually(async () => {
    const lags = await readLags(redis);
    return lags.every(({ group, entries }) => group !== "analytics" || entries === 0);
  }, "the deliveries are written");
}

async function ask(body: object) {
  const token = await api.token("key_acme_main");
  return api.call("POST", "/v2/couriers/promise", { token, body });
}

const COURIERS = ["SDA_ITA", "BRT_ITA", "GLS_ITA"];

test("three dates for each courier with 20 deliveries, in working days from the ship date, best first", async () => {
  const shipDate = workingDay(workingDayNumber(romeDate(api.runtime.live.now())));
  const now = workingDayNumber(shipDate);
  const day = (days: number) => workingDay(now + days);
  const { status, body } = await ask({ ...LANE, shipDate, couriers: COURIERS });
  expect(status).toBe(200);
  expect(Date.parse(body.asOf)).toBeLessThanOrEqual(api.runtime.live.now());
  const rest = { onTimeProbability: null, grain: "origin_cap_dest_weight", sampleSize: 20 };
  expect(body.ranking).toEqual([
    { courierCode: "GLS_ITA", p10: day(2), p50: day(2), p90: day(3), ...rest },
    { courierCode: "BRT_ITA", p10: day(3), p50: day(3), p90: day(3), ...rest },
  ]);

  const inTime = await ask({ ...LANE, shipDate, deadline: day(3), couriers: COURIERS });
  expect(inTime.body.ranking).toMatchObject([
    { courierCode: "BRT_ITA", onTimeProbability: 1 },
    { courierCode: "GLS_ITA", onTimeProbability: 0.9 },
  ]);
});

test("another origin and no weight fall back to a coarser grain, and a CAP without deliveries has no ranking", async () => {
  const { body } = await ask({ destCap: "00184", originCap: "80121", couriers: ["BRT_ITA"] });
  expect(body.ranking).toMatchObject([{ courierCode: "BRT_ITA", grain: "cap", sampleSize: 20 }]);
  expect((await ask({ destCap: "90121" })).body.ranking).toEqual([]);
});

test("a date that is none and a foreign CAP are 422", async () => {
  for (const wrong of [
    { shipDate: "2026-02-30" },
    { deadline: "tomorrow" },
    { destCap: "99999" },
  ]) {
    expect((await ask({ destCap: "00184", ...wrong })).status).toBe(422);
  }
});

test("the statement in the document finds the same figures, with the holidays of its years", async () => {
  const document = await Bun.file("docs/analytics.md").text();
  const [, statement = ""] = /```sql\n(WITH[^`]*FROM deliveries[^`]*)```/.exec(document) ?? [];
  const [, list = ""] = /CAST\((\[[^\]]*\])/.exec(statement) ?? [];
  expect(JSON.parse(list.replaceAll("'", '"'))).toEqual(
    holidaysBetween("2025-01-01", "2026-12-31"),
  );
  const since = daysAgo(800, api.runtime.live.now());
  const holidays = holidaysBetween(since, workingDay(shipped + 10)).map((day) => `'${day}'`);
  const client = await openClickhouse(api.runtime.config, "read");
  try {
    const query = statement.replace(list, `[${holidays}]`);
    const answer = await client.query({ query, format: "JSONEachRow" });
    const three = { until_1: 0, until_2: 0, until_3: 1, until_4: 1 };
    const spread = { until_1: 0.1, until_2: 0.6, until_3: 0.9, until_4: 1 };
    expect(await answer.json<object>()).toEqual([
      { courier: "BRT_ITA", deliveries: 20, p50: 3, ...three },
      { courier: "GLS_ITA", deliveries: 20, p50: 2, ...spread },
    ]);
  } finally {
    await client.close();
  }
});

/** Document 1, `POST /v2/couriers/delivery-times`, over HTTP with the real engine behind it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startAnalytics } from "#analytics/main.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { companyKeys } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { deliveredShipments, laneFields } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { type Answer, openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let analytics: Running;

beforeAll(async () => {
  const setup = testSetup();
  setup.couriers?.push({ code: "SDA_ITA", tokens: ["tok_sda_1"] });
  const couriers = setup.companies?.[0]?.channels?.[0]?.couriers;
  couriers?.push({ code: "SDA_ITA", shippingEnabled: false });
  api = await openTestApi(setup, "embedded");
  analytics = await startAnalytics(api.runtime);
  await deliver();
});
afterAll(async () => {
  await analytics?.stop();
  await api?.end();
});

/** Two couriers with enough deliveries on the lane, one with too few. */
async function deliver(): Promise<void> {
  const deliveredOn = daysAgo(5, api.runtime.live.now());
  const lane = { destCap: "00184", originCap: "20121", weightKg: 2, deliveredOn };
  const rows = [
    ...deliveredShipments(25, (at) => ({
      ...lane,
      shipmentId: 1 + at,
      leadDays: at < 20 ? 1 : 2,
      transitDays: 1,
    })),
    ...deliveredShipments(20, (at) => ({
      ...lane,
      shipmentId: 100 + at,
      courier: "BRT_ITA",
      leadDays: 3,
      transitDays: at < 10 ? 2 : null,
    })),
    ...deliveredShipments(19, (at) => ({
      ...lane,
      shipmentId: 200 + at,
      courier: "SDA_ITA",
      leadDays: 1,
    })),
  ];
  for (const row of rows) {
    await api.runtime.redis.xAdd(companyKeys(0).changes, "*", laneFields(row));
  }
  await eventually(async () => {
    const lags = await readLags(api.runtime.redis);
    return lags.every(({ group, entries }) => group !== "analytics" || entries === 0);
  }, "the deliveries are written");
}

async function ask(body: unknown, key = "key_acme_main"): Promise<Answer> {
  return api.call("POST", "/v2/couriers/delivery-times", { token: await api.token(key), body });
}

const ALL = ["SDA_ITA", "BRT_ITA", "GLS_ITA"];

describe("summary", () => {
  test("lane, best courier and ranking, fastest first, couriers with data only", async () => {
    const { status, body } = await ask({ destCap: "00184", couriers: ALL });
    expect(status).toBe(200);
    expect(body).toEqual({
      destCap: "00184",
      originArea: "NORD",
      originCap: "20121",
      requestedWeightBand: null,
      best: {
        courierCode: "GLS_ITA",
        leadMedian: 1,
        leadMean: 1.2,
        transitMedian: 1,
        transitMean: 1,
        sampleSize: 25,
      },
      ranking: [
        { position: 1, courierCode: "GLS_ITA", leadMedian: 1, transitMedian: 1, sampleSize: 25 },
        { position: 2, courierCode: "BRT_ITA", leadMedian: 3, transitMedian: null, sampleSize: 20 },
      ],
    });
  });

  test("best is null and the ranking empty when no courier has enough data", async () => {
    const { body } = await ask({ destCap: "90121" });
    expect([body.best, body.ranking]).toEqual([null, []]);
  });

  test("without couriers the shipping-enabled ones of the channel are asked", async () => {
    const full = await ask({ destCap: "00184", detail: "full" });
    const codes = full.body.ranking.map((row: { courierCode: string }) => row.courierCode);
    expect(codes).toEqual(["GLS_ITA", "BRT_ITA"]);
    const outlet = await ask({ destCap: "00184", detail: "full" }, "key_acme_outlet");
    expect(outlet.body.ranking).toHaveLength(1);
  });

  test("weightKg selects a weight band", async () => {
    const { body } = await ask({ destCap: "00184", weightKg: 2 });
    expect(body.requestedWeightBand).toBe("1-3");
    expect((await ask({ destCap: "00184", weightKg: 80 })).body.requestedWeightBand).toBe("50+");
  });

  test("originCap overrides the seat, which is null where it is not Italian", async () => {
    const { body } = await ask({ destCap: "00184", originCap: "80121" });
    expect([body.originCap, body.originArea]).toEqual(["80121", "SUD"]);
    const beta = await ask({ destCap: "00184" }, "key_beta_main");
    expect([beta.body.originCap, beta.body.originArea]).toEqual(["80121", "SUD"]);
  });
});

describe("full", () => {
  test("no best; every requested courier, those with too few deliveries at the end", async () => {
    const { body } = await ask({ destCap: "00184", couriers: ALL, detail: "full", weightKg: 2 });
    expect(body).not.toHaveProperty("best");
    expect(body.requestedWeightBand).toBe("1-3");
    expect(body.ranking).toEqual([
      {
        position: 1,
        courierCode: "GLS_ITA",
        status: "ok",
        level: "origin_cap_dest_weight",
        weightBand: "1-3",
        leadMedian: 1,
        leadMean: 1.2,
        leadP90: 2,
        transitMedian: 1,
        transitMean: 1,
        transitP90: 1,
        sampleSize: 25,
        transitSampleSize: 25,
        leadMedianInterval: { low: 1, high: 1 },
        transitMedianInterval: { low: 1, high: 1 },
      },
      expect.objectContaining({ position: 2, courierCode: "BRT_ITA", transitSampleSize: null }),
      {
        position: null,
        courierCode: "SDA_ITA",
        status: "insufficient_data",
        level: null,
        weightBand: null,
        leadMedian: null,
        leadMean: null,
        leadP90: null,
        transitMedian: null,
        transitMean: null,
        transitP90: null,
        sampleSize: null,
        transitSampleSize: null,
        leadMedianInterval: null,
        transitMedianInterval: null,
      },
    ]);
  });
});

test("full answers say as of when they are, with an offset; what came before that moment counts", async () => {
  const before = api.runtime.live.now();
  const { body } = await ask({ destCap: "00184", detail: "full" });
  expect(body.asOf).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+0[12]:00$/);
  expect(Date.parse(body.asOf)).toBeLessThanOrEqual(api.runtime.live.now());
  expect(Date.parse(body.asOf)).toBeGreaterThan(before - 2_000);
  expect((await ask({ destCap: "00184" })).body).not.toHaveProperty("asOf");
});

describe("422", () => {
  const cases: [string, Record<string, unknown>, string, string][] = [
    ["destCap missing", { destCap: undefined }, "destCap", "REQUIRED"],
    ["destCap of four digits", { destCap: "0018" }, "destCap", "BAD_FORMAT"],
    ["destCap a number", { destCap: 184 }, "destCap", "WRONG_TYPE"],
    ["destCap not Italian", { destCap: "00000" }, "destCap", "NOT_ALLOWED"],
    ["originCap no CAP", { originCap: "MILAN" }, "originCap", "BAD_FORMAT"],
    ["originCap not Italian", { originCap: "99999" }, "originCap", "NOT_ALLOWED"],
    [
      "51 couriers",
      { couriers: Array.from({ length: 51 }, (_, at) => `C${at}`) },
      "couriers",
      "TOO_MANY",
    ],
    ["couriers no array", { couriers: "GLS_ITA" }, "couriers", "WRONG_TYPE"],
    ["weightKg 0", { weightKg: 0 }, "weightKg", "OUT_OF_RANGE"],
    ["weightKg a text", { weightKg: "2" }, "weightKg", "WRONG_TYPE"],
    ["detail unknown", { detail: "some" }, "detail", "NOT_ALLOWED"],
  ];

  test.each(cases)("%s", async (_, members, path, code) => {
    const { status, headers, body } = await ask({ destCap: "00184", ...members });
    expect(status).toBe(422);
    expect(headers.get("content-type")).toBe("application/problem+json");
    expect(body.violations).toMatchObject([{ path, code, message: expect.any(String) }]);
  });
});

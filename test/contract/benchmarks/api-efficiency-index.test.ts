/** `POST /v2/couriers/efficiency-index` (document 1, "Couriers") over HTTP, with the real engine behind it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startAnalytics } from "#analytics/main.ts";
import { startApi } from "#api/main.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { companyKeys } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { deliveredShipments, laneFields } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

let runtime: TestRuntime;
let analytics: Running;
let api: Running;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  analytics = await startAnalytics(runtime);
  api = await startApi(runtime);
  const deliveredOn = daysAgo(5, runtime.live.now());
  const lane = { destCap: "00184", originCap: "20121", deliveredOn };
  const late = daysAgo(6, runtime.live.now());
  const fast = deliveredShipments(20, (at) => ({
    ...lane,
    shipmentId: 1 + at,
    leadDays: 1,
    plannedOn: at < 15 ? deliveredOn : late,
  }));
  const slow = deliveredShipments(20, (at) => ({
    ...lane,
    shipmentId: 100 + at,
    courier: "BRT_ITA",
    leadDays: 3,
    ...(at < 19 && { plannedOn: deliveredOn }),
  }));
  for (const row of [...fast, ...slow]) {
    await runtime.redis.xAdd(companyKeys(0).changes, "*", laneFields(row));
  }
  await eventually(async () => {
    const lags = await readLags(runtime.redis);
    return lags.every(({ group, entries }) => group !== "analytics" || entries === 0);
  }, "the deliveries are written");
});

afterAll(async () => {
  await api?.stop();
  await analytics?.stop();
  await runtime?.end();
});

async function call(path: string, body: unknown, token?: string): Promise<Response> {
  return fetch(`${api.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
}

async function ask(body: unknown): Promise<Response> {
  const answer = await call("/v2/auth/token", { apiKey: "key_acme_main" });
  const { token } = (await answer.json()) as { token: string };
  return call("/v2/couriers/efficiency-index", body, token);
}

describe("GET /v2/couriers/on-time", () => {
  const onTime = async (query: string) => {
    const answer = await call("/v2/auth/token", { apiKey: "key_acme_main" });
    const { token } = (await answer.json()) as { token: string };
    const headers = { authorization: `Bearer ${token}` };
    return fetch(`${api.url}/v2/couriers/on-time${query}`, { headers });
  };
  const none = { share: null, sampleSize: null };

  test("each promise has its own sample, and is null below 20", async () => {
    const [from, to] = [daysAgo(10, runtime.live.now()), daysAgo(0, runtime.live.now())];
    const answer = await onTime(`?from=${from}&to=${to}&courier=GLS_ITA`);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      from,
      to,
      courier: "GLS_ITA",
      firstEstimate: none,
      lastEstimate: none,
      planned: { share: 0.75, sampleSize: 20 },
      asOf: expect.any(String),
    });
    expect(await (await onTime("?courier=BRT_ITA")).json()).toMatchObject({
      to,
      planned: none,
    });
    expect(await (await onTime("")).json()).toMatchObject({
      courier: null,
      planned: { sampleSize: 39 },
    });
  });

  test.each([
    ["?from=2026-02-30", "from", "BAD_FORMAT"],
    ["?to=1999-12-31", "to", "BAD_FORMAT"],
    ["?from=2026-03-02&to=2026-03-01", "from", "OUT_OF_RANGE"],
    ["?from=2024-01-01&to=2025-01-02", "from", "OUT_OF_RANGE"],
    [`?courier=${"x".repeat(51)}`, "courier", "BAD_FORMAT"],
  ])("%s is refused", async (query, path, code) => {
    const answer = await onTime(query);
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({ violations: [{ path, code }] });
  });

  test("a whole leap year is one question", async () => {
    expect((await onTime("?from=2024-01-01&to=2025-01-01")).status).toBe(200);
  });
});

test("couriers are ranked best first and those without data follow with null rank", async () => {
  const answer = await ask({ destCap: "00184", couriers: ["BRT_ITA", "GLS_ITA", "SDA_ITA"] });
  expect(answer.status).toBe(200);
  const shared = { status: "ok", basis: "lead", level: "origin_cap_dest", weightBand: null };
  expect(await answer.json()).toEqual({
    destCap: "00184",
    originArea: "NORD",
    originCap: "20121",
    requestedWeightBand: null,
    ranking: [
      {
        rank: 1,
        courierCode: "GLS_ITA",
        ...shared,
        index: 65,
        speed: 75,
        consistency: 75,
        reliability: 50,
        sampleSize: 20,
      },
      {
        rank: 2,
        courierCode: "BRT_ITA",
        ...shared,
        index: 45,
        speed: 25,
        consistency: 75,
        reliability: 50,
        sampleSize: 20,
      },
      {
        rank: null,
        courierCode: "SDA_ITA",
        status: "insufficient_data",
        index: null,
        speed: null,
        consistency: null,
        reliability: null,
        basis: null,
        level: null,
        weightBand: null,
        sampleSize: null,
      },
    ],
  });
});

test("the full answer adds as of when it is and the interval of the median", async () => {
  const answer = await ask({ destCap: "00184", couriers: ["GLS_ITA", "SDA_ITA"], detail: "full" });
  expect(await answer.json()).toMatchObject({
    asOf: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\+0[12]:00$/),
    ranking: [
      { courierCode: "GLS_ITA", medianInterval: { low: 1, high: 1 } },
      { courierCode: "SDA_ITA", medianInterval: null },
    ],
  });
});

test("without couriers the shipping-enabled ones of the channel are compared", async () => {
  const answer = await ask({ destCap: "00184", weightKg: 2.5 });
  const body = (await answer.json()) as { ranking: { courierCode: string }[] };
  expect(body).toMatchObject({ requestedWeightBand: "1-3" });
  expect(body.ranking.map(({ courierCode }) => courierCode)).toEqual(["GLS_ITA", "BRT_ITA"]);
});

test("422: a postal code that is not Italian, 51 couriers, a weight of 0", async () => {
  for (const body of [
    { destCap: "99999" },
    { destCap: "1234" },
    { destCap: "00184", couriers: Array.from({ length: 51 }, (_, at) => `C${at}`) },
    { destCap: "00184", weightKg: 0 },
  ]) {
    expect((await ask(body)).status).toBe(422);
  }
});

test("401 without a token", async () => {
  expect((await call("/v2/couriers/efficiency-index", { destCap: "00184" })).status).toBe(401);
});

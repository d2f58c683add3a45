/** The login page for `PANEL_TOKEN`, its session, and the analytics behind it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { advanceClock } from "#core/configuration/store/live.ts";
import { companyKeys } from "#core/platform/redis/keys.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { deliveredShipments, laneFields } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";

let product: TestAnalytics;

beforeAll(async () => {
  product = await openTestAnalytics(testSetup());
  const deliveredOn = daysAgo(5);
  const lane = { destCap: "00184", originCap: "20121", deliveredOn };
  const rows = [
    ...deliveredShipments(30, (at) => ({ ...lane, shipmentId: 1 + at, leadDays: at < 20 ? 1 : 3 })),
    ...deliveredShipments(5, (at) => ({
      ...lane,
      shipmentId: 100 + at,
      courier: "BRT_ITA",
      leadDays: 12,
    })),
    ...deliveredShipments(9, (at) => ({
      ...lane,
      shipmentId: 200 + at,
      destCap: "09124",
      courier: "<b>",
    })),
  ];
  for (const row of rows) {
    await product.runtime.redis.xAdd(companyKeys(0).changes, "*", laneFields(row));
  }
  await product.settled();
});
afterAll(() => product?.end());

function get(path: string, cookie = "", headers: Record<string, string> = {}): Promise<Response> {
  const all = { ...headers, ...(cookie !== "" && { cookie }) };
  return fetch(`${product.panel}${path}`, { headers: all, redirect: "manual" });
}

function logIn(token: string): Promise<Response> {
  return fetch(`${product.panel}/panel/login`, {
    method: "POST",
    body: new URLSearchParams({ token }),
    redirect: "manual",
  });
}

async function session(): Promise<string> {
  const answer = await logIn(product.runtime.secrets.panelToken);
  return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
}

describe("session", () => {
  test("the operator's token gives a cookie that scripts and other sites cannot use", async () => {
    const answer = await logIn(product.runtime.secrets.panelToken);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
    const cookie = answer.headers.get("set-cookie") ?? "";
    for (const attribute of ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"]) {
      expect(cookie).toContain(attribute);
    }
    expect(cookie).not.toContain(product.runtime.secrets.panelToken);
  });

  test("a forged session is none", async () => {
    const forged = (await session()).replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    for (const cookie of ["", "waybill_session=x", "waybill_session=9999999999999.00", forged]) {
      expect((await get("/panel/api/overview", cookie)).status).toBe(401);
    }
  });

  test("the API takes the session for reading, and for changes from our own pages only", async () => {
    const cookie = await session();
    expect((await get("/panel/api/overview", cookie)).status).toBe(200);
    expect((await get("/panel/api/overview")).status).toBe(401);
    const post = (site?: string) =>
      fetch(`${product.panel}/panel/api/sql`, {
        method: "POST",
        headers: {
          cookie,
          "content-type": "application/json",
          ...(site !== undefined && { "sec-fetch-site": site }),
        },
        body: JSON.stringify({ query: "SELECT 1" }),
      });
    expect((await post("same-origin")).status).toBe(200);
    expect((await post("cross-site")).status).toBe(403);
    expect((await post()).status).toBe(403);
  });

  test("logging out takes the cookie back, and it ends by itself after 12 hours", async () => {
    const out = await fetch(`${product.panel}/panel/logout`, {
      method: "POST",
      redirect: "manual",
    });
    expect(out.headers.get("set-cookie")).toContain("waybill_session=; Max-Age=0");
    const cookie = await session();
    const { redis, live } = product.runtime;
    await advanceClock(redis, 12 * 3_600);
    await live.refresh();
    expect((await get("/panel/api/overview", cookie)).status).toBe(401);
  });

  test("a wrong token is 401, and guessing ends after ten tries", async () => {
    const statuses: number[] = [];
    for (let tries = 0; tries < 15; tries += 1) statuses.push((await logIn("guess")).status);
    expect(statuses[0]).toBe(401);
    expect(statuses.at(-1)).toBe(429);
    await advanceClock(product.runtime.redis, 120);
    await product.runtime.live.refresh();
  });
});

describe("the figures of the benchmarks page", () => {
  test("lane, provinces, trend, quality and silence", async () => {
    const lane = await product.call("GET", "/panel/api/analytics/lane?destCap=00184");
    expect(lane.body.items[0]).toMatchObject({
      courier: "GLS_ITA",
      leads: [
        [1, 20],
        [3, 10],
      ],
      leadMedianInterval: { low: 1, high: 3 },
    });
    for (const path of ["provinces", "trend", "quality?days=30", "silence"]) {
      const { status, body } = await product.call("GET", `/panel/api/analytics/${path}`);
      expect([path, status]).toEqual([path, 200]);
      expect(body.items).toBeArray();
    }
    for (const path of ["lane?destCap=1", "lane", "quality?days=0", "trend?destCap=x"]) {
      expect((await product.call("GET", `/panel/api/analytics/${path}`)).status).toBe(422);
    }
  });
});

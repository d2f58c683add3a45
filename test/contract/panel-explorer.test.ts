/** The login page, its session, and the benchmark explorer behind it, as a browser without scripts gets them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { companyKeys } from "#core/redis/client/keys.ts";
import { advanceClock } from "#core/redis/config/live.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/analytics.ts";
import { deliveredShipments, laneFields } from "#test/support/lanes.ts";
import { testSetup } from "#test/support/setup.ts";

let product: TestAnalytics;

beforeAll(async () => {
  product = await openTestAnalytics(testSetup());
  const deliveredOn = new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 10);
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
    await product.runtime.redis.xAdd(companyKeys(1).changes, "*", laneFields(row));
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

/** Texts of the cells of each row of the table with this caption. */
function tableOf(page: string, caption: string): string[][] {
  const table = page.slice(page.indexOf(`<caption>${caption}`));
  const rows = table.slice(0, table.indexOf("</table>")).split("<tr>").slice(1);
  return rows.map((row) => [...row.matchAll(/<t[hd][^>]*>([^<]*)</g)].map(([, text = ""]) => text));
}

describe("session", () => {
  test("the operator's token gives a cookie that scripts and other sites cannot use", async () => {
    const answer = await logIn(product.runtime.secrets.panelToken);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/panel/explorer"]);
    const cookie = answer.headers.get("set-cookie") ?? "";
    for (const attribute of ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"]) {
      expect(cookie).toContain(attribute);
    }
    expect(cookie).not.toContain(product.runtime.secrets.panelToken);
  });

  test("a page without a session leads to the login page; a forged one is none", async () => {
    const forged = (await session()).replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    for (const cookie of ["", "waybill_session=x", "waybill_session=9999999999999.00", forged]) {
      const answer = await get("/panel/explorer", cookie);
      expect(answer.status).toBe(303);
      expect(answer.headers.get("location")).toBe("/panel/login?next=%2Fpanel%2Fexplorer");
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
    expect((await get("/panel/explorer", cookie)).status).toBe(303);
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

describe("explorer", () => {
  let page = "";
  let answer: Response;

  beforeAll(async () => {
    answer = await get("/panel/explorer?destCap=00184", await session());
    page = await answer.text();
  });

  test("asks nothing of anybody else: no script, no address but our own", async () => {
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-security-policy")).toStartWith("default-src 'none'");
    expect(page).not.toMatch(/<script|https?:\/\/|style="|@import/);
    const style = await (await get("/panel/style.css")).text();
    expect(style).toContain("prefers-color-scheme: dark");
    expect(style).not.toMatch(/url\(|@import/);
  });

  test("draws the distribution of each courier with a name and its figures in words", () => {
    const charts = [...page.matchAll(/<svg[^>]*role="img" aria-label="([^"]*)"/g)].map(
      ([, label]) => label,
    );
    expect(charts[0]).toBe(
      "GLS_ITA: share of deliveries by lead days. 1 days 66.7 %, 3 days 33.3 %",
    );
    expect(charts[1]).toBe("BRT_ITA: share of deliveries by lead days. 10 or more days 100.0 %");
    expect(page).toContain("<title>10+ days: 100.0 %</title>");
  });

  test("compares couriers, and marks those that merchants are not shown", () => {
    expect(tableOf(page, "Comparison").slice(1)).toEqual([
      ["GLS_ITA", "cap", "30", "1", "1 to 3", "1.7", "3", "–", "0.0 %", "yes"],
      ["BRT_ITA", "cap", "5", "12", "–", "12", "12", "–", "0.0 %", "no, under 20"],
    ]);
  });

  test("lists provinces and months", async () => {
    expect(tableOf(page, "All couriers").slice(1)).toEqual([
      ["00", "Roma", "35", "1", "3.1", "0.0 %"],
      [
        "09",
        "Cagliari, Oristano, Sud Sardegna",
        "9",
        expect.any(String),
        expect.any(String),
        "0.0 %",
      ],
    ]);
    const [head, ...months] = tableOf(page, "Mean lead days by month, to 00184");
    expect(head?.[1]).toMatch(/^\d{4}-\d\d$/);
    expect(months.map(([courier]) => courier)).toEqual(["GLS_ITA", "BRT_ITA"]);
    const one = await (await get("/panel/explorer?courier=BRT_ITA", await session())).text();
    expect(tableOf(one, "BRT_ITA, last").slice(1)).toEqual([
      ["00", "Roma", "5", "12", "12", "0.0 %"],
    ]);
  });

  test("what anybody else has named is shown as text, never as HTML", async () => {
    const path = "/panel/explorer?destCap=09124&courier=%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    const text = await (await get(path, await session())).text();
    expect(text).not.toMatch(/<script|<b>/);
    expect(text).toContain("&lt;b&gt;");
  });

  test("422 with a word for a CAP that is none", async () => {
    const wrong = await get("/panel/explorer?destCap=99999", await session());
    expect(wrong.status).toBe(422);
    expect(await wrong.text()).toContain("99999 is not an Italian CAP.");
  });

  test("every table has a caption and heads, every input a label", () => {
    const count = (pattern: RegExp) => [...page.matchAll(pattern)].length;
    expect(count(/<table>/g)).toBe(count(/<caption>/g));
    expect(count(/<th scope="col"/g)).toBeGreaterThan(10);
    expect(count(/<label>/g)).toBe(count(/<input /g));
    expect(page).toContain('<html lang="en">');
  });
});

describe("the same figures as JSON", () => {
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

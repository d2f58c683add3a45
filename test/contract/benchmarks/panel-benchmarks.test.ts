/** Benchmarks of the panel: efficiency index, weights, files, and what members of a company do not see. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { parquetReadObjects } from "hyparquet";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { openInsights } from "#analytics/insights.ts";
import { companyKeys } from "#core/platform/redis/keys.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { PANEL_API } from "#panel/server/openapi.ts";
import { answerChecker } from "#test/support/clients/described-answers.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { daysAgo } from "#test/support/data/days.ts";
import {
  type DeliveredShipment,
  deliveredShipments,
  laneFields,
} from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";

const FORMULA = "=1+1";

let product: TestAnalytics;
let member: string;

beforeAll(async () => {
  product = await openTestAnalytics(testSetup());
  const { runtime } = product;
  const deliveredOn = daysAgo(5);
  let id = 0;
  const add = (count: number, values: Partial<DeliveredShipment>) =>
    deliveredShipments(count, () => {
      id += 1;
      return { destCap: "00184", originCap: "20121", deliveredOn, ...values, shipmentId: id };
    });
  const rows = [
    ...add(20, { courier: "TWENTY", leadDays: 1, transitDays: 1, weightKg: 0.5 }),
    ...add(10, { courier: "TWENTY", leadDays: 3, weightKg: 0.5, attempts: 2 }),
    ...add(19, { courier: "NINETEEN", leadDays: 4, transitDays: 2, weightKg: 2 }),
    ...add(20, { courier: FORMULA, leadDays: 2, transitDays: 1, weightKg: 40 }).map((row, at) =>
      at === 0 ? { ...row, transitDays: null } : row,
    ),
    ...add(19, { courier: "TWENTY", destCap: "09124", leadDays: 5 }),
    ...add(20, { courier: "TWENTY", destCap: "10121", leadDays: 5 }),
    ...add(5, { courier: "FIVE", destCap: "10121", leadDays: 9 }),
    // Two small ones have 19 together, which is what the three others leave of the row of all.
    ...add(50, { courier: "FIFTY", destCap: "20121", leadDays: 2 }),
    ...add(30, { courier: "TWENTY", destCap: "20121", leadDays: 3 }),
    ...add(20, { courier: "OTHER", destCap: "20121", leadDays: 3 }),
    ...add(12, { courier: "FIVE", destCap: "20121", leadDays: 9 }),
    ...add(7, { courier: "NINETEEN", destCap: "20121", leadDays: 9 }),
    // Two that are small by themselves have 20 together.
    ...add(30, { courier: "FIFTY", destCap: "30121", leadDays: 2 }),
    ...add(19, { courier: "NINETEEN", destCap: "30121", leadDays: 9 }),
    ...add(1, { courier: "FIVE", destCap: "30121", leadDays: 9 }),
  ];
  for (const row of rows) {
    await runtime.redis.xAdd(companyKeys(0).changes, "*", laneFields(row));
  }
  await product.settled();
  member = (await makeAccount(runtime, "company", "member", { companyCode: "acme" })).cookie;
});
afterAll(() => product?.end());

const read = (name: string, headers: Record<string, string>) =>
  fetch(`${product.panel}/panel/api/analytics/${name}`, { headers });
const asOperator = (name: string) =>
  read(name, { authorization: `Bearer ${product.runtime.secrets.panelToken}` });
const asMember = (name: string) => read(name, { cookie: member });
// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was answered
const itemsOf = async (answer: Response) => ((await answer.json()) as { items: any[] }).items;

describe("an operator", () => {
  test("sees each courier's index beside its times, as the merchant API computes it", async () => {
    const { runtime } = product;
    const items = await itemsOf(await asOperator("lane?destCap=00184"));
    expect(items.map(({ courier }: { courier: string }) => courier)).toEqual([
      ...["TWENTY", FORMULA, "NINETEEN"],
    ]);
    const benchmarks = await openBenchmarks(runtime.config);
    const [ranked] = await benchmarks.efficiencyIndex({
      destCap: "00184",
      originCap: null,
      weightKg: null,
      couriers: ["TWENTY"],
      nowMs: runtime.live.now(),
    });
    await benchmarks.close();
    expect(items[0]).toMatchObject({ deliveries: 30, transitDeliveries: 20 });
    expect(items[0].efficiency).toEqual({ ...ranked?.scores });
    expect(items[2]).toMatchObject({ deliveries: 19, isPublic: false, efficiency: null });
  });

  test("sees times by weight, with samples and intervals", async () => {
    const items = await itemsOf(await asOperator("weights?destCap=00184"));
    expect(items).toContainEqual({
      courier: "TWENTY",
      weightBand: "0-1",
      deliveries: 30,
      leadMedian: 1,
      leadMean: 1.7,
      leadMedianInterval: { low: 1, high: 3 },
    });
    expect(items).toHaveLength(3);
  });
});

describe("a member of a company", () => {
  test("sees no courier, province, month or weight of fewer than 20 deliveries, and no single days", async () => {
    const lane = await itemsOf(await asMember("lane?destCap=00184"));
    expect(lane).toMatchObject([
      { courier: "TWENTY", deliveries: 30, leads: [], transitDeliveries: 20 },
      { courier: FORMULA, deliveries: 20, leads: [], transitMedian: null, transitDeliveries: 0 },
    ]);
    const names = ["provinces", "trend?destCap=00184", "weights", "provinces?courier=NINETEEN"];
    for (const name of names) {
      const all: { deliveries: number }[] = await itemsOf(await asOperator(name));
      const shown = await itemsOf(await asMember(name));
      expect(all.some(({ deliveries }) => deliveries < 20)).toBe(true);
      expect(shown).toEqual(all.filter(({ deliveries }) => deliveries >= 20));
    }
    const file = await (await asMember("weights?format=csv")).text();
    expect(file).not.toContain("NINETEEN");
  });

  test("is not shown a courier's figure that would tell, taken from that of all, what a few others did", async () => {
    const prefixes = async (name: string) =>
      (await itemsOf(await asMember(name))).map(({ prefix }: { prefix: string }) => prefix);
    expect(await prefixes("provinces")).toEqual(["00", "10", "20", "30"]);
    expect(await prefixes("provinces?courier=TWENTY")).toEqual(["00", "20"]);
    const shown = await itemsOf(await asOperator("provinces?courier=TWENTY"));
    expect(shown.map(({ prefix }) => prefix)).toEqual(["00", "09", "10", "20"]);
  });

  test("cannot subtract several couriers' figures from those of all and learn what a few others did", async () => {
    const couriers = ["TWENTY", "NINETEEN", "FIVE", "FIFTY", "OTHER", FORMULA];
    const rowsOf = async (name: string): Promise<{ prefix: string; deliveries: number }[]> =>
      itemsOf(await asMember(name));
    const all = await rowsOf("provinces");
    const answers = await Promise.all(
      couriers.map((name) => rowsOf(`provinces?courier=${encodeURIComponent(name)}`)),
    );
    const left = all.map(({ prefix, deliveries }) => {
      const shown = answers.flat().filter((row) => row.prefix === prefix);
      return [prefix, deliveries - shown.reduce((sum, row) => sum + row.deliveries, 0)] as const;
    });
    expect(left).toEqual([
      ["00", 39],
      ["10", 25],
      // 19 with the row of OTHER, which is the smallest.
      ["20", 39],
      ["30", 20],
    ]);
  });

  test("is not shown how couriers report", async () => {
    expect((await asMember("quality")).status).toBe(403);
  });
});

describe("a file", () => {
  test("in CSV has one column for each figure, and a courier's name is no formula of a spreadsheet", async () => {
    const answer = await asOperator("weights?destCap=00184&format=csv");
    expect(answer.headers.get("content-disposition")).toContain("benchmarks-weights.csv");
    const [head, ...rows] = (await answer.text()).split("\r\n");
    expect(head).toBe(
      "courier,weightBand,deliveries,leadMedian,leadMedianInterval.low,leadMedianInterval.high,leadMean",
    );
    expect(rows).toEqual(["'=1+1,30-50,20,2,2,2,2", expect.any(String), expect.any(String), ""]);
  });

  test("in Parquet has the same figures, with nulls", async () => {
    const bytes = await (await asOperator("lane?destCap=00184&format=parquet")).bytes();
    const rows = await parquetReadObjects({ file: new Uint8Array(bytes).buffer });
    expect(rows).toMatchObject([
      { courier: "TWENTY", deliveries: 30, isPublic: true, "efficiency.basis": "transit" },
      { courier: FORMULA, deliveries: 20 },
      { courier: "NINETEEN", deliveries: 19, isPublic: false, "efficiency.index": null },
    ]);
  });

  test("without rows has its head all the same, and another format is 422", async () => {
    const empty = await (await asOperator("trend?destCap=98100&format=csv")).text();
    expect(empty).toStartWith("courier,month,deliveries,");
    expect((await asOperator("trend?destCap=98100&format=parquet")).status).toBe(200);
    expect((await asOperator("trend?format=xls")).status).toBe(422);
  });
});

test("what is answered is what the OpenAPI document says", async () => {
  const { runtime } = product;
  const [benchmarks, insights] = [
    await openBenchmarks(runtime.config),
    openInsights(runtime.config),
  ];
  const { check, seen } = answerChecker(
    createPanelApp(runtime, benchmarks, insights).routes,
    PANEL_API,
  );
  const names = [
    "lane?destCap=00184",
    "provinces",
    "trend",
    "weights",
    "quality",
    "silence",
    "lane",
  ];
  for (const name of names) {
    const answer = await asOperator(name);
    const { status, headers } = answer;
    const path = `/panel/api/analytics/${name}`;
    check({ method: "GET", path, status, headers, body: await answer.json() });
  }
  expect([...seen]).toContain("getAnalyticsLane 422");
  await Promise.all([benchmarks.close(), insights.close()]);
});

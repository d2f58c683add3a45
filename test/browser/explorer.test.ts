/** The benchmark explorer in a real browser: log-in, charts, tables, light and dark, without a script or anybody else's server. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { openTestAnalytics, type TestAnalytics } from "#test/support/analytics.ts";
import { artefact, openBrowser } from "#test/support/browser.ts";
import { addLaneHistory } from "#test/support/lanes.ts";
import { testSetup } from "#test/support/setup.ts";

const CAP = "00184";

let product: TestAnalytics;
let browser: Browser;

beforeAll(async () => {
  product = await openTestAnalytics(testSetup());
  await addLaneHistory(product.runtime.redis, CAP);
  await product.settled();
  browser = await openBrowser();
}, 120_000);

afterAll(async () => {
  await browser?.close();
  await product?.end();
});

/** A browser of an operator who has logged in by the form. */
async function logIn(options: BrowserContextOptions = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const requests: string[] = [];
  const problems: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(`${product.panel}/panel/explorer`);
  expect(page.url()).toStartWith(`${product.panel}/panel/login?next=`);
  await page.getByLabel("Operator's token").fill(product.runtime.secrets.panelToken);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/panel/explorer");
  return { context, page, requests, problems, end: () => context.close() };
}

async function ask(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  for (const [label, text] of Object.entries(fields)) await page.getByLabel(label).fill(text);
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForLoadState();
}

const tableRows = (page: Page, caption: string) =>
  page
    .locator("table", { has: page.locator("caption", { hasText: caption }) })
    .locator("tbody tr")
    .evaluateAll((rows) =>
      rows.map((row) => [...row.querySelectorAll("td, th")].map((cell) => cell.textContent)),
    );

describe("an operator", () => {
  test("logs in by the form, asks for a lane, and sees a chart for each courier with the shares of its days", async () => {
    const { page, problems, end } = await logIn();
    await ask(page, { "Destination CAP": CAP, "Origin CAP": "20121" });
    expect(await page.locator("h2").first().textContent()).toBe(`Couriers to ${CAP} from 20121`);
    const charts = page.locator("figure svg[role=img]");
    expect(await charts.count()).toBe(2);
    const reported = await charts.evaluateAll((all) =>
      all.map((chart) => chart.getAttribute("aria-label")),
    );
    expect(reported[0]).toBe(
      "GLS_ITA: share of deliveries by lead days. 1 days 66.7 %, 3 days 33.3 %",
    );
    const heights = await charts
      .first()
      .locator("rect.bar")
      .evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().height));
    expect(heights.map((height) => Math.round((100 * height) / Math.max(...heights)))).toEqual([
      ...[0, 100, 0, 50],
      ...new Array(7).fill(0),
    ]);
    expect(problems).toEqual([]);
    await end();
  });

  test("compares couriers, the fastest first, reads provinces of one of them and the trend by month", async () => {
    const { page, problems, end } = await logIn();
    await ask(page, { "Destination CAP": CAP, "Courier of the province table": "SDA_ITA" });
    const comparison = await tableRows(page, "Comparison");
    expect(comparison.map(([courier, , count, median]) => [courier, count, median])).toEqual([
      ["GLS_ITA", "30", "1"],
      ["BRT_ITA", "25", "4"],
    ]);
    const provinces = await tableRows(page, "SDA_ITA, last 12 months");
    expect(provinces.map(([prefix, , count]) => [prefix, count])).toEqual([["09", "9"]]);
    const trend = await tableRows(page, "Mean lead days by month");
    expect(trend.map(([courier]) => courier)).toEqual(["GLS_ITA", "BRT_ITA"]);
    const lines = page.locator("svg polyline.series");
    expect(await lines.count()).toBe(2);
    const points = await lines.first().getAttribute("points");
    expect(points?.split(" ").length).toBeGreaterThanOrEqual(3);
    expect(problems).toEqual([]);
    await end();
  });

  test("a CAP that is none is said on the page, and logging out ends it", async () => {
    const { page, problems, end } = await logIn();
    await page.goto(`${product.panel}/panel/explorer?destCap=99999`);
    expect(await page.getByRole("alert").textContent()).toContain("99999 is not an Italian CAP.");
    await page.getByRole("button", { name: "Log out" }).click();
    await page.waitForURL("**/panel/login");
    await page.goto(`${product.panel}/panel/explorer`);
    expect(page.url()).toStartWith(`${product.panel}/panel/login?next=`);
    // The browser itself reports a page that is answered 422.
    expect(problems.filter((text) => !text.includes("422"))).toEqual([]);
    await end();
  });
});

describe("the page", () => {
  test("asks nobody else, runs no script, and its policy allows neither", async () => {
    const { page, requests, end } = await logIn();
    await ask(page, { "Destination CAP": CAP });
    expect(requests.filter((url) => !url.startsWith(`${product.panel}/panel/`))).toEqual([]);
    expect(await page.locator("script, iframe, img, [onclick], [style]").count()).toBe(0);
    const response = await page.reload();
    const policy = response?.headers()["content-security-policy"] ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|script-src|https?:/);
    await end();
  });

  test("light and dark differ in their ground, text stays readable on it, and nothing is wider than a phone", async () => {
    const grounds = new Set<string>();
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, problems, end } = await logIn({ colorScheme });
      await ask(page, { "Destination CAP": CAP, "Origin CAP": "20121" });
      const colours = (await page.evaluate(
        "(() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color] })()",
      )) as string[];
      const [ground = "", text = ""] = colours;
      grounds.add(ground);
      expect(Math.abs(brightness(ground) - brightness(text))).toBeGreaterThan(150);
      const path = await artefact(`explorer-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true });
      expect((await Bun.file(path).bytes()).length).toBeGreaterThan(20_000);
      await page.setViewportSize({ width: 360, height: 740 });
      const overflow = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      expect(overflow).toBe(0);
      expect(problems).toEqual([]);
      await end();
    }
    expect(grounds.size).toBe(2);
  });
});

/** Mean of the three colours of `rgb(…)`, 0 to 255. */
function brightness(colour: string): number {
  const parts = (colour.match(/\d+/g) ?? []).slice(0, 3).map(Number);
  return parts.reduce((sum, part) => sum + part, 0) / 3;
}

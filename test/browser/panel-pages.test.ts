/** Every page of the control panel in a real browser: what it shows, that it is accessible, and that it fits. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { openTestAnalytics, type TestAnalytics } from "#test/support/analytics.ts";
import { openBrowser } from "#test/support/browser.ts";
import { addLaneHistory } from "#test/support/lanes.ts";
import { accessFaults, openVisitor, overflowOf } from "#test/support/panel-visitor.ts";
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

const visit = (options: Parameters<typeof openVisitor>[2] = {}) =>
  openVisitor(browser, product.panel, {
    token: product.runtime.secrets.panelToken,
    ...options,
  });

const PAGES = [
  ["/overview", "Pipeline"],
  ["/shipments", "Shipments"],
  ["/webhooks", "Webhooks"],
  ["/companies", "Companies"],
  ["/companies/acme", "Boxes"],
  ["/channels/acme-it", "API keys"],
  ["/carriers", "Unmapped codes"],
  ["/carriers/GLS_ITA", "Onboarding"],
  [`/benchmarks?destCap=${CAP}`, "How carriers report"],
  ["/sql", "SQL"],
  ["/dead-letters", "Dead letters"],
  ["/accounts", "Accounts"],
  ["/jobs", "Jobs"],
  ["/doctor", "Settings doctor"],
  ["/audit", "Audit log"],
  ["/me", "Your account"],
] as const;

describe("every page", () => {
  test.each([
    ["light", 1_440],
    ["light", 360],
    ["dark", 1_440],
    ["dark", 360],
  ] as const)(
    "is accessible, fits and works without a fault: %s, %i pixels",
    async (colorScheme, width) => {
      const { page, open, problems, requests, end } = await visit({
        ...{ colorScheme, viewport: { width, height: 900 } },
      });
      for (const [path, heading] of PAGES) {
        await open(path);
        await page.getByRole("heading", { name: heading }).first().waitFor();
        await page.waitForLoadState("networkidle").catch(() => {});
        expect([path, await accessFaults(page)]).toEqual([path, []]);
        expect([path, await overflowOf(page)]).toEqual([path, 0]);
      }
      expect(problems.filter((text) => !text.includes("404"))).toEqual([]);
      expect(
        requests.filter((url) => !/^(blob|data):/.test(url) && !url.startsWith(product.panel)),
      ).toEqual([]);
      await end();
    },
    180_000,
  );
});

describe("the benchmarks", () => {
  test("show the couriers of a lane, the fastest first, with the shares of their days", async () => {
    const { page, open, end } = await visit();
    await open("/benchmarks");
    await page.getByLabel("Destination CAP").fill(CAP);
    await page.getByLabel("Origin CAP").fill("20121");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: `Carriers from 20121 to ${CAP}` }).waitFor();
    expect(new URL(page.url()).searchParams.get("destCap")).toContain(CAP);
    const table = page.getByRole("region", { name: "Comparison, the fastest first" });
    const rows = table.locator("tbody tr");
    await rows.first().waitFor();
    const cells = await rows.evaluateAll((all) =>
      all.map((row) => [...row.querySelectorAll("th, td")].map((cell) => cell.textContent?.trim())),
    );
    expect(cells.map((row) => row.slice(0, 5))).toEqual([
      [
        ...["GLS_ITA", "60.9speed 68.2, consistency 68.2, reliability 50", "CAP to CAP"],
        ...["30", "1"],
      ],
      [
        ...["BRT_ITA", "42.4speed 28.2, consistency 55.5, reliability 50", "CAP to CAP"],
        ...["25", "4"],
      ],
    ]);
    const chart = page.getByRole("figure", { name: /Carriers from/ });
    expect(await chart.getAttribute("aria-label")).toContain("GLS_ITA 1: 66.7%, 3: 33.3%");
    expect(await chart.locator("svg .recharts-bar-rectangle").count()).toBeGreaterThan(4);
    await end();
  });

  test("show months and provinces, of one courier too, and say what is no CAP", async () => {
    const { page, open, problems, end } = await visit();
    await open("/benchmarks");
    await page.getByRole("img", { name: /^Lazio: 2/ }).waitFor();
    await page.getByRole("combobox", { name: "Carrier" }).click();
    await page.getByRole("option", { name: "SDA_ITA" }).click();
    await page.getByRole("img", { name: /^Lazio: no deliveries/ }).waitFor();
    const provinces = page.getByRole("region", { name: "Destinations" }).locator("tbody tr");
    const told = await provinces.last().textContent();
    expect(told).toContain("Cagliari");
    expect(told).toContain("9");
    const points = page.locator(".recharts-line-dots").first().locator("circle");
    expect(await points.count()).toBeGreaterThanOrEqual(3);
    await page.getByLabel("Destination CAP").fill("9999");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("Five digits").waitFor();
    expect(problems).toEqual([]);
    await end();
  });
});

describe("the SQL editor", () => {
  test("runs a statement by keyboard, shows its rows, says what is refused, and saves the rows as a file", async () => {
    const { page, open, end } = await visit();
    await open("/sql");
    const editor = page.getByRole("textbox", { name: "Statement" });
    await editor.fill(
      "SELECT courier, count() AS n FROM deliveries GROUP BY courier ORDER BY n DESC",
    );
    await editor.press("Control+Enter");
    await page.getByText(/^3 rows in/).waitFor();
    const first = page.getByRole("region", { name: "Result" }).locator("tbody tr").first();
    expect(await first.textContent()).toBe("GLS_ITA30");
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    const text = await Bun.file(await (await saving).path()).text();
    expect(text).toStartWith('"courier","n"');
    await editor.fill("DROP TABLE deliveries");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("alert").waitFor();
    await end();
  });
});

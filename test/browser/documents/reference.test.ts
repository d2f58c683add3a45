/** The references of all ports in Chromium: to read, to search, and to try calls with an API key, without asking anybody else for anything. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import { createIngestApp } from "#ingest/app.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { openBrowser } from "#test/support/clients/browser.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

let runtime: TestRuntime;
let browser: Browser;
let page: Page;
let url: string;
let courierUrl: string;
let panelUrl: string;
let stop: () => Promise<unknown>;
const asked: string[] = [];
const complaints: string[] = [];

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  });
  const benchmarks = await openBenchmarks(runtime.config);
  const app = createApiApp({ ...runtime, benchmarks, archive: NO_ARCHIVE }).listen({
    port: 0,
    hostname: "127.0.0.1",
  });
  url = `http://127.0.0.1:${app.server?.port}`;
  const ingest = createIngestApp(runtime).listen({ port: 0, hostname: "127.0.0.1" });
  courierUrl = `http://127.0.0.1:${ingest.server?.port}`;
  const panel = createPanelApp(runtime, benchmarks).listen({ port: 0, hostname: "127.0.0.1" });
  panelUrl = `http://127.0.0.1:${panel.server?.port}`;
  stop = async () => {
    await app.stop(true);
    await panel.stop(true);
    await ingest.stop(true);
    await benchmarks.close();
  };
  browser = await openBrowser();
  page = await browser.newPage();
  page.on("request", (request) => void asked.push(request.url()));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => void complaints.push(error.message));
  await page.goto(`${url}/`);
  await page.getByText("Search shipments").first().waitFor();
});
afterAll(async () => {
  await browser.close();
  await stop();
  await runtime.end();
});

test("the port's first page leads there, and it shows every tag and call", async () => {
  expect(page.url().split("#")[0]).toBe(`${url}/v2/docs`);
  for (const text of ["Order parcels", "Create up to 100 shipments", "Close the day"]) {
    await page.getByText(text).first().waitFor();
  }
});

test("it can be searched", async () => {
  const search = page.getByPlaceholder("Search calls");
  await search.fill("Release HELD");
  await page
    .locator('.opblock-summary-path[data-path="/v2/shipments/{id}/stock-release"]')
    .waitFor();
  await page.getByText("Read an order").waitFor({ state: "hidden" });
  await search.fill("");
  await page.getByText("Read an order").first().waitFor();
});

test("with an API key its calls can be tried", async () => {
  await page.getByLabel("API key").fill("key_acme_main");
  await page.getByRole("button", { name: "Use it to try calls" }).click();
  await page.getByText("Calls are sent with this key.").waitFor();
  const call = page.locator("#operations-Shipments-searchShipments");
  await call.locator(".opblock-summary-control").click();
  await call.getByText('curl -sS "$URL/v2/shipments?updatedAfter=').waitFor();
  for (const language of ["curl", "TypeScript", "Python"]) {
    await call.locator("summary", { hasText: language }).waitFor();
  }
  await call.getByRole("button", { name: "Try it out" }).click();
  const answer = page.waitForResponse((response) => response.url().includes("/v2/shipments?"));
  await call.getByRole("button", { name: "Execute" }).click();
  const { status, headers } = await answer.then(async (response) => ({
    status: response.status(),
    headers: await response.request().allHeaders(),
  }));
  expect(headers["authorization"]).toStartWith("Bearer ey");
  expect(status).toBe(200);
});

test("the couriers' first page is their reference, which links to the calls", async () => {
  await page.goto(`${courierUrl}/`);
  expect(page.url()).toBe(`${courierUrl}/v1/docs`);
  await page.getByRole("link", { name: "calls to search and to try" }).click();
  await page.locator('.opblock-summary-path[data-path="/v1/events"]').waitFor();
});

test("the calls of the control panel can be searched", async () => {
  await page.goto(`${panelUrl}/panel/docs`);
  const [wanted, other] = ["/panel/api/couriers/{code}/tokens", "/panel/api/session"].map((path) =>
    page.locator(`.opblock-summary-path[data-path="${path}"]`).first(),
  );
  await other?.waitFor();
  await page.getByPlaceholder("Search calls").fill("couriers/{code}/tokens");
  await other?.waitFor({ state: "hidden" });
  expect(await wanted?.isVisible()).toBe(true);
});

test.each([
  ["webhooks", "/webhooks/docs", "data.shipment.trackingNumber", "X-Service-Signature"],
  ["couriers' events", "/v1/docs", "trackingNumber", "status.code"],
])("the tables of the %s can be searched", async (_, path, found, hidden) => {
  await page.goto(`${path.startsWith("/v1") ? courierUrl : panelUrl}${path}`);
  const [wanted, other] = [found, hidden].map((name) =>
    page.locator("tbody tr", { has: page.getByText(name, { exact: true }) }).first(),
  );
  expect([await wanted?.isVisible(), await other?.isVisible()]).toEqual([true, true]);
  await page.getByLabel("Search the tables").fill("tracking NUMBER");
  await page.keyboard.press("Enter");
  await other?.waitFor({ state: "detached" });
  expect(await wanted?.isVisible()).toBe(true);
});

test("the documents can be searched, and lead to each other and to their parts", async () => {
  await page.goto(`${panelUrl}/docs`);
  await page.getByLabel("Search the documents").fill("replacing the encryption key");
  await page.keyboard.press("Enter");
  await page
    .getByRole("link", { name: "Secrets of the installation: Replacing the encryption key" })
    .click();
  expect(page.url()).toBe(`${panelUrl}/docs/operations/secrets#replacing-the-encryption-key`);
  await page.getByRole("link", { name: "Monitoring", exact: true }).click();
  await page.getByRole("link", { name: "Alarms", exact: true }).first().click();
  expect(page.url()).toBe(`${panelUrl}/docs/operations/monitoring#alarms`);
});

test("the pages ask nobody but their port, and break no rule of their content security policy", () => {
  const others = asked.filter(
    (address) => ![url, courierUrl, panelUrl, "data:"].some((own) => address.startsWith(own)),
  );
  expect(others).toEqual([]);
  expect(complaints).toEqual([]);
});

/**
 * `npm run tool -- screenshots`: the pages of the control panel as they stand in the README and in docs/, taken from a running demo.
 * The demo listens where `npm start` puts it; PANEL_URL and PANEL_TOKEN name another one.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { openBrowser } from "#test/support/clients/browser.ts";

const FOLDER = join(import.meta.dir, "..", "..", "docs", "images");
const SIZE = { width: 1_280, height: 800 };
/** Charts draw when their figures have come. */
const DRAWN_MS = 4_000;

const { PANEL_URL: panel = "http://127.0.0.1:8082", PANEL_TOKEN: token } = process.env;
if (token === undefined) throw new Error("PANEL_TOKEN is not set: the demo's start prints it.");

const SHOTS = [
  { name: "overview", path: "/overview", colorScheme: "light" },
  { name: "shipments", path: "/shipments", colorScheme: "light" },
  { name: "webhooks", path: "/webhooks", colorScheme: "light" },
  { name: "carriers", path: "/carriers", colorScheme: "light" },
  { name: "benchmarks", path: "/benchmarks?destCap=00184", colorScheme: "light" },
  { name: "carrier", path: "/carriers/GLS_ITA?tab=quality", colorScheme: "light" },
  { name: "shipment", path: await newestShipment(), colorScheme: "light" },
  { name: "endpoint", path: await unsteadyEndpoint(), colorScheme: "light" },
  { name: "jobs", path: "/jobs", colorScheme: "light" },
  { name: "doctor", path: "/doctor", colorScheme: "light" },
  { name: "overview-dark", path: "/overview", colorScheme: "dark" },
] as const;

const browser = await openBrowser();
await mkdir(FOLDER, { recursive: true });
for (const { name, path, colorScheme } of SHOTS) {
  const context = await browser.newContext({ viewport: SIZE, colorScheme, locale: "en" });
  await context.request.post(`${panel}/panel/api/session`, { data: { token } });
  const page = await context.newPage();
  await page.goto(`${panel}${path}`);
  await settle(page);
  await page.screenshot({ path: join(FOLDER, `panel-${name}.png`) });
  process.stdout.write(`docs/images/panel-${name}.png\n`);
  await context.close();
}
await browser.close();

async function settle(page: Page): Promise<void> {
  await page.locator("h1").waitFor();
  await page.waitForTimeout(DRAWN_MS);
}

/** The one whose receiver is down now and then. */
async function unsteadyEndpoint(): Promise<string> {
  const { items } = await ask("/channels/aurora-market/webhooks");
  return `/webhooks/${items[0]?.["endpointId"]}?tab=health`;
}

async function newestShipment(): Promise<string> {
  const { items } = await ask("/shipments?companyCode=aurora&status=DELIVERED");
  return `/shipments/${items[0]?.["id"]}`;
}

async function ask(path: string) {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${panel}/panel/api${path}`, { headers });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return (await answer.json()) as { readonly items: readonly Record<string, unknown>[] };
}

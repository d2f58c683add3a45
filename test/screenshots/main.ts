/** The pages of the control panel as they stand in the README and in docs/. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { command, WrongUsage } from "#core/platform/process/command-line.ts";
import { openBrowser } from "#test/support/clients/browser.ts";

const FOLDER = join(import.meta.dir, "..", "..", "docs", "images");
const SIZE = { width: 1_280, height: 800 };
/** Charts draw when their figures have come. */
const DRAWN_MS = 8_000;
/** Of a step in the browser, on a busy machine. */
const STEP_LIMIT_MS = 300_000;

interface Demo {
  readonly panel: string;
  readonly token: string;
}

const shotsOf = async (demo: Demo) =>
  [
    { name: "overview", path: "/overview", colorScheme: "light" },
    { name: "shipments", path: "/shipments", colorScheme: "light" },
    { name: "webhooks", path: "/webhooks", colorScheme: "light" },
    { name: "couriers", path: "/carriers", colorScheme: "light" },
    { name: "benchmarks", path: "/benchmarks?destCap=00184", colorScheme: "light" },
    { name: "courier", path: "/carriers/GLS_ITA?tab=quality", colorScheme: "light" },
    { name: "shipment", path: await newestShipment(demo), colorScheme: "light" },
    { name: "endpoint", path: await unsteadyEndpoint(demo), colorScheme: "light" },
    { name: "jobs", path: "/jobs", colorScheme: "light" },
    { name: "doctor", path: "/doctor", colorScheme: "light" },
    { name: "overview-dark", path: "/overview", colorScheme: "dark" },
  ] as const;

export const tool = command({
  name: "npm run tool -- screenshots",
  forms: ["[--only NAME]"],
  about: `Takes the pictures in docs/images from a running demo, whose start prints its PANEL_TOKEN. PANEL_URL names another panel than
that of npm start.`,
  options: {
    only: { type: "string", value: "NAME", about: "takes those with this in their name" },
  },
  async run({
    values: { only = "" },
    env: { PANEL_URL: panel = "http://127.0.0.1:8082", PANEL_TOKEN: token },
    say,
  }) {
    if (token === undefined) throw new WrongUsage("PANEL_TOKEN is missing.");
    const shots = await shotsOf({ panel, token });
    const browser = await openBrowser();
    await mkdir(FOLDER, { recursive: true });
    for (const { name, path, colorScheme } of shots.filter((shot) => shot.name.includes(only))) {
      const context = await browser.newContext({ viewport: SIZE, colorScheme, locale: "en" });
      await context.request.post(`${panel}/panel/api/session`, { data: { token } });
      const page = await context.newPage();
      page.setDefaultTimeout(STEP_LIMIT_MS);
      await page.goto(`${panel}${path}`);
      await settle(page);
      await page.screenshot({ path: join(FOLDER, `panel-${name}.png`) });
      say(`docs/images/panel-${name}.png`);
      await context.close();
    }
    await browser.close();
  },
});

async function settle(page: Page): Promise<void> {
  await page.locator("h1").waitFor();
  await page.locator(".mantine-Loader-root").first().waitFor({ state: "detached" });
  await page.waitForTimeout(DRAWN_MS);
}

/** The one whose receiver is down now and then. */
async function unsteadyEndpoint(demo: Demo): Promise<string> {
  const { items } = await ask(demo, "/channels/aurora-market/webhooks");
  return `/webhooks/${items[0]?.["endpointId"]}?tab=health`;
}

async function newestShipment(demo: Demo): Promise<string> {
  const { items } = await ask(demo, "/shipments?companyCode=aurora&status=DELIVERED");
  return `/shipments/${items[0]?.["id"]}`;
}

async function ask({ panel, token }: Demo, path: string) {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${panel}/panel/api${path}`, { headers });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return (await answer.json()) as { readonly items: readonly Record<string, unknown>[] };
}

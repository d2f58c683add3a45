/**
 * The control panel (row 26): `bun bench/panel.ts [--rows 100k] [--runs 7] [--quick] [--json]`. A channel of so many shipments and an
 * endpoint of as many deliveries; the panel is a process of its own. The first page is opened in Chromium without a cache.
 */
import type { Browser } from "playwright-core";
import { openBrowser } from "#test/support/clients/browser.ts";
import * as harness from "./harness.ts";
import { figureOf } from "./rows.ts";
import { CHANNEL, loadChannel } from "./search-load.ts";
import { benchSetup } from "./shipments.ts";
import { median } from "./table.ts";
import { nextDecision, record } from "./webhook-load.ts";

const { rows, runs } = harness.readOptions({ rows: [100_000, 10_000], runs: [7, 3] });
const { PANEL_TOKEN: TOKEN } = harness.COMMON_ENV;

/** Milliseconds from the address to a page that is drawn with its figures and takes input, and bytes of its files. */
async function firstPage(browser: Browser, url: string) {
  const viewport = { width: 1_440, height: 900 };
  const context = await browser.newContext({ locale: "en", viewport });
  const answer = await context.request.post(`${url}/panel/api/session`, { data: { token: TOKEN } });
  if (!answer.ok()) throw new Error(`log-in: ${answer.status()}`);
  const page = await context.newPage();
  let bytes = 0;
  const cdp = await context.newCDPSession(page);
  await cdp.send("Network.enable");
  const files = new Set<string>();
  cdp.on("Network.responseReceived", ({ requestId, response }) => {
    if (response.url.includes("/assets/")) files.add(requestId);
  });
  cdp.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (files.has(requestId)) bytes += encodedDataLength;
  });
  await page.goto(`${url}/overview`, { waitUntil: "commit" });
  await page.getByRole("heading", { name: "Pipeline" }).waitFor();
  // The next idle moment: nothing keeps the page from taking input.
  const idle = "new Promise((done) => requestIdleCallback(() => done(performance.now())))";
  const ms = (await page.evaluate(idle)) as number;
  await context.close();
  return { ms, bytes };
}

await harness.runPart(async (defer) => {
  const store = await harness.openStore(defer, benchSetup());
  const { redis } = store.runtime;
  const { ids } = await loadChannel(redis, rows);
  const channel = store.runtime.live.configuration().channels.get(CHANNEL);
  if (!channel) throw new Error("no channel");
  // Nobody sends them: no processors run.
  await record(
    store.runtime,
    ids.map(() => nextDecision(channel, ids, "In transito")),
  );
  const { url } = await harness.startServer("panel", store.env);
  const browser = await openBrowser();
  defer(() => browser.close());
  // The browser's own first page costs more than ours.
  await firstPage(browser, url);
  const pages = [];
  for (let n = 0; n < runs; n += 1) pages.push(await firstPage(browser, url));
  const figures = [
    figureOf("panel first", { ours: median(pages.map(({ ms }) => ms)) }),
    // With the charts, where they came before the end; the limit without them stands in a test.
    figureOf("panel files", { ours: Math.max(...pages.map(({ bytes }) => bytes)) / 1_000 }),
  ];
  return { figures, redis };
});

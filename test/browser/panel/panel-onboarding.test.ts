/** An operator takes on a courier and a merchant from nothing, in the panel alone, with every click counted. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import type { Running, StartRole } from "#core/runtime/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { startPanel } from "#panel/main.ts";
import { startProcessors } from "#processors/main.ts";
import { openBrowser } from "#test/support/clients/browser.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { accessFaults, drawn, openVisitor } from "#test/support/clients/panel-visitor.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

/** Of an operator who takes on a courier, or a merchant. */
const CLICKS = 25;

let receiver: Receiver;
let runtime: TestRuntime;
let roles: Running[];
let browser: Browser;

beforeAll(async () => {
  receiver = await startReceiver();
  runtime = await openTestRuntime(
    {},
    { WEBHOOK_CA_FILE: AUTHORITY.file, CLICKHOUSE_URL: NO_CLICKHOUSE },
  );
  roles = [];
  const starts: StartRole[] = [startProcessors, startPanel, startIngest];
  for (const start of starts) roles.push(await start(runtime, roles));
  browser = await openBrowser();
}, 300_000);

afterAll(async () => {
  await browser?.close();
  for (const { stop } of roles.reverse()) await stop();
  await runtime?.end();
  await receiver?.stop();
});

const urlOf = (role: string) => roles.find(({ name }) => name === role)?.url ?? "";
const visit = (options: Parameters<typeof openVisitor>[2] = {}) =>
  openVisitor(browser, urlOf("panel"), { token: runtime.secrets.panelToken, ...options });

/** Counts the clicks of a page. */
async function counted(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(
    "window.clicks = 0; addEventListener('click', ({ isTrusted, detail }) => { if (isTrusted && detail > 0) window.clicks += 1; }, true)",
  );
  return () => page.evaluate("window.clicks");
}

/** The figures of quality need the analytics, which are not there. */
const faults = (problems: readonly string[]) =>
  problems.filter((problem) => !problem.includes("503 (Service Unavailable)"));
const secretOf = (page: Page, owner: string) =>
  page.getByRole("dialog").getByRole("textbox", { name: owner }).inputValue();
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

describe("an operator", () => {
  test(`takes on a courier with ${CLICKS} clicks at most: its signed event is let in, and its settings are changed`, async () => {
    const { page, open, problems, end } = await visit();
    await open("/");
    const clicks = await counted(page);
    await page.getByRole("link", { name: "Couriers" }).click();
    await button(page, "New courier").click();
    const form = page.getByRole("dialog");
    await form.getByRole("textbox", { name: "Code", exact: true }).fill("NEW_ITA");
    await form.getByRole("textbox", { name: "Name" }).fill("New Express");
    expect(await accessFaults(page)).toEqual([]);
    await form.getByRole("button", { name: "Create" }).click();
    const token = await secretOf(page, "courier NEW_ITA, token");
    const secret = await secretOf(page, "courier NEW_ITA, signing secret");
    expect(await accessFaults(page)).toEqual([]);
    await button(page, "I have copied it").click();
    await page.getByRole("heading", { level: 1, name: "New Express" }).waitFor();
    await page.getByText("managed here").waitFor();
    const sent = { token, courier: "NEW_ITA" };
    const url = urlOf("ingest");
    expect((await push(url, [event()], sent)).status).toBe(403);
    expect((await push(url, [event()], { ...sent, secrets: [secret] })).status).toBe(200);
    await page.getByRole("tab", { name: "Settings" }).click();
    await page.getByRole("textbox", { name: "Messages at once" }).fill("50");
    await page.getByRole("textbox", { name: "OAuth client" }).fill("new-express");
    expect(await accessFaults(page)).toEqual([]);
    await button(page, "Save").click();
    expect(await secretOf(page, "courier NEW_ITA, OAuth client secret")).toStartWith("oauth_");
    await button(page, "I have copied it").click();
    expect(await clicks()).toBeLessThanOrEqual(CLICKS);
    expect((await runtime.live.refresh()).couriers.get("NEW_ITA")).toMatchObject({ burst: 50 });
    await button(page, "Close courier").click();
    await page.getByRole("dialog").getByRole("button", { name: "Close courier" }).click();
    await button(page, "Reopen").waitFor();
    expect((await push(url, [event()], { ...sent, secrets: [secret] })).status).toBe(401);
    await button(page, "Reopen").click();
    await button(page, "Close courier").waitFor();
    expect(faults(problems)).toEqual([]);
    await end();
  });

  test(`takes on a merchant with ${CLICKS} clicks at most: each step is green by fact, the webhook by a test`, async () => {
    const { page, open, problems, end } = await visit();
    await open("/");
    const clicks = await counted(page);
    await page.getByRole("link", { name: "Companies" }).click();
    await button(page, "New company").click();
    const form = page.getByRole("dialog");
    await form.getByRole("textbox", { name: "Code", exact: true }).fill("bottega");
    await form.getByRole("textbox", { name: "Name" }).fill("Bottega");
    await form.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name: "Bottega" }).waitFor();
    await button(page, "New channel").click();
    await form.getByRole("textbox", { name: "Code", exact: true }).fill("bottega-it");
    await form.getByRole("textbox", { name: "Name" }).fill("Bottega Italia");
    expect(await accessFaults(page)).toEqual([]);
    await form.getByRole("combobox", { name: "Couriers" }).click();
    await page.getByRole("option", { name: "New Express" }).click();
    await page.keyboard.press("Tab");
    await form.getByRole("button", { name: "Create" }).click();
    expect(await secretOf(page, "channel bottega-it, API key main")).toStartWith("key_");
    await button(page, "I have copied it").click();
    const steps = page.getByRole("region", { name: "Onboarding" });
    await steps.getByText("Done").nth(1).waitFor();
    await steps.getByText("Missing").nth(2).waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await steps.getByRole("link", { name: "Webhook", exact: true }).click();
    await button(page, "New endpoint").click();
    await form.getByRole("textbox", { name: "URL" }).fill(receiver.url);
    await form.getByRole("textbox", { name: "Alerts go to" }).fill("ops@bottega.test");
    await form.getByRole("button", { name: "Create" }).click();
    await button(page, "I have copied it").click();
    await page.waitForURL(/\/webhooks\/ep_/);
    await button(page, "Send a test").click();
    await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("dialog").getByText("Delivered", { exact: true }).waitFor();
    expect(await clicks()).toBeLessThanOrEqual(CLICKS);
    await open("/channels/bottega-it");
    await steps.getByText("Done").nth(3).waitFor();
    expect(faults(problems)).toEqual([]);
    await end();
  });

  for (const [colorScheme, locale, heading] of [
    ["dark", "en", "Couriers"],
    ["light", "it", "Corrieri"],
    ["dark", "it", "Corrieri"],
  ] as const) {
    test(`the new pages are accessible, ${colorScheme}, in ${locale}`, async () => {
      const { page, open, problems, end } = await visit({ colorScheme, locale });
      await open("/carriers");
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
      for (const path of [
        ...["/carriers/NEW_ITA?tab=settings", "/companies", "/companies/bottega"],
        "/channels/bottega-it",
      ]) {
        await open(path);
        await drawn(page);
        expect([path, await accessFaults(page)]).toEqual([path, []]);
      }
      await open("/companies");
      await page
        .getByRole("button", { name: locale === "it" ? "Nuova azienda" : "New company" })
        .click();
      await page.getByRole("dialog").waitFor();
      await drawn(page);
      expect(await accessFaults(page)).toEqual([]);
      expect(faults(problems)).toEqual([]);
      await end();
    });
  }
});

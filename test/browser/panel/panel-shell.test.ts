/** The frame of the control panel in a real browser: log-in, navigation, language, colours, keyboard. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { VERSION } from "#core/platform/process/version.ts";
import { openBrowser } from "#test/support/clients/browser.ts";
import { openVisitor } from "#test/support/clients/panel-visitor.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";

let product: TestAnalytics;
let browser: Browser;

beforeAll(async () => {
  product = await openTestAnalytics(testSetup());
  browser = await openBrowser();
}, 300_000);

afterAll(async () => {
  await browser?.close();
  await product?.end();
});

const visit = (options: Parameters<typeof openVisitor>[2] = {}) =>
  openVisitor(browser, product.panel, options);
const token = () => product.runtime.secrets.panelToken;

describe("an operator with a token", () => {
  test("is led to the login, from there to the page that was asked for, and out again", async () => {
    const { page, open, problems, requests, end } = await visit();
    await open("/overview?a=1");
    expect(new URL(page.url()).pathname).toBe("/login");
    expect(problems).toEqual([]);
    await page.getByRole("tab", { name: "Operator's token" }).click();
    await page.getByRole("textbox", { name: "Token" }).fill("wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("alert").filter({ hasText: "incorrect" }).waitFor();
    problems.length = 0;
    await page.getByRole("textbox", { name: "Token" }).fill(token());
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe("/overview?a=1");
    await page.waitForFunction('document.title === "Overview · Waybill"');
    await page.getByRole("button", { name: "Your account" }).click();
    await page.getByText(`Waybill ${VERSION}`).waitFor();
    await page.getByRole("menuitem", { name: "Log out" }).click();
    await page.waitForURL("**/login");
    await open("/overview");
    expect(new URL(page.url()).pathname).toBe("/login");
    expect(requests.filter((url) => !url.startsWith(product.panel))).toEqual([]);
    await end();
  });

  test("is never led to another host by the link of a login", async () => {
    for (const next of [
      "https://evil.example/",
      "//evil.example/",
      "/\\evil.example",
      "/\t/evil.example",
    ]) {
      const { page, open, end } = await visit();
      await open(`/login?next=${encodeURIComponent(next)}`);
      await page.getByRole("tab", { name: "Operator's token" }).click();
      await page.getByRole("textbox", { name: "Token" }).fill(token());
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      expect(new URL(page.url()).origin).toBe(product.panel);
      await end();
    }
  });
});

describe("every visitor", () => {
  test("reads the panel in English or Italian, light or dark, and finds the choice again", async () => {
    const { page, open, problems, end } = await visit({ token: token(), locale: "it-IT" });
    await open("/overview");
    expect(await page.locator("h1").textContent()).toBe("Panoramica");
    expect(await page.locator("html").getAttribute("lang")).toBe("it");
    await page.getByRole("button", { name: "Lingua" }).click();
    await page.getByRole("menuitem", { name: "English" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await page.getByRole("button", { name: "Colour scheme" }).click();
    await page.getByRole("menuitem", { name: "Dark" }).click();
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    const scheme = await page.locator("html").getAttribute("data-mantine-color-scheme");
    expect(scheme).toBe("dark");
    expect(problems.filter((text) => !text.includes("404"))).toEqual([]);
    await end();
  });

  test("skips to the content and opens the menu by keyboard", async () => {
    const { page, open, end } = await visit({
      token: token(),
      viewport: { width: 360, height: 740 },
    });
    await open("/overview");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to the content");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe("Menu");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Overview", exact: true }).last().waitFor();
    await end();
  });

  test("is told on a page when there is no such address", async () => {
    const { page, open, end } = await visit({ token: token() });
    await open("/shipments/none/of/these");
    expect(await page.locator("h1").textContent()).toBe("There is no such page");
    await page.getByRole("link", { name: "To the start page" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await end();
  });
});

/** A merchant's visit to their own settings in the control panel, with what it changes: a key, a courier's name, a mail. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { countAddressCheck } from "#core/merchants/store/address-checks.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startPanel } from "#panel/main.ts";
import { openBrowser } from "#test/support/clients/browser.ts";
import { accessFaults, openVisitor, overflowOf } from "#test/support/clients/panel-visitor.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";

let mails: MailServer;
let api: TestApi;
let panel: Running;
let browser: Browser;
let owner: TestAccount;
let reader: TestAccount;

beforeAll(async () => {
  const setup = testSetup();
  const [company] = setup.companies ?? [];
  const [channel] = company?.channels ?? [];
  if (company) company.products = ["checkAddress"];
  if (channel) {
    const template = { event: "default", language: "it", subject: "Ciao", body: "Ciao" } as const;
    channel.emails = { managed: true, from: "shop@acme.test", templates: [template] };
    channel.addressCheck = true;
  }
  mails = await startMailServer();
  api = await openTestApi(setup, "away", { SMTP_URL: mails.url });
  const { redis, live } = api.runtime;
  const { id: channelId, companyId } = live.configuration().channelByCode.get("acme-it") ?? {
    id: 0,
    companyId: 0,
  };
  for (let checked = 0; checked < 2; checked += 1) {
    await countAddressCheck(redis, { companyId, channelId }, live.now());
  }
  panel = await startPanel(api.runtime);
  owner = await makeAccount(api.runtime, "company", "owner", { companyCode: "acme" });
  reader = await makeAccount(api.runtime, "company", "read-only", { companyCode: "acme" });
  browser = await openBrowser();
}, 300_000);

afterAll(async () => {
  await browser?.close();
  await panel?.stop();
  await api?.end();
  await mails?.stop();
});

type Options = Omit<Parameters<typeof openVisitor>[2], "token">;

/** Somebody who has logged in with their password. */
async function visit({ account, password }: TestAccount, options: Options = {}) {
  const url = panel.url ?? "";
  const visitor = await openVisitor(browser, url, options);
  const data = { email: account.email, password };
  const answer = await visitor.page.request.post(`${url}/panel/api/session`, { data });
  expect(answer.status()).toBe(204);
  return visitor;
}

const tab = (page: Page, name: string) => page.getByRole("tab", { name, exact: true }).click();
const heading = (page: Page, name: string) =>
  page.getByRole("heading", { level: 1, name }).waitFor();
const tokenOf = async (apiKey: string) => api.call("POST", "/v2/auth/token", { body: { apiKey } });

describe("the owner of a company", () => {
  test("issues an API key, uses it, and revokes it", async () => {
    const { page, open, problems, end } = await visit(owner);
    await open("/companies");
    await page.getByRole("link", { name: "Acme Italia" }).click();
    await heading(page, "Acme Italia");
    await page.getByRole("button", { name: "Issue a key" }).click();
    const form = page.getByRole("dialog");
    await form.getByRole("textbox", { name: "Code" }).fill("erp");
    await form.getByRole("combobox", { name: "Scopes" }).click();
    await page.getByRole("option", { name: "shipments:read" }).click();
    await page.keyboard.press("Escape");
    await form.getByRole("button", { name: "Issue", exact: true }).click();
    const key = await page.getByRole("textbox", { name: "API key" }).inputValue();
    const { body } = await tokenOf(key);
    expect(body.scopes).toEqual(["shipments:read"]);
    expect((await api.call("GET", "/v2/shipments", { token: body.token })).status).toBe(200);
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("row", { name: /erp.*Active.*shipments:read/ }).waitFor();
    expect(await page.content()).not.toContain(key);
    await page.getByRole("button", { name: "Revoke erp" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("row", { name: /erp.*Revoked/ }).waitFor();
    expect((await tokenOf(key)).status).toBe(401);
    expect(problems).toEqual([]);
    await end();
  });

  test("issues a key of test mode, which sees the channel's shadow and stands in the same list", async () => {
    const { page, open, problems, end } = await visit(owner);
    await open("/channels/acme-it");
    await page.getByRole("button", { name: "Issue a key" }).click();
    const form = page.getByRole("dialog");
    await form.getByRole("textbox", { name: "Code" }).fill("trial");
    await form.getByRole("radio", { name: "Test" }).check();
    expect(await accessFaults(page)).toEqual([]);
    await form.getByRole("button", { name: "Issue", exact: true }).click();
    const key = await page.getByRole("textbox", { name: "API key" }).inputValue();
    expect(key).toStartWith("key_test_");
    expect((await tokenOf(key)).status).toBe(200);
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("row", { name: /trial.*Test.*Active.*All scopes/ }).waitFor();
    await page.getByRole("row", { name: /main.*Live.*Active/ }).waitFor();
    expect(problems).toEqual([]);
    await end();
  });

  test("writes a mail template with its preview beside it, gets a test mail, and saves it", async () => {
    const { page, open, problems, end } = await visit(owner);
    await open("/channels/acme-it");
    await tab(page, "Mails");
    await page.getByRole("button", { name: "New template" }).click();
    const editor = page.getByRole("dialog");
    await editor.getByRole("textbox", { name: "Event" }).fill("review-request");
    await editor.getByRole("textbox", { name: "Subject" }).fill("Come va, {{consignee.name}}?");
    const text = '<p style="color: rgb(200, 0, 0)">{{trackingNumber}} {{courrier}}</p>';
    await editor.getByRole("textbox", { name: "Text", exact: true }).fill(text);
    await editor.getByText("Come va, Maria Bianchi?").waitFor();
    await editor.getByText("Unknown placeholders: courrier").waitFor();
    const shown = page.frameLocator("iframe[title=Preview]").getByText("TEST0000000001");
    await shown.waitFor();
    const colour = await shown.evaluate(
      (element) => element.ownerDocument.defaultView?.getComputedStyle(element).color,
    );
    expect(colour).toBe("rgb(200, 0, 0)");
    const address = editor.getByRole("textbox", { name: "Send a test mail to" });
    expect(await address.inputValue()).toBe(owner.account.email);
    await editor.getByRole("button", { name: "Send", exact: true }).click();
    await editor.getByText(`Sent to ${owner.account.email}`).waitFor();
    const mail = await eventually(() => mails.received.at(-1), "the test mail arrives");
    expect(mail).toMatchObject({ from: "shop@acme.test", subject: "Come va, Maria Bianchi?" });
    expect(mail?.html).toContain("TEST0000000001");
    expect(await accessFaults(page)).toEqual([]);
    await editor.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /review-request.*Italian.*Come va/ }).waitFor();
    expect(problems).toEqual([]);
    await end();
  });

  test("gives a courier the name that the shop uses, and a box its measures", async () => {
    const { page, open, problems, end } = await visit(owner);
    await open("/channels/acme-it");
    await tab(page, "Couriers");
    expect(await page.getByRole("button", { name: "Add a courier" }).count()).toBe(0);
    await page.getByRole("button", { name: "Change GLS_ITA" }).click();
    const form = page.getByRole("dialog");
    await form.getByRole("combobox", { name: "Other names" }).fill("gielle");
    await page.keyboard.press("Enter");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /GLS_ITA.*gielle/ }).waitFor();
    await page.getByRole("link", { name: "acme", exact: true }).click();
    await heading(page, "Acme S.p.A.");
    await page.getByRole("button", { name: "New box" }).click();
    await form.getByRole("textbox", { name: "Code" }).fill("XL");
    await form.getByRole("textbox", { name: "Length" }).fill("80.5");
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /XL.*80.5 × 20 × 10 cm/ }).waitFor();
    const parcels = [{ weight: 1, boxCode: "XL" }];
    const body = { shipments: [item("MERCHANT-1", { courier: "Gielle", parcels })] };
    const token = await api.token("key_acme_main");
    expect((await api.call("POST", "/v2/shipments", { token, body })).status).toBe(201);
    expect(problems).toEqual([]);
    await end();
  });

  test("reads the allowance and the billed checks, and saves the sender", async () => {
    const { page, open, end } = await visit(owner);
    await open("/channels/acme-it");
    await tab(page, "Settings");
    await page.getByText("100,000").first().waitFor();
    expect(await page.getByRole("textbox", { name: "Requests at once" }).count()).toBe(0);
    await page.getByRole("textbox", { name: "Town" }).fill("Milano");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved").waitFor();
    await tab(page, "Usage");
    await page.getByText(/of 100,000 left/).waitFor();
    const checks = page.getByRole("region", { name: "Address checks" }).first();
    await checks.getByRole("row", { name: "Total 2" }).waitFor();
    const configuration = await api.runtime.live.refresh();
    expect(configuration.channelByCode.get("acme-it")?.sender).toEqual({ city: "Milano" });
    await page.goto(`${panel.url}/channels/beta-it`);
    await heading(page, "There is no such page");
    await end();
  });
});

describe("somebody who may only read", () => {
  test("sees everything and no button, at 360 pixels, in both modes, without a fault of accessibility", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      const viewport = { width: 360, height: 800 };
      const { page, open, problems, end } = await visit(reader, { colorScheme, viewport });
      await open("/companies/acme");
      await page.getByRole("heading", { name: "Boxes" }).waitFor();
      expect(await accessFaults(page)).toEqual([]);
      await open("/channels/acme-it");
      for (const name of ["API keys", "Couriers", "Mails", "Settings", "Usage"]) {
        await tab(page, name);
        await page.getByRole("tabpanel").locator("section").first().waitFor();
        expect([name, await accessFaults(page)]).toEqual([name, []]);
        expect([name, await overflowOf(page)]).toEqual([name, 0]);
        const buttons = await page.getByRole("tabpanel").getByRole("button").allTextContents();
        expect([name, buttons.filter((text) => text !== "Show")]).toEqual([name, []]);
      }
      expect(problems).toEqual([]);
      await end();
    }
  });
});

describe("an operator", () => {
  test("renames a channel, switches its tracking page on, and is told what is wrong with a URL where it was typed", async () => {
    const operator = await makeAccount(api.runtime, "operator", "operator");
    const { page, open, end } = await visit(operator);
    await open("/channels/acme-outlet");
    await tab(page, "Settings");
    const own = page.getByRole("region", { name: "Channel" }).first();
    await own.getByRole("textbox", { name: "Name" }).fill("Acme Outlet Store");
    await own.getByRole("switch", { name: "Public tracking page" }).check();
    await own.getByRole("textbox", { name: "URL of webhooks v1" }).fill("ftp://acme.test");
    await own.getByRole("button", { name: "Save" }).click();
    await own.getByText(/^Only https:/).waitFor();
    await own.getByRole("textbox", { name: "URL of webhooks v1" }).fill("");
    await own.getByRole("button", { name: "Save" }).click();
    await heading(page, "Acme Outlet Store");
    await page.getByRole("button", { name: "Deactivate" }).click();
    await page.getByRole("dialog").getByText("Its API keys stop working").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    const saved = (await api.runtime.live.refresh()).channelByCode.get("acme-outlet");
    expect(saved).toMatchObject({
      name: "Acme Outlet Store",
      trackingPage: true,
      language: "it",
      active: true,
    });
    await open("/audit");
    await page.getByText(/name: "acme-outlet" → "Acme Outlet Store"/).waitFor();
    await end();
  });

  test("raises a channel's allowance and adds a courier, by keyboard, in dialogues without a fault", async () => {
    const operator = await makeAccount(api.runtime, "operator", "admin");
    const { page, open, problems, end } = await visit(operator, {
      viewport: { width: 360, height: 800 },
    });
    await open("/channels/acme-outlet");
    await tab(page, "Couriers");
    await page.getByRole("button", { name: "Add a courier" }).press("Enter");
    const form = page.getByRole("dialog");
    await form.getByRole("combobox", { name: "Courier" }).fill("BRT");
    await page.getByRole("option", { name: "BRT_ITA" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await accessFaults(page)).toEqual([]);
    await form.getByRole("button", { name: "Save" }).press("Enter");
    await page.getByRole("button", { name: "Change BRT_ITA" }).press("Enter");
    await form.getByRole("combobox", { name: "Sender accounts" }).waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await tab(page, "Settings");
    const allowance = page.getByRole("textbox", { name: "Requests at once" });
    await allowance.fill("777");
    await page.keyboard.press("Enter");
    await eventually(async () => {
      const { channelByCode } = await api.runtime.live.refresh();
      return channelByCode.get("acme-outlet")?.bucketSize === 777;
    }, "the allowance is saved");
    expect(problems).toEqual([]);
    await end();
  });
});

/** Two people at the same form, and what a dialogue does not lose: nobody undoes a colleague's change, and no key closes over a secret. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Locator, Page } from "playwright-core";
import type { Running } from "#core/runtime/runtime.ts";
import { startPanel } from "#panel/main.ts";
import { en } from "#panel/web/i18n/en.ts";
import { it } from "#panel/web/i18n/it.ts";
import { openBrowser } from "#test/support/clients/browser.ts";
import {
  accessFaults,
  drawn,
  openVisitor,
  type Visitor,
} from "#test/support/clients/panel-visitor.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

/** Each scheme and each language once. */
const LOOKS = [
  { colorScheme: "light", locale: "en", t: en },
  { colorScheme: "dark", locale: "it-IT", t: it },
] as const;
type Words = (typeof LOOKS)[number]["t"];

let runtime: TestRuntime;
let panel: Running;
let browser: Browser;
let owner: TestAccount;
let endpointId: string;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: "http://nobody:nothing@127.0.0.1:1/none",
  });
  panel = await startPanel(runtime);
  owner = await makeAccount(runtime, "company", "owner", { companyCode: "acme" });
  const hook = { url: "https://8.8.8.8/hook", alertEmail: "ops@acme.test" };
  const made = await call("POST", "/channels/acme-it/webhooks", hook);
  endpointId = made.endpointId;
  await call("PUT", "/channels/acme-it/templates/review/it", { subject: "Com'era?", body: "Ciao" });
  browser = await openBrowser();
}, 300_000);

afterAll(async () => {
  await browser?.close();
  await panel?.stop();
  await runtime?.end();
});

const url = () => panel.url ?? "";

/** A colleague, who is the owner of the company unless it is the operator of the token. */
async function call(method: string, path: string, body?: object, cookie?: string) {
  const who = cookie
    ? { cookie, "sec-fetch-site": "same-origin" }
    : { authorization: `Bearer ${runtime.secrets.panelToken}` };
  const answer = await fetch(`${url()}/panel/api${path}`, {
    method,
    headers: { ...who, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  expect([method, path, answer.ok, text]).toEqual([method, path, true, text]);
  return text === "" ? null : JSON.parse(text);
}

function visit(options: object): Promise<Visitor> {
  return openVisitor(browser, url(), { token: runtime.secrets.panelToken, ...options });
}

async function saveIn(dialog: Locator, t: Words): Promise<void> {
  await dialog.getByRole("button", { name: t.common.save, exact: true }).click();
}

async function openEndpoint({ page, open }: Visitor, t: Words): Promise<Locator> {
  await open(`/webhooks/${endpointId}`);
  await page.getByRole("button", { name: t.webhooks.more, exact: true }).click();
  await page.getByRole("menuitem", { name: t.webhooks.change }).click();
  return page.getByRole("dialog");
}

describe("a form whose thing a colleague changes meanwhile", () => {
  for (const { t, ...look } of LOOKS) {
    test(`says who it was and lets each field be theirs or one's own, without a fault of accessibility: ${look.locale}, ${look.colorScheme}`, async () => {
      const visitor = await visit(look);
      const { page, end } = visitor;
      const words = t.webhooks.settingWords;
      const path = `/webhooks/${endpointId}`;
      await call("PATCH", path, {
        maxConcurrency: 5,
        maxPerSecond: null,
        alertEmail: "a@acme.test",
      });
      const dialog = await openEndpoint(visitor, t);
      const concurrency = dialog.getByRole("textbox", { name: words.maxConcurrency.label });
      await concurrency.fill("20");
      await dialog.getByRole("textbox", { name: words.maxPerSecond.label }).fill("9");
      const theirs = { maxConcurrency: 30, alertEmail: "theirs@acme.test" };
      await call("PATCH", path, theirs, owner.cookie);
      await saveIn(dialog, t);
      const alert = dialog.getByRole("alert");
      await alert.getByText("owner@acme.test").waitFor();
      // A field that was not touched has their value at once, and can be set back.
      const email = dialog.getByRole("textbox", { name: t.webhooks.alertEmail });
      expect(await email.inputValue()).toBe("theirs@acme.test");
      await dialog.getByText("a@acme.test", { exact: true }).waitFor();
      expect(await concurrency.inputValue()).toBe("20");
      expect(await accessFaults(page)).toEqual([]);
      await dialog.getByRole("button", { name: t.common.takeTheirs }).click();
      expect(await concurrency.inputValue()).toBe("30");
      await saveIn(dialog, t);
      await dialog.waitFor({ state: "detached" });
      expect(await call("GET", path)).toMatchObject({ ...theirs, maxPerSecond: 9 });
      await end();
    }, 300_000);
  }

  test("keeps one's own where that is chosen, of a template too, and nothing of the colleague's is lost", async () => {
    const { page, open, end } = await visit({});
    await open("/channels/acme-it?tab=mails");
    await page.getByRole("button", { name: "Change review it" }).click();
    const dialog = page.getByRole("dialog");
    const path = "/channels/acme-it/templates/review/it";
    await dialog.getByRole("textbox", { name: "Subject" }).fill("Mine");
    await call("PUT", path, { subject: "Theirs", body: "Their words" });
    await saveIn(dialog, en);
    await dialog.getByRole("alert").getByText("PANEL_TOKEN").waitFor();
    expect(await dialog.getByRole("textbox", { name: "Text" }).inputValue()).toBe("Their words");
    await saveIn(dialog, en);
    await dialog.waitFor({ state: "detached" });
    const { emails } = await call("GET", "/channels/acme-it");
    expect(emails.templates).toMatchObject([{ subject: "Mine", body: "Their words" }]);
    await end();
  }, 300_000);

  test("is saved without a question where they have changed another part of it", async () => {
    const { page, open, end } = await visit({});
    await open("/channels/acme-it?tab=settings");
    const own = page.getByRole("region", { name: en.merchants.ownSettings });
    await own.getByRole("textbox", { name: "Name" }).fill("Acme, mine");
    await call("PUT", "/channels/acme-it/rate-limit", { bucketSize: 777 });
    await saveIn(own, en);
    await page.getByText("Saved").waitFor();
    expect(await call("GET", "/channels/acme-it")).toMatchObject({
      name: "Acme, mine",
      rateLimit: { bucketSize: 777 },
    });
    await end();
  }, 300_000);

  test("shows what they have changed as long as nothing was written in it", async () => {
    const visitor = await visit({});
    const dialog = await openEndpoint(visitor, en);
    const email = dialog.getByRole("textbox", { name: en.webhooks.alertEmail });
    await email.waitFor();
    await call("PATCH", `/webhooks/${endpointId}`, { alertEmail: "fresh@acme.test" });
    await eventually(
      async () => (await email.inputValue()) === "fresh@acme.test",
      "theirs is shown",
    );
    await visitor.end();
  }, 300_000);

  test("of an account takes the colleague's role or one's own", async () => {
    const member = await makeAccount(runtime, "company", "member", { companyCode: "acme" });
    const { page, open, end } = await visit({});
    await open("/accounts");
    await page.getByRole("button", { name: "Change member@acme.test" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("combobox", { name: "Role" }).click();
    await page.getByRole("option", { name: en.accounts.roles.owner }).click();
    await call("PATCH", `/accounts/${member.account.id}`, { role: "read-only" }, owner.cookie);
    await saveIn(dialog, en);
    await dialog.getByRole("alert").getByText("owner@acme.test").waitFor();
    await dialog.getByRole("button", { name: "Take theirs" }).click();
    expect(await dialog.getByRole("combobox", { name: "Role" }).inputValue()).toBe(
      en.accounts.roles["read-only"],
    );
    await end();
  }, 300_000);
});

/** Escape, and a click outside. */
const WAYS_OUT: readonly ((page: Page) => Promise<void>)[] = [
  (page) => page.keyboard.press("Escape"),
  (page) => page.mouse.click(5, 300),
];

describe("a dialogue that closing would lose something of", () => {
  for (const { t, ...look } of LOOKS) {
    test(`asks first about a secret that is shown once: ${look.locale}, ${look.colorScheme}`, async () => {
      const { page, open, end } = await visit(look);
      await open("/channels/acme-it?tab=keys");
      await page.getByRole("button", { name: t.merchants.issueKey }).click();
      await page.getByRole("button", { name: t.merchants.issue, exact: true }).click();
      const key = page.getByRole("textbox", { name: t.merchants.apiKey });
      await key.waitFor();
      const question = page.getByRole("dialog", { name: t.common.lossOfSecret.title });
      for (const leave of WAYS_OUT) {
        // Keys are heard once the dialogue has been drawn.
        await drawn(page);
        await leave(page);
        await question.waitFor();
        expect(await accessFaults(page)).toEqual([]);
        await question.getByRole("button", { name: t.common.lossOfSecret.stay }).click();
        await question.waitFor({ state: "detached" });
        expect(await key.inputValue()).toMatch(/^key_/);
      }
      await page.getByRole("button", { name: t.common.iHaveCopied }).click();
      await key.waitFor({ state: "detached" });
      await end();
    }, 300_000);

    test(`asks first about a template that is half written, and about no other: ${look.locale}, ${look.colorScheme}`, async () => {
      const { page, open, end } = await visit(look);
      await open("/channels/acme-it?tab=mails");
      const add = page.getByRole("button", { name: t.merchants.newTemplate });
      const subject = page.getByRole("textbox", { name: t.merchants.subject });
      await add.click();
      await subject.waitFor();
      await drawn(page);
      await page.keyboard.press("Escape");
      await subject.waitFor({ state: "detached" });
      await add.click();
      await subject.fill("Half a subj");
      const question = page.getByRole("dialog", { name: t.common.lossOfDraft.title });
      for (const leave of WAYS_OUT) {
        // Keys are heard once the dialogue has been drawn.
        await drawn(page);
        await leave(page);
        await question.waitFor();
        expect(await accessFaults(page)).toEqual([]);
        // The question's own Escape goes back to the form.
        await drawn(page);
        await page.keyboard.press("Escape");
        await question.waitFor({ state: "detached" });
        expect(await subject.inputValue()).toBe("Half a subj");
      }
      await drawn(page);
      await page.keyboard.press("Escape");
      await question.getByRole("button", { name: t.common.lossOfDraft.leave }).click();
      await subject.waitFor({ state: "detached" });
      await end();
    }, 300_000);
  }
});

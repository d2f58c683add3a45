/** A day of each person at the control panel, from the first click to what it changed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { openTestAnalytics, type TestAnalytics } from "#test/support/analytics.ts";
import { openBrowser } from "#test/support/browser.ts";
import { event, push } from "#test/support/courier.ts";
import { openVisitor } from "#test/support/panel-visitor.ts";
import { testSetup } from "#test/support/setup.ts";
import { addShipment } from "#test/support/shipments.ts";

const CODE = "NEW-7";
const PARCEL = "PANEL-DAY-1";

let product: TestAnalytics;
let browser: Browser;
let shipmentId: number;

beforeAll(async () => {
  product = await openTestAnalytics(testSetup());
  shipmentId = await addShipment(product.runtime, PARCEL, { orderReference: "ORDER-7" });
  const told = { code: CODE, description: "Consegnata al vicino" };
  const events = [
    event({ trackingNumber: PARCEL, occurredAt: "2026-11-10T08:00:00+01:00" }),
    event({ trackingNumber: PARCEL, occurredAt: "2026-11-10T10:00:00+01:00", status: told }),
    { eventId: "broken-1", trackingNumber: PARCEL, occurredAt: "yesterday", status: told },
  ];
  const { body } = await push(product.ingest, events, { token: "tok_gls_1" });
  expect(body).toMatchObject({ accepted: 2, invalid: 1 });
  await product.settled();
  browser = await openBrowser();
}, 120_000);

afterAll(async () => {
  await browser?.close();
  await product?.end();
});

const visit = (token: string | null = product.runtime.secrets.panelToken) =>
  openVisitor(browser, product.panel, token === null ? {} : { token });

async function headingOf(page: Page, name: string): Promise<void> {
  await page.getByRole("heading", { level: 1, name }).waitFor();
}

describe("an operator", () => {
  test("finds a parcel, maps its carrier's code after a preview, sees the shipment change, and takes it back", async () => {
    const { page, open, problems, end } = await visit();
    await open("/shipments");
    await page.getByRole("textbox", { name: "Search" }).fill(PARCEL);
    await page.getByText("1 shipments").waitFor();
    await page.getByRole("link", { name: PARCEL }).click();
    await headingOf(page, PARCEL);
    await page.getByText("Code not mapped").waitFor();
    await page.getByRole("link", { name: "Carriers" }).click();
    await page.getByRole("button", { name: `Map ${CODE}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("combobox", { name: "Status" }).click();
    await page.getByRole("option", { name: "Delivered" }).click();
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText("1 events of 1 shipments").waitFor();
    await dialog.getByRole("button", { name: "Apply" }).click();
    await page.getByText("Every code that was sent is mapped.").waitFor();
    await open(`/shipments/${shipmentId}`);
    const head = page.locator("main, #content").first();
    await head.getByText("Delivered").first().waitFor();
    await open("/carriers/GLS_ITA");
    await page.getByRole("tab", { name: "Catalogue" }).click();
    await page.getByText("1 shipments read again, 1 changed").waitFor();
    await page.getByRole("button", { name: "Take back" }).click();
    await page.getByRole("button", { name: `Map ${CODE}` }).waitFor();
    expect(problems).toEqual([]);
    await end();
  });

  test("issues a token that is shown once and works at once", async () => {
    const { page, open, end } = await visit();
    await open("/carriers/BRT_ITA");
    const tokens = page.getByRole("region", { name: "Tokens" }).first();
    await tokens.getByRole("button", { name: "Issue" }).click();
    const dialog = page.getByRole("dialog");
    const token = await dialog.getByRole("textbox", { name: "Tokens" }).inputValue();
    const { status } = await push(product.ingest, [event()], { token, courier: "BRT_ITA" });
    expect(status).toBe(200);
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.reload();
    await headingOf(page, "BRT");
    expect(await page.getByText(token).count()).toBe(0);
    await end();
  });
});

describe("a courier", () => {
  test("finds why an event was INVALID", async () => {
    const { page, open, end } = await visit();
    await open("/carriers/GLS_ITA");
    await page.getByRole("tab", { name: "Message finder" }).click();
    await page.getByRole("textbox", { name: "Id", exact: true }).fill("broken-1");
    await page.keyboard.press("Enter");
    await page.getByText("INVALID", { exact: true }).waitFor();
    await page.getByText(/occurredAt/).waitFor();
    await end();
  });
});

describe("a merchant", () => {
  test("is told what is wrong with the URL of a new endpoint, where it was typed", async () => {
    const { page, open, end } = await visit();
    await open("/webhooks");
    await page.getByRole("button", { name: "New endpoint" }).click();
    const form = page.getByRole("dialog");
    await form.getByRole("textbox", { name: "URL" }).fill("http://merchant.example/hook");
    await form.getByRole("textbox", { name: "Alerts go to" }).fill("ops@acme.test");
    await form.getByRole("button", { name: "Create" }).click();
    await form.getByText(/https/).first().waitFor();
    await end();
  });
});

describe("an invited colleague", () => {
  test("follows the link, chooses a password, and logs in with it from then on", async () => {
    const { body } = await product.call("POST", "/panel/api/invitations", {
      ...{ email: "ada@waybill.test", name: "Ada", kind: "operator", role: "read-only" },
    });
    const { page, end } = await visit(null);
    await page.goto(`${product.panel}${new URL(body.link).pathname}`);
    await headingOf(page, "Welcome to Waybill");
    await page.getByRole("textbox", { name: "Password", exact: true }).fill("a long pass phrase");
    await page.getByRole("textbox", { name: "Password again" }).fill("a long pass phrase");
    await page.getByRole("button", { name: "Start" }).click();
    await headingOf(page, "Overview");
    await page.getByRole("button", { name: "Your account" }).click();
    await page.getByText("ada@waybill.test").waitFor();
    await page.getByRole("menuitem", { name: "Log out" }).click();
    await page.getByRole("textbox", { name: "E-mail address" }).fill("ada@waybill.test");
    await page.getByRole("textbox", { name: "Password" }).fill("a long pass phrase");
    await page.keyboard.press("Enter");
    await headingOf(page, "Overview");
    // Who only reads sees no button that changes anything.
    await page.getByRole("link", { name: "Webhooks" }).click();
    await headingOf(page, "Webhooks");
    expect(await page.getByRole("button", { name: "New endpoint" }).count()).toBe(0);
    await end();
  });
});

describe("an admin", () => {
  test("invites somebody by a link shown once, changes their role, and finds it in the audit log", async () => {
    const { page, open, problems, end } = await visit();
    await open("/accounts");
    await page.getByRole("button", { name: "Invite somebody" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "E-mail address" }).fill("grace@waybill.test");
    await dialog.getByRole("textbox", { name: "Name" }).fill("Grace");
    await dialog.getByRole("button", { name: "Invite", exact: true }).click();
    const shown = page.getByRole("textbox", { name: "Link of the invitation" });
    const link = new URL(await shown.inputValue());
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("row", { name: /grace@waybill\.test.*Read-only.*Invited/ }).waitFor();
    // The first admin's invitation has no address yet; the token's operator may take it back.
    await page.getByRole("button", { name: "Change Admin" }).waitFor();

    const invited = await visit(null);
    await invited.page.goto(`${product.panel}${link.pathname}`);
    await headingOf(invited.page, "Welcome to Waybill");
    for (const name of ["Password", "Password again"]) {
      const field = invited.page.getByRole("textbox", { name, exact: true });
      await field.fill("another long pass phrase");
    }
    await invited.page.getByRole("button", { name: "Start" }).click();
    await headingOf(invited.page, "Overview");
    await invited.end();

    await open("/accounts");
    await page.getByRole("button", { name: "Change grace@waybill.test" }).click();
    await page.getByRole("dialog").getByRole("combobox", { name: "Role" }).click();
    await page.getByRole("option", { name: "Operator" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /grace@waybill\.test.*Operator.*Active/ }).waitFor();
    await page.getByRole("link", { name: "Audit log" }).click();
    await headingOf(page, "Audit log");
    await page.getByText('role: "read-only" → "operator"').waitFor();
    expect(await page.getByRole("region", { name: "Audit log" }).textContent()).not.toContain(
      link.pathname,
    );
    expect(problems).toEqual([]);
    await end();
  });
});

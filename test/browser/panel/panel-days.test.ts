/** A day of each person at the control panel, from the first click to what it changed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import type { CourierQuality } from "#analytics/insights.ts";
import { totpCode } from "#core/accounts/rules/totp.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { inviteFirstAdmin } from "#panel/server/accounts/first-admin.ts";
import { openBrowser } from "#test/support/clients/browser.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { accessFaults, drawn, openVisitor } from "#test/support/clients/panel-visitor.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { bytesOfBase32 } from "#test/support/data/base32.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";

const CODE = "NEW-7";
/** Sent once, and mapped by nobody. */
const OPEN_CODE = "OPEN-9";
const PARCEL = "PANEL-DAY-1";
/** More than a page of the list has. */
const OTHER_COMPANIES = 201;
/** Of the codes of a second factor. */
const STEP_SECONDS = 30;
/** Of more events than one answer has. */
const LONG_MESSAGE = "message-long";

let product: TestAnalytics;
let browser: Browser;
let shipmentId: number;

beforeAll(async () => {
  const setup = testSetup();
  for (const courier of setup.couriers ?? []) courier.acceptingEvents = courier.code === "GLS_ITA";
  for (let at = 1; at <= OTHER_COMPANIES; at += 1) {
    const number = String(at).padStart(3, "0");
    setup.companies?.push({
      code: `shop-${number}`,
      name: `Shop ${number}`,
      seatPostcode: "20121",
    });
  }
  product = await openTestAnalytics(setup);
  await inviteFirstAdmin(product.runtime, product.panel);
  shipmentId = await addShipment(product.runtime, PARCEL, { orderReference: "ORDER-7" });
  const status = { code: CODE, description: "Spedizione consegnata" };
  const events = [
    event({ trackingNumber: PARCEL, occurredAt: "2026-11-10T08:00:00+01:00" }),
    event({ trackingNumber: PARCEL, occurredAt: "2026-11-10T10:00:00+01:00", status }),
    event({
      trackingNumber: PARCEL,
      occurredAt: "2026-11-10T09:00:00+01:00",
      status: { code: OPEN_CODE, description: "Verifica" },
    }),
    { eventId: "broken-1", trackingNumber: PARCEL, occurredAt: "yesterday", status },
  ];
  const long = Array.from({ length: 120 }, (_, at) => ({
    ...event({ eventId: `long-${at}`, trackingNumber: "NOBODYS" }),
    ...(at === 110 && { occurredAt: "yesterday" }),
  }));
  const envelope = { messageId: LONG_MESSAGE };
  await push(product.ingest, long, { token: "tok_gls_1", envelope });
  const { body } = await push(product.ingest, events, { token: "tok_gls_1" });
  expect(body).toMatchObject({ accepted: 3, invalid: 1 });
  await product.settled();
  browser = await openBrowser();
}, 300_000);

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
  test("finds a parcel, takes the suggestion for its courier's code after a preview, sees the shipment change, and takes it back", async () => {
    const { page, open, problems, end } = await visit();
    await open("/shipments");
    await page.getByRole("textbox", { name: "Search" }).fill(PARCEL);
    await page.getByText("1 shipment", { exact: true }).waitFor();
    await page.getByRole("link", { name: PARCEL }).click();
    await headingOf(page, PARCEL);
    await page.getByText("Code not mapped").first().waitFor();
    await page.getByRole("link", { name: "Couriers" }).click();
    const unmapped = page.getByRole("row", {
      name: new RegExp(`${CODE}.*1.*Delivered.*quite sure`),
    });
    await unmapped.getByText(/^Its description says the same as “Consegnata”/).waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await page.getByRole("button", { name: `Map ${CODE}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Filled in with a suggestion").waitFor();
    const wanted = dialog.getByRole("combobox", { name: "Status" });
    expect(await wanted.inputValue()).toBe("Delivered");
    expect(await dialog.getByRole("checkbox", { name: "Ends the shipment" }).isChecked()).toBe(
      true,
    );
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText("1 event of 1 shipment").waitFor();
    await dialog.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("button", { name: `Map ${CODE}` }).waitFor({ state: "detached" });
    await open(`/shipments/${shipmentId}`);
    const head = page.locator("main, #content").first();
    await head.getByText("Delivered").first().waitFor();
    await open("/carriers/GLS_ITA");
    await page.getByRole("tab", { name: "Catalogue" }).click();
    await page.getByText("1 shipment read again, 1 changed").waitFor();
    await page.getByRole("button", { name: "Take back" }).click();
    const asked = page.getByRole("dialog");
    await asked.getByText("1 event of 1 shipment").waitFor();
    await asked.getByRole("button", { name: "Take back" }).click();
    await page.getByRole("button", { name: `Map ${CODE}` }).waitFor();
    expect(problems).toEqual([]);
    await end();
  });

  test("moves a shipment's timeline back to what had been received, with the keyboard, and finds it again by its address", async () => {
    const { page, open, problems, end } = await visit();
    await open(`/shipments/${shipmentId}`);
    const timeline = page.getByRole("region", { name: "Timeline" });
    await timeline.getByText("As known at: now").waitFor();
    expect(await timeline.getByText("No event yet.").count()).toBe(0);
    const slider = timeline.getByRole("slider");
    await slider.focus();
    await page.keyboard.press("Home");
    await timeline.getByText("No event yet.").waitFor();
    expect(await accessFaults(page)).toEqual([]);
    expect(page.url()).toContain("asOf=");
    await page.reload();
    await timeline.getByText("No event yet.").waitFor();
    await timeline.getByRole("slider").focus();
    await page.keyboard.press("End");
    await timeline.getByText("As known at: now").waitFor();
    await timeline.getByText("No event yet.").waitFor({ state: "detached" });
    expect(page.url()).not.toContain("asOf=");
    expect(problems).toEqual([]);
    await end();
  });

  test("sees the overview change without a reload, by the stream alone, with figures on every arrow of the drawing", async () => {
    const { page, open, requests, end } = await visit();
    await open("/overview");
    const pipeline = page.getByRole("region", { name: "Pipeline" });
    const received = pipeline.getByText(/^\d+ received$/);
    const before = Number.parseInt((await received.textContent()) ?? "", 10);
    expect(before).toBeGreaterThan(100);
    for (const [line, arrows] of [
      [/^[\d.,]+\/s$/, 5],
      [/^[\d.,]+\/min$/, 1],
      [/^[\d.,]+ waiting$/, 4],
      [/^(up to date|.* behind)$/, 1],
    ] as const) {
      await eventually(
        async () => (await pipeline.getByText(line).count()) === arrows,
        `${arrows} arrows with ${line}`,
      );
    }
    // Nothing but the stream can bring the next figure.
    await page.route("**/panel/api/overview", (route) => route.abort());
    await page.evaluate("window.isSamePage = true");
    const { body } = await push(product.ingest, [event({ trackingNumber: "NOBODYS" })], {
      token: "tok_gls_1",
    });
    expect(body).toMatchObject({ unknownTracking: 1 });
    await pipeline.getByText(`${before + 1} received`, { exact: true }).waitFor();
    expect(await page.evaluate("window.isSamePage")).toBe(true);
    expect(requests.filter((url) => url.endsWith("/overview/stream"))).not.toEqual([]);
    await end();
  });

  test("onboards a courier: a token that is shown once, events accepted, the first one seen, the first day compared", async () => {
    const { page, open, problems, end } = await visit();
    const later = await addShipment(product.runtime, "BRT-DAY-1", { courier: "BRT_ITA" });
    await open("/carriers/BRT_ITA");
    const done = page
      .getByRole("region", { name: "Onboarding" })
      .locator(".mantine-Stepper-stepIcon[data-completed]");
    const tokens = page.getByRole("region", { name: "Tokens" }).first();
    await tokens.getByRole("button", { name: "Issue" }).click();
    const dialog = page.getByRole("dialog");
    const token = await dialog.getByRole("textbox", { name: "Tokens" }).inputValue();
    await dialog.getByRole("button", { name: "I have copied it" }).click();
    const first = event({
      trackingNumber: "BRT-DAY-1",
      occurredAt: "2026-11-10T08:00:00+01:00",
      status: { code: "700", description: "In transito" },
    });
    const pushed = () => push(product.ingest, [first], { token, courier: "BRT_ITA" });
    expect((await pushed()).status).toBe(404);
    await page.getByRole("button", { name: "Accept events" }).click();
    await page.getByText("Accepting events", { exact: true }).waitFor();
    expect(await pushed()).toMatchObject({ status: 200, body: { accepted: 1 } });
    await product.settled();
    // Outcomes are counted in rounds.
    await eventually(async () => {
      const { items } = (await product.call("GET", "/panel/api/analytics/quality?days=90")).body;
      return items.some((row: CourierQuality) => row.courier === "BRT_ITA" && row.received > 0);
    }, "the event is counted");
    await page.reload();
    await headingOf(page, "BRT");
    await eventually(async () => (await done.count()) === 5, "all but the comparison is done");
    expect(await page.getByText(token).count()).toBe(0);
    await page.getByRole("tab", { name: "First day" }).click();
    const compare = async (...lines: string[]) => {
      const text = ["trackingNumber;code;occurredAt;place", ...lines].join("\r\n");
      await page.locator('input[type="file"]').setInputFiles({
        name: "tracking.csv",
        mimeType: "text/csv",
        buffer: Buffer.from(text),
      });
      await page.getByRole("button", { name: "Compare", exact: true }).click();
    };
    await compare("BRT-DAY-1;700;yesterday;Bologna");
    await page.getByText("1 error: nothing was compared.").waitFor();
    await compare("BRT-DAY-1;700;2026-11-10 08:00;Bologna", "BRT-DAY-1;711;2026-11-10 18:00;Lodi");
    await page.getByText("1 of 2 lines the same").first().waitFor();
    await page.getByRole("row", { name: /3 BRT-DAY-1 Not received 711/ }).waitFor();
    expect(await page.getByRole("row", { name: /2 BRT-DAY-1 Same/ }).count()).toBe(0);
    expect(await accessFaults(page)).toEqual([]);
    await eventually(
      async () => (await done.count()) === 6,
      "every step of the onboarding is done",
    );
    await page.getByRole("button", { name: "Stop accepting" }).click();
    await page.getByRole("dialog").getByText("are answered 404 at once").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    expect((await pushed()).status).toBe(200);
    await open(`/shipments/${later}`);
    await page.getByText("In transit").first().waitFor();
    expect(problems).toEqual([]);
    await end();
  });

  test("uploads a catalogue after a look at its errors and at what it changes", async () => {
    const { page, open, problems, end } = await visit();
    await open("/carriers/BRT_ITA");
    await page.getByRole("tab", { name: "Catalogue" }).click();
    await page.getByRole("button", { name: "Upload CSV" }).click();
    const dialog = page.getByRole("dialog");
    const choose = (line: string) =>
      page.locator('input[type="file"]').setInputFiles({
        name: "catalogue.csv",
        mimeType: "text/csv",
        buffer: Buffer.from(`code;description;status;statusDetail\r\n${line}\r\n`),
      });
    await choose("UPL;Uploaded;ARRIVED;");
    await dialog.getByText("1 error: nothing can be applied.").waitFor();
    await dialog.getByRole("row", { name: /2 status/ }).waitFor();
    expect(await dialog.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
    await choose("UPL;Uploaded;DELAY;");
    await dialog.getByRole("row", { name: /UPL — Delayed/ }).waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Apply" }).click();
    const catalogue = page.getByRole("region", { name: "Catalogue" }).last();
    await catalogue.getByText("Uploaded").waitFor();
    const link = page.getByRole("link", { name: "Download CSV" });
    expect(await link.getAttribute("href")).toContain("/BRT_ITA/catalogue/file?separator=comma");
    expect(problems).toEqual([]);
    await end();
  });
});

describe("a guest", () => {
  test("reads one courier's quality report behind a link, until the link is revoked", async () => {
    const { page, open, problems, end } = await visit();
    await open("/carriers/GLS_ITA");
    await page.getByRole("tab", { name: "Quality" }).click();
    // What the guest sees stands inside too.
    await page.getByRole("columnheader", { name: "Unknown number" }).waitFor();
    await page.getByText("occurredAt").waitFor();
    await page.getByRole("button", { name: "New link" }).click();
    await page.getByRole("button", { name: "Make the link" }).click();
    const shown = page.getByRole("textbox", { name: "Link to the quality report" });
    const { pathname } = new URL(await shown.inputValue());
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("row", { name: /PANEL_TOKEN/ }).waitFor();
    expect(await accessFaults(page)).toEqual([]);

    const guest = await visit(null);
    await guest.page.goto(`${product.panel}${pathname}`);
    await headingOf(guest.page, "How GLS Italy reports");
    await guest.page.getByRole("row", { name: /^GLS_ITA/ }).waitFor();
    await guest.page.getByText("occurredAt").waitFor();
    expect(await guest.page.getByText("BRT").count()).toBe(0);
    expect(guest.requests.filter((url) => url.includes("/panel/api/"))).toEqual([
      `${product.panel}/panel/api${pathname}?days=30`,
    ]);
    await page.getByRole("button", { name: /^Revoke ql_/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByText("No link is in force.").waitFor();
    await guest.page.reload();
    await guest.page.getByText("There is no such link").waitFor();
    expect([...problems, ...guest.problems.filter((text) => !text.includes("404"))]).toEqual([]);
    await guest.end();
    await end();
  });
});

describe("a courier", () => {
  test("finds why an event was INVALID, and reads what is theirs and nobody else's", async () => {
    const owner = { courierCode: "GLS_ITA" };
    const { cookie } = await makeAccount(product.runtime, "courier", "owner", owner);
    const { page, open, end } = await openVisitor(browser, product.panel, { cookie });
    await open("/");
    await headingOf(page, "Couriers");
    const links = await page.getByRole("navigation").getByRole("link").allTextContents();
    expect(links.map((text) => text.trim())).toEqual([
      "Couriers",
      "Refused events",
      "Alarms",
      "API calls",
      "Accounts",
    ]);
    expect(await page.getByRole("row", { name: /BRT/ }).count()).toBe(0);
    await page.getByRole("row", { name: new RegExp(`GLS_ITA.*${OPEN_CODE}`) }).waitFor();
    expect(await page.getByRole("button", { name: /^Map/ }).count()).toBe(0);
    await page.getByRole("link", { name: "GLS Italy" }).click();
    await headingOf(page, "GLS Italy");
    expect(await page.getByRole("button", { name: "Stop accepting" }).count()).toBe(0);
    const tokens = page.getByRole("region", { name: "Tokens" }).first();
    await tokens.getByRole("button", { name: "Issue" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("tab", { name: "Quality" }).click();
    await page.getByRole("region", { name: "How couriers report" }).getByText("GLS_ITA").waitFor();
    await page.getByRole("tab", { name: "Message finder" }).click();
    await page.getByRole("textbox", { name: "Id", exact: true }).fill("broken-1");
    await page.keyboard.press("Enter");
    await page.getByText("INVALID", { exact: true }).waitFor();
    await page.getByText(/occurredAt/).waitFor();
    await page.getByText("This event id is not known").waitFor();
    await page.getByText("Message id", { exact: true }).first().click();
    await page.getByRole("textbox", { name: "Id", exact: true }).fill(LONG_MESSAGE);
    await page.keyboard.press("Enter");
    const found = page.getByRole("region", { name: "Message finder" }).last();
    await found.getByRole("row", { name: new RegExp(`${LONG_MESSAGE}.*long-0`) }).waitFor();
    const invalid = found.getByRole("row", { name: /110 long-110 INVALID/ });
    await eventually(async () => {
      await found.press("End");
      return (await invalid.count()) === 1;
    }, "the event on the second page is in the table");
    for (const path of ["/carriers/BRT_ITA", `/shipments/${shipmentId}`, "/sql", "/overview"]) {
      await open(path);
      await headingOf(page, "There is no such page");
      expect(await page.getByText(PARCEL).count()).toBe(0);
    }
    await end();
  });
});

describe("a merchant", () => {
  test.each([
    ["en", "New endpoint", "Alerts go to", "Create", /https/],
    ["it", "Nuovo endpoint", "Avvisi a", "Crea", "Il valore non ha il formato previsto."],
  ] as const)(
    "is told what is wrong with the URL of a new endpoint, where it was typed, in their language: %s",
    async (locale, button, alerts, create, fault) => {
      const token = product.runtime.secrets.panelToken;
      const { page, open, end } = await openVisitor(browser, product.panel, { token, locale });
      await open("/webhooks");
      await page.getByRole("button", { name: button }).click();
      const form = page.getByRole("dialog");
      await form.getByRole("textbox", { name: "URL" }).fill("http://merchant.example/hook");
      await form.getByRole("textbox", { name: alerts }).fill("ops@acme.test");
      await form.getByRole("button", { name: create }).click();
      await form.getByText(fault).first().waitFor();
      await end();
    },
  );
});

describe("an invited colleague", () => {
  test("follows the link, chooses a password, and logs in with it from then on", async () => {
    const { body } = await product.call("POST", "/panel/api/invitations", {
      email: "ada@waybill.test",
      name: "Ada",
      kind: "operator",
      role: "read-only",
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
    await page.getByRole("navigation").getByRole("link", { name: "Webhooks" }).click();
    await headingOf(page, "Webhooks");
    expect(await page.getByRole("button", { name: "New endpoint" }).count()).toBe(0);
    await end();
  });
});

describe("whoever wants a second factor", () => {
  test("sets it up with their app, is asked for a code at the next log-in, and takes it away with another", async () => {
    const ofBeta = { companyCode: "beta" };
    const member = await makeAccount(product.runtime, "company", "member", ofBeta);
    const { account, cookie, password } = member;
    const { page, open, end } = await openVisitor(browser, product.panel, { cookie });
    let key = "";
    /** Each code works once, so every one is of a step of its own. */
    const nextCode = async () => {
      await advanceClock(product.runtime.redis, STEP_SECONDS);
      await product.runtime.live.refresh();
      const step = Math.floor(product.runtime.live.now() / 1_000 / STEP_SECONDS);
      return totpCode(bytesOfBase32(key), step);
    };
    const factor = page.getByRole("region", { name: "Second factor" });
    const fillPassword = () =>
      factor.getByRole("textbox", { name: "Password", exact: true }).fill(password);
    const enter = async (action: string) => {
      const field = page.getByRole("textbox", { name: "Code of your authenticator app" });
      await field.fill(await nextCode());
      await page.getByRole("button", { name: action, exact: true }).click();
    };
    await open("/me");
    await factor.getByText("Off", { exact: true }).waitFor();
    await fillPassword();
    await factor.getByRole("button", { name: "Set up" }).click();
    key = await factor.getByRole("textbox", { name: "Key" }).inputValue();
    const link = await factor.getByRole("link").getAttribute("href");
    expect(new URL(link ?? "").searchParams.get("secret")).toBe(key);
    expect(await accessFaults(page)).toEqual([]);
    await enter("Activate");
    await factor.getByText("On", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Your account" }).click();
    await page.getByRole("menuitem", { name: "Log out" }).click();
    await page.getByRole("textbox", { name: "E-mail address" }).fill(account.email);
    await page.getByRole("textbox", { name: "Password" }).fill(password);
    await page.keyboard.press("Enter");
    await page.getByText("Enter the six-digit code from your authenticator app.").waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await enter("Log in");
    await page.getByRole("button", { name: "Your account" }).waitFor();
    await open("/me");
    await factor.getByText("On", { exact: true }).waitFor();
    await fillPassword();
    await enter("Remove");
    await factor.getByText("Off", { exact: true }).waitFor();
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
    // Every company can be chosen, also those past the first pages of their list.
    await dialog.getByRole("combobox", { name: "Works for" }).click();
    await page.getByRole("option", { name: "A company" }).click();
    await dialog.getByRole("combobox", { name: "A company" }).fill("Shop 201");
    await page.getByRole("option", { name: "Shop 201" }).waitFor();
    await page.keyboard.press("Escape");
    await dialog.getByRole("combobox", { name: "Works for" }).click();
    await page.getByRole("option", { name: "The service" }).click();
    await dialog.getByRole("button", { name: "Invite", exact: true }).click();
    const shown = page.getByRole("textbox", { name: "Link of the invitation" });
    const link = new URL(await shown.inputValue());
    await page.getByRole("button", { name: "I have copied it" }).click();
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
    await page.getByRole("link", { name: "Companies" }).click();
    const companies = page.getByRole("region", { name: "Companies" });
    await companies.getByRole("row", { name: /Acme S\.p\.A\./ }).waitFor();
    await eventually(async () => {
      await companies.press("End");
      return (await companies.getByRole("row", { name: /Shop 201/ }).count()) === 1;
    }, "the last company is in the table");
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

describe("whoever has a nervous finger, a bad network or a long lunch", () => {
  const NEW_BOX = { length: "10", width: "20", height: "30" };

  async function typeBox(page: Page, code: string) {
    await page.getByRole("button", { name: "New box" }).click();
    const form = page.getByRole("dialog", { name: "New box" });
    await form.getByRole("textbox", { name: "Code" }).fill(code);
    for (const [name, value] of Object.entries(NEW_BOX)) {
      await form.getByRole("textbox", { name: new RegExp(name, "i") }).fill(value);
    }
    return form;
  }

  test("sends once what is clicked or submitted several times in one moment", async () => {
    const { page, open, end } = await visit();
    const sent: string[] = [];
    page.on("request", (request) => {
      if (request.method() !== "GET") sent.push(new URL(request.url()).pathname);
    });
    await open("/carriers/BRT_ITA");
    await page.getByRole("region", { name: "Tokens" }).first().waitFor();
    await page.evaluate(`(() => {
      const button = document.querySelector("section[aria-label=Tokens] button");
      for (let at = 0; at < 3; at += 1) button.click();
    })()`);
    await page.getByRole("dialog").getByRole("button", { name: "I have copied it" }).click();
    await open("/webhooks");
    await page.getByRole("button", { name: "New endpoint" }).click();
    const form = page.getByRole("dialog");
    await form.getByRole("textbox", { name: "URL" }).fill("https://8.8.8.8/twice");
    await form.getByRole("textbox", { name: "Alerts go to" }).fill("ops@acme.test");
    await page.evaluate(`(() => {
      const form = document.querySelector("[role=dialog] form");
      for (let at = 0; at < 3; at += 1) form.requestSubmit();
    })()`);
    await page.getByRole("textbox", { name: "Signing secret" }).waitFor();
    expect(sent).toEqual([
      "/panel/api/couriers/BRT_ITA/tokens",
      expect.stringMatching(/^\/panel\/api\/channels\/.*\/webhooks$/),
    ]);
    await end();
  });

  test("is told that no answer came, keeps what was typed, and sends it when the network is back", async () => {
    const { page, open, end } = await visit();
    await open("/companies/acme");
    const form = await typeBox(page, "OFF-1");
    await page.context().setOffline(true);
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByRole("alert").getByText("No answer came.").waitFor();
    expect(await form.getByRole("textbox", { name: "Code" }).inputValue()).toBe("OFF-1");
    await page.context().setOffline(false);
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /OFF-1/ }).waitFor();
    // A page that was never opened: its file comes later.
    await page.context().setOffline(true);
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByText("The server is not responding.").waitFor();
    await headingOf(page, "Acme");
    await page.context().setOffline(false);
    await headingOf(page, "Webhooks");
    await end();
  }, 300_000);

  test("logs in again in front of a form when the session ends, and finds the form as it was", async () => {
    const owner = await makeAccount(product.runtime, "company", "owner", { companyCode: "acme" });
    const { page, open, end } = await openVisitor(browser, product.panel, { cookie: owner.cookie });
    await open("/companies/acme");
    const form = await typeBox(page, "LUNCH-1");
    await page.context().clearCookies();
    await form.getByRole("button", { name: "Save" }).click();
    const login = page.getByRole("dialog", { name: "Your session has ended" });
    await login.getByRole("textbox", { name: "E-mail address" }).fill(owner.account.email);
    await login.getByRole("textbox", { name: "Password" }).fill(owner.password);
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await login.waitFor({ state: "detached" });
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /LUNCH-1/ }).waitFor();
    // Somebody else finds nothing of it: they begin at their own first page.
    await page.context().clearCookies();
    await page.getByRole("link", { name: "Shipments" }).click();
    const other = await makeAccount(product.runtime, "operator", "read-only");
    await login.getByRole("textbox", { name: "E-mail address" }).fill(other.account.email);
    await login.getByRole("textbox", { name: "Password" }).fill(other.password);
    // The answer leaves the page as it is.
    await page.route(`${product.panel}/`, (route) => route.fulfill({ status: 204 }));
    const leaving = page.waitForResponse(`${product.panel}/`);
    await page.keyboard.press("Enter");
    await leaving;
    await drawn(page);
    // What stands behind it is not theirs to see.
    expect(await login.isVisible()).toBe(true);
    await page.unroute(`${product.panel}/`);
    await open("/");
    await headingOf(page, "Overview");
    await end();
  }, 300_000);

  test("comes back, or reloads, to the same search and the same tab", async () => {
    const { page, open, end } = await visit();
    await open("/shipments");
    await page.getByRole("textbox", { name: "Search" }).fill(PARCEL);
    await page.waitForURL(/q=PANEL-DAY-1/);
    await page.getByRole("link", { name: PARCEL }).click();
    await headingOf(page, PARCEL);
    await page.goBack();
    await page.getByText("1 shipment", { exact: true }).waitFor();
    expect(await page.getByRole("textbox", { name: "Search" }).inputValue()).toBe(PARCEL);
    await open("/carriers/GLS_ITA");
    await page.getByRole("tab", { name: "Quality" }).click();
    await page.getByRole("button", { name: "New link" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "New link" }).waitFor();
    await end();
  });
});

describe("without a detour", () => {
  test("a courier sees what was refused after one click, by broken rule and as it was sent", async () => {
    const owner = await makeAccount(product.runtime, "courier", "owner", {
      courierCode: "GLS_ITA",
      email: "inbox@gls.test",
    });
    const visitor = await openVisitor(browser, product.panel, { cookie: owner.cookie });
    const { page, open, end } = visitor;
    await open("/");
    await page.getByRole("link", { name: "Refused events" }).click();
    await page.getByRole("heading", { level: 1, name: "Refused events" }).waitFor();
    const rules = page.getByRole("region", { name: "Broken rules" });
    await rules.getByRole("button", { name: /^no shipment has this number.*: 1\d\d$/ }).waitFor();
    await rules.getByRole("button", { name: /^occurredAt: has the wrong format: \d+$/ }).click();
    const row = page.getByRole("row", { name: /Refused .*broken-1/ });
    await row.getByRole("button", { name: "Show" }).click();
    await page.getByRole("dialog").getByText('"occurredAt": "yesterday"').waitFor();
    await drawn(page);
    expect(await accessFaults(page)).toEqual([]);
    await end();
  });

  test("an operator finds a parcel by part of its number from any page, and keeps the search under a name", async () => {
    const { page, open, problems, end } = await visit();
    await open("/doctor");
    await page.keyboard.press("Control+K");
    await page.keyboard.type("nel-day");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: PARCEL }).waitFor();
    await page.getByRole("button", { name: "Saved views" }).click();
    await page.getByRole("textbox", { name: "Name of the view" }).fill("Mine");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.keyboard.press("Escape");
    await page.getByRole("textbox", { name: "Search" }).fill("nothing at all");
    await page.getByText("0 shipments", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Saved views" }).click();
    await page.getByRole("menuitem", { name: "Mine" }).click();
    await page.getByRole("link", { name: PARCEL }).waitFor();
    expect(problems).toEqual([]);
    await end();
  });
});

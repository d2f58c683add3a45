/** A merchant's day with webhooks, from the endpoint to the catch-up after an outage, and an operator's with what is stuck. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Locator, Page } from "playwright-core";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { eventLogs } from "#core/platform/redis/keys.ts";
import { announce } from "#core/platform/redis/wake.ts";
import type { Running, StartRole } from "#core/runtime/runtime.ts";
import { verifySignature } from "#core/webhooks/rules/signature.ts";
import { type Missed, readMissed } from "#core/webhooks/store/deliveries/missed.ts";
import { startIngest } from "#ingest/main.ts";
import { startPanel } from "#panel/main.ts";
import { startProcessors } from "#processors/main.ts";
import { openBrowser } from "#test/support/clients/browser.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { accessFaults, openVisitor, type Visitor } from "#test/support/clients/panel-visitor.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { passTime, STATUS } from "#test/support/product/webhooks.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

const PARCELS = ["DAY-1", "DAY-2"] as const;
/** The longest wait for the second attempt: a minute and its jitter. */
const FIRST_RETRY_SECONDS = 73;
const DAY_SECONDS = 86_400;
/** What changes something: a member who only reads sees none of it. */
const CHANGING =
  /new|create|send|test|change|rotate|switch|delete|more|catch|again|redrive|discard/i;

let receiver: Receiver;
let mail: MailServer;
let runtime: TestRuntime;
let roles: Running[];
let browser: Browser;
let owner: TestAccount;
let shipmentIds: number[];

beforeAll(async () => {
  receiver = await startReceiver();
  mail = await startMailServer();
  runtime = await openTestRuntime(testSetup(), {
    WEBHOOK_CA_FILE: AUTHORITY.file,
    SMTP_URL: mail.url,
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  });
  roles = [];
  const starts: StartRole[] = [startProcessors, startPanel, startIngest];
  for (const start of starts) roles.push(await start(runtime, roles));
  owner = await makeAccount(runtime, "company", "owner", { companyCode: "acme" });
  shipmentIds = [];
  for (const parcel of PARCELS) shipmentIds.push(await addShipment(runtime, parcel));
  // An entry that no version of ours has written: it becomes a dead letter after some tries.
  await runtime.redis.xAdd(eventLogs()[0] ?? "", "*", { e: "no event" });
  announce(runtime.redis, "event");
  browser = await openBrowser();
}, 300_000);

afterAll(async () => {
  await browser?.close();
  for (const { stop } of roles.reverse()) await stop();
  await runtime?.end();
  await mail?.stop();
  await receiver?.stop();
});

const urlOf = (role: string) => roles.find(({ name }) => name === role)?.url ?? "";

async function visit(cookie?: string): Promise<Visitor> {
  const visitor = await openVisitor(browser, urlOf("panel"), {});
  const [name = "", value = ""] = cookie?.split("=") ?? [];
  if (cookie) await visitor.page.context().addCookies([{ name, value, url: urlOf("panel") }]);
  return visitor;
}

async function logIn(page: Page, { account, password }: TestAccount): Promise<void> {
  await page.getByRole("textbox", { name: "E-mail address" }).fill(account.email);
  await page.getByRole("textbox", { name: "Password" }).fill(password);
  await page.keyboard.press("Enter");
}

function countEndpoints(page: Page): Promise<number> {
  return page.evaluate(
    "fetch('/panel/api/channels/acme-it/webhooks').then((answer) => answer.json()).then((list) => list.total)",
  );
}

async function headingOf(page: Page, name: string): Promise<void> {
  await page.getByRole("heading", { level: 1, name }).waitFor();
}

/** The courier moves a parcel. */
async function move(
  trackingNumber: string,
  status: keyof typeof STATUS,
  hour: number,
  particulars: Partial<CourierEvent> = {},
) {
  const occurredAt = new Date(Date.UTC(2026, 10, 10, hour)).toISOString();
  const told = event({ trackingNumber, occurredAt, status: STATUS[status], ...particulars });
  const { body } = await push(urlOf("ingest"), [told], { token: "tok_gls_1" });
  expect(body).toMatchObject({ accepted: 1 });
}

const row = (page: Page, text: string) =>
  page.getByRole("region", { name: "Delivery log" }).getByRole("row").filter({ hasText: text });

describe("a merchant", () => {
  let day: Visitor;
  let endpoint: string;
  let firstSecret: string;
  let secondSecret: string;

  /** An action of the endpoint's menu. */
  async function choose(name: string): Promise<void> {
    await day.page.getByRole("button", { name: "More" }).click();
    await day.page.getByRole("menuitem", { name }).click();
  }

  /** What the page shows, which it fetches every 30 seconds. */
  function missed(): Promise<Missed> {
    const { redis, live } = runtime;
    const companyId = live.configuration().channelByCode.get("acme-it")?.companyId ?? 0;
    return readMissed(redis, companyId, endpoint.split("/").at(-1) ?? "", 0, live.now());
  }

  beforeAll(async () => {
    day = await visit();
  });
  afterAll(() => day?.end());

  test("makes an endpoint, sees its secret once, and gets a test in the status of their choice", async () => {
    const { page } = day;
    await page.goto(`${urlOf("panel")}/webhooks`);
    await logIn(page, owner);
    await headingOf(page, "Webhooks");
    // The picture alone needs ClickHouse: the page says so, and the browser reports no fault.
    await page.getByText("Analytics is unavailable at the moment.").waitFor();
    await page.getByRole("button", { name: "New endpoint" }).click();
    const form = page.getByRole("dialog");
    await form.getByRole("textbox", { name: "URL" }).fill(receiver.url);
    await form.getByRole("textbox", { name: "Alerts go to" }).fill("ops@acme.test");
    await form.getByRole("textbox", { name: "Requests in flight, at most" }).fill("8");
    await form.getByRole("textbox", { name: "Requests per second, at most" }).fill("50");
    // The answer alone is lost: what is sent again is carried out once.
    let isLost = false;
    await page.route("**/panel/api/channels/*/webhooks", async (route) => {
      if (isLost || route.request().method() !== "POST") return route.fallback();
      isLost = true;
      await route.fetch();
      await route.abort();
    });
    const before = await countEndpoints(page);
    await form.getByRole("button", { name: "Create" }).click();
    await page.getByText("No answer came.").first().waitFor();
    await form.getByRole("button", { name: "Create" }).click();
    const shown = page.getByRole("textbox", { name: "Signing secret" });
    const secret = await shown.inputValue();
    expect(await countEndpoints(page)).toBe(before + 1);
    expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/);
    firstSecret = secret;
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.waitForURL(/\/webhooks\/ep_/);
    endpoint = new URL(page.url()).pathname;
    await headingOf(page, "panel-");
    expect(await page.content()).not.toContain(secret);

    await page.getByRole("button", { name: "Send a test" }).click();
    const test = page.getByRole("dialog");
    await test.getByRole("combobox", { name: "Status" }).click();
    await page.getByRole("option", { name: "Exception" }).click();
    await test.getByRole("combobox", { name: "Detail" }).click();
    await page.getByRole("option", { name: "4 · Held in depot" }).click();
    await test.getByRole("button", { name: "Send", exact: true }).click();
    await test.getByText("Delivered", { exact: true }).waitFor();
    expect(await accessFaults(page)).toEqual([]);
    const payload = await test.getByLabel("What was sent").textContent();
    const sent = receiver.requests[0];
    expect(JSON.parse(payload ?? "")).toEqual(sent?.body);
    expect(sent?.body.data.shipment).toMatchObject({ status: "EXCEPTION", statusDetail: 4 });
    const signature = String(sent?.headers["x-service-signature"]);
    const bytes = Buffer.from(sent?.raw ?? "");
    expect(verifySignature(signature, [secret], bytes, runtime.live.now())).toBe("valid");
    await test.getByRole("button", { name: "Close" }).last().click();
    await page.getByRole("tab", { name: "Health" }).click();
    await page.getByText("Requests per second, at most").waitFor();
    expect(await page.getByText("50", { exact: true }).count()).toBe(1);
  }, 300_000);

  test("breaks the receiver, and sees the failure, each attempt, and the retry", async () => {
    const { page, open } = day;
    receiver.behave((_, response) => void response.writeHead(503).end("deploying"));
    await move(PARCELS[0], "departed", 8);
    await move(PARCELS[1], "departed", 8);
    await open(endpoint);
    await row(page, "Retrying").nth(1).waitFor();
    await passTime(runtime, FIRST_RETRY_SECONDS);
    await page.getByRole("textbox", { name: "Search" }).fill(PARCELS[0]);
    const retrying = row(page, "Retrying");
    await eventually(async () => (await retrying.count()) === 1, "the log of one parcel");
    await retrying.getByRole("button", { name: /Details/ }).click();
    const drawer = page.getByRole("dialog");
    await drawer.getByText("2. status 503").waitFor();
    expect(await drawer.getByLabel("Request").last().textContent()).toContain(
      "X-Service-Delivery-Attempt: 2",
    );
    expect(await drawer.getByText("deploying").count()).toBe(2);
    await drawer.getByText("It is the body below.").first().waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.reload();
    await page
      .getByRole("status")
      .getByText(/^Failing since/)
      .waitFor();
    await page.getByText("Last error: status 503").waitFor();
  }, 300_000);

  test("is alerted by a mail whose link leads, after a log-in, to the endpoint and what it missed", async () => {
    const { page } = day;
    receiver.behave(404);
    // One more change of a parcel: two deliveries, of which the latest says it all.
    await move(PARCELS[0], "outForDelivery", 9);
    await passTime(runtime, DAY_SECONDS);
    const alert = await eventually(() => mail.received[0], "the alert mail");
    expect(alert.to).toEqual(["ops@acme.test"]);
    const link = /https?:\S+\/webhooks\/\S+/.exec(alert.text)?.[0] ?? "";
    expect(new URL(link).pathname).toBe(endpoint);
    await eventually(async () => (await missed()).deliveries === 3, "the last ones are given up");
    // A session lasts for 12 hours.
    await page.goto(`${urlOf("panel")}${new URL(link).pathname}`);
    await logIn(page, owner);
    await headingOf(page, "panel-");
    await page.getByText(/Webhooks given up: 3, about shipments: 2/).waitFor();
    await page.getByText("Shipments without a later webhook: 2.").waitFor();
    expect(await accessFaults(page)).toEqual([]);
  }, 300_000);

  test("repairs the receiver, and catches up with one webhook a shipment; nothing is missed any more", async () => {
    const { page, open } = day;
    receiver.behave(200);
    receiver.requests.length = 0;
    await page.getByRole("button", { name: "Catch up" }).click();
    const pull = page.getByLabel(/prefer polling/);
    expect(await pull.textContent()).toMatch(
      /^GET \/v2\/shipments\?updatedAfter=\d{4}-\d\d-\d\d\+\d\d%3A\d\d%3A\d\d&/,
    );
    expect(await accessFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Send again" }).click();
    const asked = page.getByRole("dialog");
    await asked.getByText("One delivery each of 2 shipments will be sent again").waitFor();
    expect(receiver.requests).toEqual([]);
    await asked.getByRole("button", { name: "Send again" }).click();
    await page.getByText("All queued").waitFor();
    await page.getByText("2 queued, 1 passed over (1 older one of the same shipment)").waitFor();
    // It stands on the page for whoever comes back, and for colleagues.
    await page.reload();
    await page.getByRole("tab", { name: "Send again" }).click();
    const replays = page.getByRole("region", { name: "Latest replays" });
    await replays.getByRole("row", { name: /2 queued, 1 passed over/ }).waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await eventually(() => receiver.requests.length === 2, "one webhook a shipment");
    const told = receiver.requests.map(({ body }) => body.data.shipment);
    expect(
      told.map(({ trackingNumber, status }) => `${trackingNumber} ${status}`).toSorted(),
    ).toEqual(["DAY-1 OUT_FOR_DELIVERY", "DAY-2 DEPARTED"]);
    await eventually(() => mail.received.length === 2, "the mail that it works again");
    await open(endpoint);
    await row(page, "Delivered").nth(1).waitFor();
    await page.getByText("Active", { exact: true }).waitFor();
    expect(await page.getByText(/Failing since|without a later webhook/).count()).toBe(0);

    await move(PARCELS[0], "unmapped", 10);
    await move(PARCELS[0], "departed", 7);
    await open(`/shipments/${shipmentIds[0]}`);
    await page.getByText("The courier's code is not mapped.").waitFor();
    await page.getByText("The endpoint's trigger did not fire.").waitFor();
    await page.getByText("Given up").waitFor();
    await page.getByRole("button", { name: "3 attempts" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Send again" }).click();
    await eventually(() => receiver.requests.length === 3, "the one that was passed over");
    // The application has asked who is there before each log-in.
    // The answers that were refused before the log-in, and the one that was lost.
    expect(day.problems.filter((text) => !/401|ERR_FAILED/.test(text))).toEqual([]);
  }, 300_000);

  test("rotates the secret: the new one is shown once, and both sign meanwhile", async () => {
    const { page, open } = day;
    await open(endpoint);
    await choose("Rotate the secret");
    await page.getByRole("dialog").getByRole("button", { name: "Rotate the secret" }).click();
    const secret = await page.getByRole("textbox", { name: "Signing secret" }).inputValue();
    expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/);
    expect(secret).not.toBe(firstSecret);
    secondSecret = secret;
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("textbox", { name: "Signing secret" }).waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(secret);
    receiver.requests.length = 0;
    await move(PARCELS[1], "outForDelivery", 9);
    const sent = await eventually(() => receiver.requests[0], "a webhook under both secrets");
    const signature = String(sent.headers["x-service-signature"]);
    const bytes = Buffer.from(sent.raw);
    for (const one of [secret, firstSecret]) {
      expect(verifySignature(signature, [one], bytes, runtime.live.now())).toBe("valid");
    }
  }, 300_000);

  test("rotates again within 24 hours: the question says what revoking the old secret stops, and the one replaced signs on", async () => {
    const { page, open } = day;
    await open(endpoint);
    await choose("Rotate the secret");
    const dialog = page.getByRole("dialog");
    const revoking = dialog.getByRole("button", { name: "Revoke the old secret now, and rotate" });
    await dialog.getByText(/a receiver that still verifies with it alone refuses/).waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await revoking.click();
    const third = await page.getByRole("textbox", { name: "Signing secret" }).inputValue();
    await page.getByRole("button", { name: "I have copied it" }).click();
    receiver.requests.length = 0;
    await page.evaluate(`fetch("/panel/api${endpoint}/test", { method: "POST" }).then(String)`);
    const sent = await eventually(() => receiver.requests[0], "a test after the rotation");
    const signature = String(sent.headers["x-service-signature"]);
    const bytes = Buffer.from(sent.raw);
    const verdicts = [third, secondSecret, firstSecret].map((one) =>
      verifySignature(signature, [one], bytes, runtime.live.now()),
    );
    expect(verdicts).toEqual(["valid", "valid", "mismatch"]);
  }, 300_000);

  test("switches the endpoint off and on, and sends again each webhook that failed meanwhile, in their order", async () => {
    const { page, open } = day;
    receiver.behave(503);
    await move(PARCELS[1], "inTransit", 10, {
      trackingNumberChange: { newTrackingNumber: "DAY-2-NEW" },
    });
    await move(PARCELS[1], "delivered", 11);
    await open(endpoint);
    await row(page, "Retrying").nth(1).waitFor();
    await choose("Switch off");
    await page.getByRole("dialog").getByRole("button", { name: "Switch off" }).click();
    await page.getByText("Off", { exact: true }).waitFor();
    await move(PARCELS[0], "delivered", 12);
    await open(`/shipments/${shipmentIds[0]}`);
    await page.getByText("The endpoint was off.").waitFor();
    await open(endpoint);
    receiver.behave(200);
    receiver.requests.length = 0;
    await choose("Switch on");
    await page.getByText("Active", { exact: true }).waitFor();
    const errors = page.getByRole("region", { name: "Errors" });
    await errors.getByRole("button", { name: /^2 × status 503 since/ }).waitFor();
    await page.getByRole("tab", { name: "Send again" }).click();
    await page.getByRole("radio", { name: "Each failed delivery" }).check();
    await page.getByRole("tabpanel").getByRole("button", { name: "Send again" }).click();
    const asked = page.getByRole("dialog");
    await asked.getByText("2 failed deliveries of 1 shipment will be sent again.").waitFor();
    await asked.getByRole("button", { name: "Send again" }).click();
    await page.getByText("2 queued, 0 passed over").first().waitFor();
    await eventually(() => receiver.requests.length === 2, "both that had failed");
    expect(receiver.requests.map(({ body }) => body.data.event.statusCode)).toEqual([
      ...["IN_TRANSIT", "DELIVERED"],
    ]);
  }, 300_000);

  test("sends chosen deliveries again from the log, with their count first; a link shows the same log", async () => {
    const { page, open } = day;
    await open(`${endpoint}?state=delivered`);
    await page.getByRole("link", { name: PARCELS[0], exact: true }).first().waitFor();
    receiver.requests.length = 0;
    await page
      .getByRole("checkbox", { name: /^Select evt_/ })
      .first()
      .check();
    await page.getByRole("button", { name: "Send 1 delivery again" }).click();
    const question = page.getByRole("dialog");
    await question.getByRole("button", { name: "Send 1 delivery again" }).click();
    await page.getByText("1 of 1 queued").waitFor();
    await eventually(() => receiver.requests.length === 1, "it is sent again");
    await page.getByRole("textbox", { name: "Search" }).fill(PARCELS[1]);
    await page.waitForURL(/q=DAY-2/);
    await page.reload();
    await page.getByRole("link", { name: PARCELS[1], exact: true }).first().waitFor();
    expect(await page.getByRole("link", { name: PARCELS[0], exact: true }).count()).toBe(0);
    expect(await accessFaults(page)).toEqual([]);
  }, 300_000);

  test("sees of a shipment the numbers it had, who was notified, and both clocks of each event", async () => {
    const { page, open } = day;
    await open(`/shipments/${shipmentIds[1]}`);
    const numbers = page.getByRole("region", { name: "Tracking numbers" });
    await numbers.getByText("DAY-2-NEW", { exact: true }).waitFor();
    await numbers.getByText("DAY-2", { exact: true }).waitFor();
    const told = page.getByRole("region", { name: "Notifications" });
    await told.getByText(receiver.url).first().waitFor();
    const happened = page
      .locator("p", { hasText: /^Happened/ })
      .first()
      .locator("time");
    expect(await happened.getAttribute("datetime")).toBe("2026-11-10T11:00:00.000Z");
    const received = page
      .locator("p", { hasText: /^Received .* \(after / })
      .first()
      .locator("time");
    const receivedMs = Date.parse((await received.getAttribute("datetime")) ?? "");
    expect(runtime.live.now() - receivedMs).toBeLessThan(DAY_SECONDS * 1_000);
    expect(await accessFaults(page)).toEqual([]);
  }, 300_000);

  test("who may only read sees all of it, and no button that changes anything", async () => {
    const reader = await makeAccount(runtime, "company", "read-only", { companyCode: "acme" });
    const { page, open, end } = await visit(reader.cookie);
    const changing = async () => {
      const buttons = await page.getByRole("button").all();
      const names = await Promise.all(
        buttons.map(async (one) => (await one.getAttribute("aria-label")) ?? one.textContent()),
      );
      return names.filter((name) => CHANGING.test(name ?? ""));
    };
    await open("/webhooks");
    await page.getByRole("link", { name: /^panel-/ }).waitFor();
    expect(await changing()).toEqual([]);
    await open(endpoint);
    await row(page, "Delivered").first().waitFor();
    expect(await changing()).toEqual([]);
    await row(page, "Delivered")
      .first()
      .getByRole("button", { name: /Details/ })
      .click();
    await page.getByRole("dialog").getByText("HTTP 200").first().waitFor();
    expect(await changing()).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("tab", { name: "Send again" }).click();
    await page.getByText("Nothing was missed in the last 30 days.").waitFor();
    expect(await changing()).toEqual([]);
    await open(`/shipments/${shipmentIds[0]}`);
    await page.getByText("Delivered").first().waitFor();
    expect(await changing()).toEqual([]);
    await end();
  }, 300_000);
});

describe("an operator", () => {
  /**
   * A letter that is kept again has a new id, which its button names; the old row stays until the list is fetched again.
   * @returns the name of the new button
   */
  function parkedAgain(details: Locator, nameBefore: string | null): Promise<string> {
    return eventually(async () => {
      const name = await details.getAttribute("aria-label");
      return name !== nameBefore && name;
    }, "it is kept again");
  }

  test("is alarmed of what is stuck, reads it, drives it again, and discards it with a reason that the audit log keeps", async () => {
    const admin = await makeAccount(runtime, "operator", "admin");
    const { page, open, end } = await visit(admin.cookie);
    await open("/overview");
    const alarms = page.getByRole("region", { name: "Alarms" });
    await alarms.getByText(/^The analytics do not answer/).waitFor();
    await alarms.getByText("Dead letters: 1.").waitFor();
    const alarm = alarms.getByRole("listitem").filter({ hasText: "Dead letters" });
    await alarm.getByRole("link", { name: "What to do" }).click();
    await page.waitForURL(/\/docs\/operations\/incidents#dead-letters$/);
    await page.getByRole("heading", { name: "Dead letters" }).waitFor();

    await open("/overview");
    await alarm.getByRole("link", { name: "Show" }).click();
    await page.waitForURL(/\/dead-letters$/);
    const details = page.getByRole("button", { name: /^Details/ });
    const nameOfFirst = await details.getAttribute("aria-label");
    await details.click();
    const drawer = page.getByRole("dialog");
    await drawer.getByText("e: no event").waitFor();
    expect(await accessFaults(page)).toEqual([]);
    await drawer.getByRole("button", { name: "Redrive" }).click();
    await page.getByText("Redriven. If it fails again, it comes back here.").waitFor();
    const nameOfSecond = await parkedAgain(details, nameOfFirst);
    await page.getByRole("button", { name: "Redrive all" }).click();
    const all = page.getByRole("dialog", { name: "Redrive all" });
    expect(await accessFaults(page)).toEqual([]);
    await all.getByRole("button", { name: "Redrive all" }).click();
    // One that is kept again before they are counted remains.
    await page.getByText(/^1 redriven, [01] remaining$/).waitFor();
    await parkedAgain(details, nameOfSecond);
    await details.click();
    await drawer.getByRole("button", { name: "Discard" }).click();
    const dialog = page.getByRole("dialog", { name: "Discard" });
    await dialog.getByRole("textbox", { name: "Reason" }).fill("written by a test");
    await dialog.getByRole("button", { name: "Discard" }).click();
    await page.getByText("Nothing is stuck.").waitFor();
    await open("/audit");
    await page.getByText(/written by a test/).waitFor();
    await end();
  }, 300_000);

  test("erases a recipient after a confirmation, and it is in the audit log; who only reads cannot", async () => {
    const consignee = { name: "Maria Bianchi", city: "Milano", country: "IT" };
    const id = await addShipment(runtime, "ERASE-1", { consignee });
    const reader = await visit((await makeAccount(runtime, "operator", "read-only")).cookie);
    await reader.open(`/shipments/${id}`);
    await reader.page.getByText("Maria Bianchi").waitFor();
    expect(await reader.page.getByRole("button", { name: "Erase the recipient" }).count()).toBe(0);
    await reader.end();
    const eraser = await makeAccount(runtime, "operator", "operator");
    const { page, open, end } = await visit(eraser.cookie);
    await open(`/shipments/${id}`);
    await page.getByText("Maria Bianchi").waitFor();
    await page.getByRole("button", { name: "Erase the recipient" }).click();
    const dialog = page.getByRole("dialog");
    expect(await accessFaults(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Erase permanently" }).click();
    await page.getByText("The recipient's personal data has been erased.").waitFor();
    await page.getByText("Maria Bianchi").waitFor({ state: "detached" });
    await open("/audit");
    await page.getByText(`shipment ${id} › personal data`).waitFor();
    await end();
  }, 300_000);
});

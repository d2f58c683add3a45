/** The public tracking page behind `trackingUrl` (document 1), in a real browser. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { LANGUAGES } from "#core/shipments/rules/shipment.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { artefact, openBrowser } from "#test/support/clients/browser.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";
import { applyEvents, STATUS } from "#test/support/product/webhooks.ts";
import { freePort } from "#test/support/servers/free-port.ts";

let api: TestApi;
let token: string;
let browser: Browser;
let panel: ReturnType<typeof createPanelApp>;
let counter = 0;

const CONSIGNEE = {
  name: "Giulia Bianchi",
  street: "Via Segreta 7",
  city: "Torino",
  postcode: "10123",
  email: "giulia@client.test",
  phone: "+39 333 1234567",
};

beforeAll(async () => {
  const setup = testSetup();
  const channel = setup.companies?.[0]?.channels?.[0];
  if (channel) channel.trackingPage = true;
  const port = await freePort();
  api = await openTestApi(setup, "away", { PUBLIC_URL: `http://127.0.0.1:${port}/` });
  token = await api.token("key_acme_main");
  const benchmarks = await openBenchmarks(api.runtime.config);
  panel = createPanelApp(api.runtime, benchmarks).listen({ port, hostname: "127.0.0.1" });
  browser = await openBrowser();
}, 300_000);
afterAll(async () => {
  await browser.close();
  await panel.stop();
  await api.end();
});

async function create(members: object = {}, as = token) {
  counter += 1;
  const shipment = item(`PAGE-${counter}`, { consignee: CONSIGNEE, ...members });
  const body = { shipments: [shipment] };
  const answer = await api.call("POST", "/v2/shipments", { token: as, body });
  return answer.body.items[0] as { id: number; trackingUrl: string; trackingNumber: string };
}

/** A shipment underway, whose courier names the recipient in its own words. */
async function underway(members: object = {}) {
  const shipment = await create({
    planning: { deliveryDate: "2026-11-12" },
    orderReference: "ORDER-1",
    note: "ring at Rossi",
    ...members,
  });
  await applyEvents(api.runtime, shipment.id, [
    { status: STATUS.departed, occurredAt: "2026-11-10T08:00:00+01:00" },
    {
      status: { code: "HLD", description: "In giacenza per Giulia Bianchi" },
      occurredAt: "2026-11-11T09:30:00+01:00",
      location: { name: "Filiale Torino" },
      delivery: { estimatedDeliveryDate: "2026-11-13", signedBy: "Giulia B." },
    },
  ]);
  return shipment;
}

async function open(url: string, options: BrowserContextOptions = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const requests: string[] = [];
  const problems: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  const response = await page.goto(url);
  return { page, requests, problems, status: response?.status(), end: () => context.close() };
}

/** What a reader sees. */
const read = async (page: Page, selector: string) =>
  (await page.locator(selector).allInnerTexts()).join(" ");

const background = (page: Page) =>
  page.evaluate("getComputedStyle(document.body).backgroundColor") as Promise<string>;

describe("the page", () => {
  test("merchant, status, detail, estimated date, number, courier, city and timeline, latest first", async () => {
    const { trackingUrl, trackingNumber } = await underway();
    const { page, status, problems, end } = await open(trackingUrl);
    expect(status).toBe(200);
    const text = (await read(page, "body")).replace(/\s+/g, " ");
    expect(await read(page, "h1")).toBe("Anomalia");
    for (const reported of [
      "Acme Italia",
      "In giacenza",
      "venerdì 13 novembre 2026",
      trackingNumber,
    ]) {
      expect(text).toContain(reported);
    }
    for (const reportedNow of ["GLS Italy", "Torino", "Filiale Torino"])
      expect(text).toContain(reportedNow);
    const events = await page.locator(".history li strong").allInnerTexts();
    expect(events).toEqual(["Anomalia", "Partita"]);
    expect(problems).toEqual([]);
    await end();
  });

  test("no personal data beyond the city, not even in the courier's words", async () => {
    const { trackingUrl } = await underway();
    const { page, end } = await open(trackingUrl);
    const source = await page.content();
    const hidden = [
      "Giulia",
      "Bianchi",
      "Segreta",
      "10123",
      "client.test",
      "333",
      "Rossi",
      "ORDER-1",
    ];
    for (const text of hidden) expect(source).not.toContain(text);
    await end();
  });

  test("no request to anybody else, and none at all beside itself", async () => {
    const { trackingUrl } = await underway();
    const { requests, page, end } = await open(trackingUrl);
    expect(requests.filter((url) => !url.startsWith("data:"))).toEqual([trackingUrl]);
    const response = await page.request.get(trackingUrl);
    const policy = response.headers()["content-security-policy"];
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    expect(response.headers()["referrer-policy"]).toBe("no-referrer");
    await end();
  });

  test("light and dark, and fits a phone", async () => {
    const { trackingUrl } = await underway({ language: "en" });
    const phone = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true };
    const seen = new Set<string>();
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, end } = await open(trackingUrl, { ...phone, colorScheme });
      seen.add(await background(page));
      const overflow = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      expect(overflow).toBe(0);
      const path = await artefact(`tracking-page-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true });
      expect((await Bun.file(path).bytes()).length).toBeGreaterThan(5_000);
      await end();
    }
    expect(seen.size).toBe(2);
  });

  test("in the shipment's language, all 17 of them; Arabic from right to left", async () => {
    const headlines = new Set<string>();
    for (const language of LANGUAGES) {
      const { trackingUrl } = await underway({ language });
      const { page, problems, end } = await open(trackingUrl);
      expect(await page.getAttribute("html", "lang")).toBe(language);
      headlines.add(`${await read(page, "h2")} ${await read(page, "h1")}`);
      if (language === "ar") expect(await page.getAttribute("html", "dir")).toBe("rtl");
      expect(problems).toEqual([]);
      await end();
    }
    expect(headlines.size).toBe(LANGUAGES.length);
  }, 300_000);

  test("before the first event it says so, and shows the planned date", async () => {
    const { trackingUrl } = await create({ planning: { deliveryDate: "2026-11-12" } });
    const { page, end } = await open(trackingUrl);
    const text = await read(page, "body");
    expect(text).toContain("Il corriere non ha ancora comunicato eventi.");
    expect(text).toContain("giovedì 12 novembre 2026");
    await end();
  });

  const WINDOWS: [string, { from?: string; to?: string }, RegExp][] = [
    [
      "a window",
      { from: "2026-11-13T10:00:00+01:00", to: "2026-11-13T11:00:00Z" },
      /10:00\s?–\s?12:00/,
    ],
    [
      "its beginning alone",
      { from: "2026-11-13T10:00:60+0100" },
      /13 novembre 2026 alle ore 10:00 –/,
    ],
    [
      "its end alone",
      { to: "2026-11-13t12:00:00,5z" },
      /– venerdì 13 novembre 2026 alle ore 13:00/,
    ],
    [
      "a window given backwards",
      { from: "2026-11-13T12:00:00+01:00", to: "2026-11-13T10:00:00+01:00" },
      /10:00\s?–\s?12:00/,
    ],
  ];
  for (const [name, estimatedDeliveryWindow, expected] of WINDOWS) {
    test(`document 2, data rule 3: the expected delivery is shown as ${name}`, async () => {
      const shipment = await underway();
      await applyEvents(api.runtime, shipment.id, [
        {
          status: STATUS.inTransit,
          occurredAt: "2026-11-12T08:00:00+01:00",
          delivery: { estimatedDeliveryDate: "2026-11-14", estimatedDeliveryWindow },
        },
      ]);
      const { page, end } = await open(shipment.trackingUrl);
      expect(await read(page, "dl")).toMatch(expected);
      await end();
    });
  }

  test("a delivered shipment has no estimated date", async () => {
    const shipment = await underway();
    await applyEvents(api.runtime, shipment.id, [
      { status: STATUS.delivered, occurredAt: "2026-11-12T09:30:00+01:00" },
    ]);
    const { page, end } = await open(shipment.trackingUrl);
    expect(await read(page, "h1")).toBe("Consegnata");
    expect(await read(page, "body")).not.toContain("Consegna prevista");
    await end();
  });

  test("what a merchant or courier wrote is text, never markup", async () => {
    const shipment = await create({ consignee: { city: '<img src=x onerror="alert(1)">' } });
    const { page, problems, end } = await open(shipment.trackingUrl);
    expect(await read(page, "body")).toContain('<img src=x onerror="alert(1)">');
    expect(await page.locator("img").count()).toBe(0);
    expect(problems).toEqual([]);
    await end();
  });
});

describe("trackingUrl", () => {
  test("the same in the create answer, the search and the detail; another for each shipment", async () => {
    const first = await create();
    const second = await create();
    const { body } = await api.call("GET", `/v2/shipments/${first.id}`, { token });
    const found = await api.call("GET", `/v2/shipments?trackingNumber=${first.trackingNumber}`, {
      token,
    });
    expect(body.trackingUrl).toBe(first.trackingUrl);
    expect(found.body.items[0].trackingUrl).toBe(first.trackingUrl);
    expect(second.trackingUrl).not.toBe(first.trackingUrl);
  });

  test("null for a channel without tracking page", async () => {
    const outlet = await api.token("key_acme_outlet");
    const { id, trackingUrl } = await create({}, outlet);
    const { body } = await api.call("GET", `/v2/shipments/${id}`, { token: outlet });
    expect([trackingUrl, body.trackingUrl]).toEqual([null as never, null]);
  });
});

describe("the language", () => {
  test("is the shipment's, and any other one by two clicks, without a script", async () => {
    const { trackingUrl } = await underway();
    const { page, end } = await open(trackingUrl);
    expect(await page.locator("html").getAttribute("lang")).toBe("it");
    await page.locator("summary").click();
    await page.getByRole("link", { name: "Deutsch" }).click();
    await page.getByText("Sendungsverlauf").waitFor();
    expect(await page.locator("html").getAttribute("lang")).toBe("de");
    await page.goto(`${trackingUrl}?lang=__proto__`);
    expect(await page.locator("html").getAttribute("lang")).toBe("it");
    await end();
  });
});

describe("404", () => {
  test("an unknown token, a guessed one, and a text that is none", async () => {
    const { trackingUrl } = await create();
    const [start = "", random = ""] = trackingUrl.split(/-(.*)/s);
    const guessed = `${start}-${random.slice(0, -1)}${random.endsWith("A") ? "B" : "A"}`;
    const base = trackingUrl.replace(/\/t\/.*/, "/t");
    for (const url of [guessed, `${base}/zzzz-${random}`, `${base}/hello`, `${base}/-${random}`]) {
      const { page, status, end } = await open(url);
      expect(status).toBe(404);
      expect(await read(page, "h1")).toBe("404");
      await end();
    }
  });
});

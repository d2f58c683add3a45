/** Every page of the control panel in a real browser: what it shows, that it is accessible, and that it fits. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import {
  changeLogs,
  companyKeys,
  companyPartition,
  deadLetterKey,
} from "#core/platform/redis/keys.ts";
import { PAGE_PATHS } from "#panel/web/paths.ts";
import { openBrowser } from "#test/support/clients/browser.ts";
import { event, push } from "#test/support/clients/courier.ts";
import {
  accessFaults,
  cutShort,
  drawn,
  keyboardFaults,
  openVisitor,
  overflowOf,
  type Visitor,
} from "#test/support/clients/panel-visitor.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { addLaneHistory } from "#test/support/data/lanes.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestAnalytics, type TestAnalytics } from "#test/support/product/analytics.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";

const CAP = "00184";
const JOBS = 203;

let product: TestAnalytics;
let browser: Browser;
let endpointId: string;
let invitation: string;
let shipmentId: number;
/** Address of a shared quality report. */
let shared: string;
let owner: TestAccount;

beforeAll(async () => {
  product = await openTestAnalytics(testSetup());
  await addLaneHistory(product.runtime.redis, CAP);
  shipmentId = await addShipment(product.runtime, "PAGES-1", { orderReference: "ORDER-1" });
  await addShipment(product.runtime, "LATE-1", {
    shipDate: daysAgo(20),
    consignee: { name: "Ada", postcode: CAP, city: "Roma", country: "IT" },
  });
  const code = { code: "TRN", description: "In transito" };
  const common = { occurredAt: "2026-11-10T08:00:00+01:00", location: { name: "Bologna" } };
  const events = [
    event({ trackingNumber: "PAGES-1", status: code, ...common }),
    event({ trackingNumber: "PAGES-1", status: { code: "NEW", description: "?" }, ...common }),
  ];
  const { status } = await push(product.ingest, events, { token: "tok_gls_1" });
  expect(status).toBe(200);
  const hook = { url: "https://8.8.8.8/hook", alertEmail: "ops@acme.test" };
  const made = await product.call("POST", "/panel/api/channels/acme-it/webhooks", hook);
  endpointId = made.body.endpointId;
  await product.call("POST", `/panel/api/webhooks/${endpointId}/disable`);
  const guest = { email: "guest@waybill.test", name: "Guest", kind: "operator", role: "read-only" };
  const invited = await product.call("POST", "/panel/api/invitations", guest);
  invitation = new URL(invited.body.link).pathname;
  await product.settled();
  const link = await product.call("POST", "/panel/api/couriers/GLS_ITA/quality-links", {});
  shared = new URL(link.body.url).pathname;
  owner = await makeAccount(product.runtime, "company", "owner", { companyCode: "acme" });
  await addJobs(product.runtime);
  await addDeadLetter(product.runtime);
  browser = await openBrowser();
}, 300_000);

/** More imports than a page of the list has, the first one the newest, half done, which no worker goes on with. */
async function addJobs({ redis, live }: TestRuntime): Promise<void> {
  const channel = (await live.refresh()).channelByCode.get("acme-it");
  if (!channel) throw new Error("no channel acme-it");
  const { id, companyId } = channel;
  const keys = companyKeys(companyPartition(companyId));
  const jobs = Array.from({ length: JOBS }, (_, at) => `job-${String(at).padStart(3, "0")}`);
  const nowMs = live.now();
  for (const [at, job] of jobs.entries()) {
    const createdAtMs = nowMs - at;
    await redis.hSet(keys.job(job), {
      companyId,
      channelId: id,
      status: "processing",
      createdAtMs,
      total: 100,
      processed: 40,
      failed: 1,
      webhookUrl: "",
    });
    const errors = [{ code: "MISSING_PACKAGE_INFO", field: "parcels", message: "Add a parcel." }];
    const failed = [{ index: 3, trackingNumber: "FAILED-3", errors }];
    const result = JSON.stringify({ successes: [], errors: failed });
    await redis.hSet(keys.jobResults(job), { 0: result });
    await redis.zAdd(keys.latestJobs, { score: createdAtMs, value: `${id}:${job}` });
  }
}

/** As a consumer leaves it. */
async function addDeadLetter({ redis }: TestRuntime): Promise<void> {
  const [log = ""] = changeLogs();
  await redis.xAdd(deadLetterKey(log), "*", {
    log,
    group: "webhooks",
    id: "7-1",
    reason: "out of order",
    entry: JSON.stringify({ s: "1", change: "{}" }),
  });
}

afterAll(async () => {
  await browser?.close();
  await product?.end();
});

/** An operator, unless an account's cookie says otherwise. */
function visit(options: Parameters<typeof openVisitor>[2] = {}) {
  const token = product.runtime.secrets.panelToken;
  return openVisitor(browser, product.panel, options.cookie ? options : { token, ...options });
}

interface Seen {
  readonly path: string;
  /** Stands when the page is there. */
  readonly heading: string;
  /** Those that are looked at too; the first stands open. */
  readonly tabs?: readonly string[];
}

/** What an operator sees, and who has no account. */
const operatorsPages = (): readonly Seen[] => [
  { path: "/login", heading: "Waybill", tabs: ["Operator's token"] },
  { path: invitation, heading: "Welcome to Waybill" },
  { path: shared, heading: "How GLS Italy reports" },
  { path: "/overview", heading: "Pipeline" },
  { path: "/shipments", heading: "Shipments" },
  { path: `/shipments/${shipmentId}`, heading: "PAGES-1" },
  { path: "/webhooks", heading: "Webhooks" },
  { path: `/webhooks/${endpointId}`, heading: "panel-", tabs: ["Health", "Send again"] },
  { path: "/inbox", heading: "Refused events" },
  { path: "/requests", heading: "API calls" },
  { path: "/alarms", heading: "Receivers" },
  { path: "/companies", heading: "Companies" },
  { path: "/carriers", heading: "Unmapped codes" },
  {
    path: "/carriers/GLS_ITA",
    heading: "Onboarding",
    tabs: ["Catalogue", "Message finder", "First day", "Quality"],
  },
  { path: `/benchmarks?destCap=${CAP}`, heading: "How couriers report" },
  { path: "/sql", heading: "SQL" },
  { path: "/dead-letters", heading: "Dead letters" },
  { path: "/accounts", heading: "Accounts" },
  { path: "/jobs", heading: "Jobs" },
  { path: "/doctor", heading: "Settings doctor" },
  { path: "/audit", heading: "Audit log" },
];

/** What the owner of a company sees otherwise: forms for all that is theirs. */
const ownersPages = (): readonly Seen[] => [
  { path: "/home", heading: "Late parcels" },
  { path: "/companies/acme", heading: "Boxes" },
  {
    path: "/channels/acme-it",
    heading: "API keys",
    tabs: ["Couriers", "Mails", "Settings", "Usage"],
  },
  { path: "/me", heading: "Your account" },
];

const WIDE = { width: 1_440, height: 900 };
const NARROW = { width: 360, height: 900 };

/** The page, or its tab, as it stands: in both modes, wide and narrow. */
async function look({ page, whole }: Visitor, here: string): Promise<void> {
  await whole();
  for (const viewport of [WIDE, NARROW]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
      await drawn(page);
      const found = await accessFaults(page, colorScheme === "light" ? "all" : "colours");
      const seen = `${here}, ${colorScheme}, ${viewport.width} pixels`;
      expect([seen, found, await overflowOf(page)]).toEqual([seen, [], 0]);
    }
    if (viewport === NARROW) expect([here, await cutShort(page)]).toEqual([here, []]);
    else expect([here, await keyboardFaults(page)]).toEqual([here, []]);
  }
  await page.setViewportSize(WIDE);
}

/** Behind the log-in, where links lead from page to page. */
const OUTSIDE = ["about:blank", "/login", "/invitation/", "/quality/"];
const isInside = (page: Page) => OUTSIDE.every((part) => !page.url().includes(part));

describe("every page", () => {
  test("that the router has is among those that are looked at here", () => {
    const patterns = [...operatorsPages(), ...ownersPages()].map(({ path }) =>
      path.replace(/\?.*/, "").split("/"),
    );
    const isSeen = (page: string) => {
      const parts = page.split("/");
      return patterns.some(
        (seen) =>
          seen.length === parts.length &&
          parts.every((part, at) => part === seen[at] || (part.startsWith(":") && seen[at])),
      );
    };
    // It leads to the first page that its visitor may open.
    const unseen = PAGE_PATHS.filter((page) => page !== "/" && !isSeen(page));
    expect(unseen).toEqual([]);
  });

  test.each([
    ["an operator", operatorsPages, () => visit()],
    ["the owner of a company", ownersPages, () => visit({ cookie: owner.cookie })],
  ] as const)(
    "is accessible, by keyboard too, fits and works without a fault, wide and narrow, light and dark: %s",
    async (_, pages, enter) => {
      const visitor = await enter();
      const { page, open, go, problems, requests } = visitor;
      await page.setViewportSize(WIDE);
      for (const { path, heading, tabs = [] } of pages()) {
        await (isInside(page) ? go(path) : open(path));
        await page.getByRole("heading", { name: heading }).first().waitFor();
        await look(visitor, path);
        for (const tab of tabs) {
          await page.getByRole("tab", { name: tab, exact: true }).click();
          await look(visitor, `${path} ${tab}`);
        }
      }
      expect(problems.filter((text) => !text.includes("404"))).toEqual([]);
      expect(
        requests.filter((url) => !/^(blob|data):/.test(url) && !url.startsWith(product.panel)),
      ).toEqual([]);
      await visitor.end();
    },
    400_000,
  );

  test("stands here with rows where a list may be empty, and shows all of a long one", async () => {
    const { page, open, end } = await visit();
    await open("/jobs");
    const jobs = page.getByRole("region", { name: "Jobs" });
    await jobs.getByRole("row", { name: /acme-it job-000 .*40 \/ 100/ }).waitFor();
    await jobs.getByRole("button", { name: "1 Failed items of job-000" }).click();
    const failed = page.getByRole("dialog");
    await failed.getByRole("row", { name: "4 FAILED-3 parcels: Add a parcel." }).waitFor();
    await drawn(page);
    expect(await accessFaults(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await eventually(async () => {
      await jobs.press("End");
      return (await jobs.getByRole("row", { name: /job-202/ }).count()) === 1;
    }, "the last job is in the table");
    await open("/dead-letters");
    await page.getByRole("row", { name: /webhooks.*out of order/ }).waitFor();
    await end();
  });
});

describe("a page on a telephone in Italian, whose words are longer", () => {
  test("cuts nothing short: its tables are cards, each value under its heading", async () => {
    const viewport = { width: 360, height: 740 };
    const { page, open, whole, end } = await visit({ locale: "it-IT", viewport });
    await open(`/webhooks/${endpointId}`);
    await page.getByRole("combobox", { name: "Stato" }).waitFor();
    for (const path of [`/webhooks/${endpointId}`, "/shipments", "/companies/acme", "/doctor"]) {
      await open(path);
      await whole();
      expect([path, await cutShort(page)]).toEqual([path, []]);
    }
    // The words of every check are Italian, and so is what to do about one that differs.
    const { redis } = product.runtime;
    const setting = "set-max-intset-entries";
    const kept = (await redis.configGet(setting))[setting] ?? "512";
    await redis.configSet(setting, "128");
    await open("/doctor");
    const differing = page.getByRole("row", { name: /Redis tiene compatti i piccoli insiemi/ });
    await differing.getByText("Diverso").waitFor();
    await differing.getByText(/^Imposta set-max-intset-entries 512/).waitFor();
    await redis.configSet(setting, kept);
    const english = /The |Redis is|Redis keeps|Redis writes|ClickHouse is|ClickHouse takes|Set /;
    expect(await page.getByRole("rowheader").filter({ hasText: english }).count()).toBe(0);
    await open("/carriers/GLS_ITA?tab=catalogue");
    const unmapped = page.getByRole("region", { name: "Codici non mappati" });
    const code = unmapped.locator("tbody td:nth-child(2)").first();
    await code.waitFor();
    expect(await cutShort(page)).toEqual([]);
    const heading = await page.evaluate(
      "getComputedStyle(document.querySelector('[aria-label=\"Codici non mappati\"] tbody td:nth-child(2)'), '::before').content",
    );
    expect(heading).toBe('"Codice"');
    await end();
  });
});

/** Before every section of the benchmarks shows its figures, buttons move and an open menu closes. */
async function untilFiguresAreShown({ page, whole }: Visitor): Promise<void> {
  await page.locator("[data-series] circle").first().waitFor({ state: "attached" });
  for (const name of ["Destinations", "How couriers report"]) {
    await page.getByRole("region", { name }).locator("tbody tr").first().waitFor();
  }
  await whole();
}

describe("the benchmarks", () => {
  test("show the couriers of a lane, the fastest first, with the shares of their days", async () => {
    const { page, open, end } = await visit();
    await open("/benchmarks");
    await page.getByLabel("Destination CAP").fill(CAP);
    await page.getByLabel("Origin CAP").fill("20121");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: `Couriers from 20121 to ${CAP}` }).waitFor();
    expect(new URL(page.url()).searchParams.get("destCap")).toContain(CAP);
    const table = page.getByRole("region", { name: "Comparison, the fastest first" });
    const rows = table.locator("tbody tr");
    await rows.first().waitFor();
    const cells = await rows.evaluateAll((all) =>
      all.map((row) => [...row.querySelectorAll("th, td")].map((cell) => cell.textContent?.trim())),
    );
    expect(cells.map((row) => row.slice(0, 5))).toEqual([
      [
        ...["GLS_ITA", "60.9speed 68.2, consistency 68.2, reliability 50", "CAP to CAP"],
        ...["30", "1"],
      ],
      [
        ...["BRT_ITA", "42.4speed 28.2, consistency 55.5, reliability 50", "CAP to CAP"],
        ...["25", "4"],
      ],
    ]);
    const chart = page.getByRole("figure", { name: /Couriers from/ });
    expect(await chart.getAttribute("aria-label")).toContain("GLS_ITA 1: 66.7%, 3: 33.3%");
    await chart.locator("svg .recharts-bar-rectangle").nth(4).waitFor({ state: "attached" });
    await end();
  });

  test("show months and provinces, of one courier too, and say what is no CAP", async () => {
    const visitor = await visit();
    const { page, open, problems, end } = visitor;
    await open("/benchmarks");
    await page.getByRole("img", { name: /^Lazio: 2/ }).waitFor();
    await untilFiguresAreShown(visitor);
    await page.getByRole("combobox", { name: "Courier" }).click();
    await page.getByRole("option", { name: "SDA_ITA" }).click();
    await page.getByRole("img", { name: /^Lazio: no deliveries/ }).waitFor();
    const destinations = page.getByRole("region", { name: "Destinations" });
    await destinations.getByRole("columnheader", { name: "95 % interval" }).waitFor();
    const provinces = destinations.locator("tbody tr");
    const last = provinces.last().filter({ hasText: "Cagliari" });
    await last.waitFor();
    expect(await last.textContent()).toContain("9");
    const trend = page.getByRole("group", { name: "Median days by month" });
    await trend.locator("[data-series=GLS_ITA] circle").nth(2).waitFor({ state: "attached" });
    await trend.getByText("Median, days").waitFor();
    // The running month is no trend: it is dashed, named, and says how few deliveries it stands on.
    expect(await trend.locator("[data-series=GLS_ITA] path").last().getAttribute("d")).toStartWith(
      "M",
    );
    await trend.getByText("incomplete", { exact: true }).waitFor();
    await trend.focus();
    await page.keyboard.press("ArrowLeft");
    await trend
      .getByRole("status")
      .getByText(/GLS_ITA \d.* n = \d+, 95 %/)
      .waitFor({ state: "attached" });
    const table = page.getByRole("region", { name: "Median days by month" }).locator("tbody");
    await table
      .getByText(/\(incomplete\)/)
      .first()
      .waitFor();
    await page.getByLabel("Destination CAP").fill("9999");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("Five digits").waitFor();
    expect(problems).toEqual([]);
    await end();
  });
});

/** What a page draws, beside the colours of the scheme that it is to draw in. */
const COLOURS_OF_OURS = `(() => {
  const probe = document.body.appendChild(document.createElement("span"));
  const named = (name) => {
    probe.style.color = "var(--mantine-color-" + name + ")";
    return getComputedStyle(probe).color;
  };
  const styleOf = (start) => getComputedStyle(document.querySelector('[class*="' + start + '"]'));
  return {
    page: styleOf("page-body").backgroundColor,
    head: styleOf("head_").backgroundColor,
    ground: styleOf("ground_").fill,
    line: getComputedStyle(
      document.querySelector('[class*="ground_"]').closest("svg").querySelector('[class*="line_"]'),
    ).fill,
    known: Object.fromEntries(
      ["gray-0", "gray-1", "gray-4", "white", "dark-8", "dark-6", "dark-3"].map((name) => [name, named(name)]),
    ),
  };
})()`;

interface ColoursOfOurs {
  readonly page: string;
  readonly head: string;
  readonly ground: string;
  readonly line: string;
  readonly known: Readonly<Record<string, string>>;
}

describe("the colours of our own styles", () => {
  for (const [colorScheme, page, head, ground, line] of [
    ["light", "gray-0", "white", "gray-1", "gray-4"],
    ["dark", "dark-8", "dark-6", "dark-6", "dark-3"],
  ] as const) {
    test(`are those of the scheme in ${colorScheme}, and a region without deliveries is hatched and named beside the map`, async () => {
      const visitor = await visit({ colorScheme });
      await visitor.open("/benchmarks");
      await visitor.page.getByRole("img", { name: /^Lazio: 2/ }).waitFor();
      await untilFiguresAreShown(visitor);
      await drawn(visitor.page);
      const { known, ...colours } = (await visitor.page.evaluate(COLOURS_OF_OURS)) as ColoursOfOurs;
      expect(colours).toEqual({
        page: known[page] ?? "",
        head: known[head] ?? "",
        ground: known[ground] ?? "",
        line: known[line] ?? "",
      });
      const empty = visitor.page.getByRole("img", { name: "Molise: no deliveries" });
      expect(await empty.getAttribute("fill")).toBe("url(#no-deliveries)");
      await visitor.page.getByText("no deliveries", { exact: true }).waitFor();
      await visitor.end();
    });
  }
});

describe("the merchant's home", () => {
  test("shows at the first page what is late for its lane, and leads to what is stuck or in trouble", async () => {
    const { page, open, problems, end } = await visit({ cookie: owner.cookie });
    await open("/");
    await page.getByRole("heading", { level: 1, name: "Today" }).waitFor();
    // Nine of ten of this courier's thirty deliveries to the CAP took at most three days.
    const late = page.getByRole("region", { name: "Late parcels" });
    await late.getByRole("row", { name: /LATE-1.* 20 3 \(n = 30\)/ }).waitFor();
    await page
      .getByRole("img", { name: /under 1 day: \d/ })
      .first()
      .waitFor();
    await page.getByRole("region", { name: "How webhooks fare" }).waitFor();
    await page.getByRole("link", { name: "Exceptions to act on" }).click();
    await page.waitForURL(/\/shipments\?status=EXCEPTION/);
    expect(problems).toEqual([]);
    await end();
  });
});

describe("the overview", () => {
  test("shows each courier's hours, and what the two numbers of its last hours are", async () => {
    const { page, open, end } = await visit();
    await open("/overview");
    const hours = page.getByRole("table", { name: "Events by courier and hour" });
    const none = page.getByText("No events in the last 24 hours.");
    await hours.or(none).waitFor();
    await open("/benchmarks");
    const quality = page.getByRole("region", { name: "How couriers report" });
    await quality.getByText("Events in the last 3 h, of the usual").first().waitFor();
    await page.getByRole("group", { name: "Report delay by courier" }).waitFor();
    await end();
  });

  test("says that it is no longer live when its server stands still", async () => {
    const { page, open, end } = await visit();
    await page.clock.install();
    await open("/overview");
    await page.getByText("Live", { exact: true }).waitFor();
    await page.route("**/panel/api/overview*", () => {});
    await page.clock.fastForward(30_000);
    await page.getByText(/^No news for /).waitFor();
    await end();
  });
});

describe("the export", () => {
  test("saves the figures of a section as CSV and as Parquet", async () => {
    const visitor = await visit();
    const { page, open, end } = visitor;
    await open("/benchmarks");
    await untilFiguresAreShown(visitor);
    const save = async (section: string, format: string) => {
      const saving = page.waitForEvent("download");
      await page.getByRole("button", { name: `Export ${section}` }).click();
      await page.getByRole("menuitem", { name: format }).click();
      const file = await saving;
      return [file.suggestedFilename(), Bun.file(await file.path())] as const;
    };
    const [name, csv] = await save("Destinations", "CSV");
    expect(name).toEndWith(".csv");
    expect(await csv.text()).toContain("deliveries");
    const [, parquet] = await save("Median days by month", "Parquet");
    expect(await parquet.slice(0, 4).text()).toBe("PAR1");
    await end();
  });
});

describe("the SQL editor", () => {
  test("runs a statement by keyboard, shows its rows, says what is refused, and saves the rows as a file", async () => {
    const { page, open, end } = await visit();
    await open("/sql");
    const editor = page.getByRole("textbox", { name: "Statement" });
    await editor.fill(
      "SELECT courier, count() AS n FROM deliveries GROUP BY courier ORDER BY n DESC",
    );
    await editor.press("Control+Enter");
    await page.getByText(/^3 rows in/).waitFor();
    const first = page.getByRole("region", { name: "Result" }).locator("tbody tr").first();
    expect(await first.textContent()).toBe("GLS_ITA30");
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    const text = await Bun.file(await (await saving).path()).text();
    expect(text).toStartWith('"courier","n"');
    await editor.fill("DROP TABLE deliveries");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("alert").waitFor();
    await end();
  });
});

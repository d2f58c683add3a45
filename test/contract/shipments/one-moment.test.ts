/** Whatever is asked about a shipment while courier events come in, one answer shows it as it was at one moment. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { instantOf, romeDateTime } from "#core/platform/time/rome-time.ts";
import type { Running } from "#core/runtime/runtime.ts";
import type { ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { startProcessors } from "#processors/main.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { applyEvents, STATUS } from "#test/support/product/webhooks.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

/** Events of one shipment, which is read meanwhile. */
const EVENTS = 60;
const START_MS = instantOf("2026-11-10T08:00:00+01:00");
/** The n-th event of a shipment brings the n-th of these, in turn: what an answer says of it tells which one it was. */
const TURNS = [
  { status: "IN_TRANSIT", courier: STATUS.inTransit },
  { status: "OUT_FOR_DELIVERY", courier: STATUS.outForDelivery },
  { status: "EXCEPTION", courier: STATUS.heldInDepot },
] as const;
const NAMES: readonly string[] = TURNS.map(({ status }) => status);

let api: TestApi;
let panel: TestPanel;
let pages: ReturnType<typeof createPanelApp>;
let closeBenchmarks: () => Promise<void>;
let processors: Running;
let token: string;
let receiver: Receiver;
let mails: MailServer;

beforeAll(async () => {
  receiver = await startReceiver();
  mails = await startMailServer();
  const setup = testSetup();
  const channel = setup.companies?.[0]?.channels?.[0];
  if (!channel) throw new Error("the test setup has no channel");
  const subject = "{{status}} {{statusPlace}} {{statusDate}}";
  channel.trackingPage = true;
  channel.emails = {
    managed: true,
    templates: [{ event: "default", language: "it", subject, body: "x" }],
    statusNotifications: TURNS.map(({ status }) => status),
  };
  const webhook = { code: "main", alertEmail: "o@acme.test", secret: WEBHOOK_SECRET };
  channel.webhooks = [{ ...webhook, url: receiver.url }];
  const env = { WEBHOOK_CA_FILE: AUTHORITY.file, SMTP_URL: mails.url };
  api = await openTestApi(setup, "away", env);
  panel = await openTestPanel(api.runtime);
  const benchmarks = await openBenchmarks(api.runtime.config);
  closeBenchmarks = () => benchmarks.close();
  pages = createPanelApp(api.runtime, benchmarks);
  processors = await startProcessors(api.runtime);
  token = await api.token("key_acme_main");
  for (const n of [1, 2, 3]) await happen((await create(`STILL-${n}`)).id, 0);
}, 300_000);

afterAll(async () => {
  await processors.stop();
  await panel.end();
  await closeBenchmarks();
  await api.end();
  await mails.stop();
  await receiver.stop();
});

interface Created {
  readonly id: number;
  readonly trackingUrl: string;
}

async function create(trackingNumber: string): Promise<Created> {
  const consignee = { email: "eva@client.test" };
  const body = { shipments: [item(trackingNumber, { consignee })] };
  const answer = await api.call("POST", "/v2/shipments", { token, body });
  return answer.body.items[0];
}

function happen(shipmentId: number, n: number): Promise<void> {
  const occurredAt = new Date(START_MS + n * 60_000).toISOString();
  const status = TURNS[n % TURNS.length]?.courier;
  return applyEvents(api.runtime, shipmentId, [
    { occurredAt, location: { name: `P${n}` }, ...(status && { status }) },
  ]);
}

async function eventsOf({ id }: Created): Promise<void> {
  for (let n = 0; n < EVENTS; n += 1) await happen(id, n);
}

type Told = Pick<ShipmentSummary, "status" | "statusDate" | "statusPlace" | "statusUpdatedAt">;

/** The event that a summary shows, and nothing else of it belongs to another one. @returns -1 before the first */
function eventOf({ status, statusDate, statusPlace, statusUpdatedAt }: Told): number {
  if (statusPlace === null) {
    expect([statusDate, statusUpdatedAt, NAMES.includes(status)]).toEqual([null, null, false]);
    return -1;
  }
  const n = Number(statusPlace.slice(1));
  expect([status, statusDate]).toEqual([
    TURNS[n % TURNS.length]?.status ?? "PENDING",
    romeDateTime(START_MS + n * 60_000),
  ]);
  expect(statusUpdatedAt).not.toBeNull();
  return n;
}

const read = async (path: string) => (await api.call("GET", path, { token })).body;

/** Status and history tell the same, and no notification is about a status that the history lacks. */
async function detail({ id }: Created): Promise<void> {
  const body = await read(`/v2/shipments/${id}`);
  const n = eventOf(body);
  expect(body.history).toHaveLength(n + 1);
  expect(body.history[0]?.place ?? null).toBe(body.statusPlace);
  expect(body.history[0]?.statusCode ?? body.status).toBe(body.status);
  const known = new Set(body.history.map((entry: { statusCode: string }) => entry.statusCode));
  for (const { shipmentStatus } of body.notifications) expect(known).toContain(shipmentStatus);
  const isWebhook = ({ type }: { type: string }) => type === "webhook";
  expect(body.notifications.filter(isWebhook).length).toBeLessThanOrEqual(n + 1);
}

async function trace({ id }: Created): Promise<void> {
  const { body } = await panel.call("GET", `/panel/api/shipments/${id}/trace?limit=1000`);
  expect(body.events).toHaveLength(body.total);
  const last = body.events.at(-1);
  if (!last) return expect(NAMES).not.toContain(body.current.status);
  expect(last.change.after).toEqual(body.current);
  expect(body.current.status).toBe(TURNS[(body.total - 1) % TURNS.length]?.status);
}

/** The headline and the latest entry are the same status. */
async function trackingPage({ trackingUrl }: Created): Promise<void> {
  const page = await (await pages.handle(new Request(trackingUrl))).text();
  const headline = /<h1[^>]*>([^<]+)<\/h1>/.exec(page)?.[1];
  const [latest] = [...page.matchAll(/<strong>([^<]+)<\/strong>/g)].map(([, text]) => text);
  expect(headline).toBeDefined();
  if (latest !== undefined) expect(latest).toBe(headline ?? "");
}

/** Three shipments are always in transit; a page of two is full, and holds none that is not. */
async function search(): Promise<void> {
  for (const sortBy of ["id_desc", "updatedAt_asc", "updatedAt_desc"]) {
    const query = `status=IN_TRANSIT&updatedAfter=2026-01-01 00:00:00&sortBy=${sortBy}&limit=2`;
    const { items, total } = await read(`/v2/shipments?${query}`);
    expect(items.map(({ status }: Told) => status)).toEqual(["IN_TRANSIT", "IN_TRANSIT"]);
    expect([3, 4]).toContain(total);
    const all = await read(`/v2/shipments?${query.replace("limit=2", "limit=100")}`);
    expect(all.items).toHaveLength(all.total);
    for (const one of all.items) expect(eventOf(one) % TURNS.length).toBe(0);
  }
}

/** A mapping of the code in transit changes the present status of none that is not in transit. */
async function preview(): Promise<void> {
  const path = "/panel/api/couriers/GLS_ITA/catalogue/TRN?preview=true";
  const { body } = await panel.call("PUT", path, { status: "DELAY" });
  expect(body.preview.states.map(({ before }: { before: object }) => before)).toEqual([
    { status: "IN_TRANSIT", detail: 0 },
  ]);
}

test.each(Object.entries({ detail, trace, trackingPage, search, preview }))(
  "%s, while events come in",
  async (name, reader) => {
    const shipment = await create(name);
    let reads = 0;
    let isOver = false;
    const keepReading = async () => {
      for (; !isOver; reads += 1) await reader(shipment);
    };
    const events = eventsOf(shipment).finally(() => {
      isOver = true;
    });
    await Promise.all([keepReading(), events]);
    // The next search counts those that are in transit: this one is not.
    await happen(shipment.id, EVENTS + 1);
    expect(reads).toBeGreaterThan(1);
  },
  300_000,
);

test("its webhooks and mails each show the shipment at a single point in time", async () => {
  const reported = await create("TOLD");
  const { id } = reported;
  await eventsOf(reported);
  const own = () => receiver.requests.filter(({ body }) => body.data.shipment.id === id);
  await eventually(() => own().length >= EVENTS, "every webhook has arrived");
  for (const { body } of own()) expect(eventOf(body.data.shipment)).toBeGreaterThanOrEqual(0);
  await eventually(() => mails.received.length > 0, "mails have arrived");
  for (const { subject } of mails.received) {
    const [status = "", statusPlace = "", ...date] = subject.split(" ");
    const shown = { status, statusPlace, statusDate: date.join(" "), statusUpdatedAt: "some time" };
    expect(eventOf(shown as Told)).toBeGreaterThanOrEqual(0);
  }
}, 300_000);

/** Features that meet on one shipment, tried from outside on the running product. `test/pairs.ts` lists all pairs. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { event, push } from "#test/support/clients/courier.ts";
import { request } from "#test/support/clients/merchant.ts";
import { askPanel } from "#test/support/clients/operator.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item } from "#test/support/product/api.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { BARE, newProduct, type Product } from "#test/support/product/product.ts";
import { STATUS } from "#test/support/product/webhooks.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";
import {
  AUTHORITY,
  type ReceivedRequest,
  type Receiver,
  startReceiver,
} from "#test/support/servers/receiver.ts";

const LIVE_KEY = "key_acme_main";
/** Its channel has no webhooks. */
const OUTLET_KEY = "key_acme_outlet";
const TEST_KEY = "key_test_of_acme";
const TEST_COURIER = "WAYBILL_TEST";
const DAY_SECONDS = 86_400;
const RECIPIENT = { name: "Zyxw Name", city: "Roma", email: "zyxw@client.test" };
const ENDPOINTS = { live: "acme-it", test: "acme-it:test" } as const;

let mail: MailServer;
let live: Receiver;
let rehearsal: Receiver;
let product: Product;

beforeAll(async () => {
  mail = await startMailServer();
  [live, rehearsal] = await Promise.all([startReceiver(), startReceiver()]);
  product = await newProduct(BARE, setupOf(), env());
  await product.start();
}, 300_000);

const env = () => ({
  WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8",
  WEBHOOK_CA_FILE: AUTHORITY.file,
  SMTP_URL: mail.url,
  ARCHIVE_AFTER_DAYS: "1",
  ARCHIVE_ROUND_SECONDS: "1",
});

afterAll(async () => {
  await product.end();
  await Promise.all([live.stop(), rehearsal.stop(), mail.stop()]);
}, 300_000);

function setupOf() {
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  channel?.apiKeys?.push({ code: "rehearsal", mode: "test", key: TEST_KEY, companyWideRead: true });
  const common = { trigger: "every_event", alertEmail: "ops@acme.test" } as const;
  Object.assign(channel ?? {}, {
    webhooks: [
      { code: "live", url: live.url, include: ["consignee"], ...common },
      { code: "test", mode: "test", url: rehearsal.url, ...common },
    ],
    emails: {
      managed: true,
      from: "shop@acme.test",
      templates: [{ event: "review", language: "it", subject: "Com'è andata?", body: "x" }],
    },
  });
  return setup;
}

/** By API key, of the day that it is: they last a day. */
const tokens = new Map<string, string>();

async function call(method: string, path: string, body?: unknown, apiKey = LIVE_KEY) {
  if (!tokens.has(apiKey)) {
    const { body: issued } = await request("POST", `${product.api}/v2/auth/token`, { apiKey });
    tokens.set(apiKey, issued.token);
  }
  const headers = { authorization: `Bearer ${tokens.get(apiKey)}` };
  return request(method, `${product.api}/v2${path}`, body, headers);
}

const operator = (method: string, path: string, body?: unknown) =>
  askPanel(product, method, path, body);

const detail = async (id: number, apiKey = LIVE_KEY) =>
  (await call("GET", `/shipments/${id}`, undefined, apiKey)).body;

async function create(trackingNumber: string, members = {}, apiKey = LIVE_KEY): Promise<number> {
  const body = { shipments: [item(trackingNumber, members)] };
  const { status, body: answer } = await call("POST", "/shipments", body, apiKey);
  expect([status, answer.items?.[0]?.errors]).toEqual([201, undefined]);
  return answer.items[0].id;
}

async function importAll(shipments: readonly unknown[], apiKey = LIVE_KEY) {
  const { body } = await call("POST", "/shipments/import", { shipments }, apiKey);
  const job = async () => (await call("GET", `/jobs/${body.jobId}`, undefined, apiKey)).body;
  return eventually(async () => (await job()).result, "the import has ended");
}

/** Milliseconds that the service clock is ahead of ours. */
let aheadMs = 0;

async function advanceDays(days: number): Promise<void> {
  const advanceSeconds = days * DAY_SECONDS;
  expect((await operator("POST", "/clock", { advanceSeconds })).status).toBe(200);
  aheadMs += advanceSeconds * 1_000;
  tokens.clear();
}

/** By the service clock. */
const at = (offsetMs = 0) => new Date(Date.now() + aheadMs + offsetMs).toISOString();

async function send(...events: ReturnType<typeof event>[]): Promise<void> {
  const { body } = await push(product.ingest, events);
  expect(body.results.map(({ outcome }: { outcome: string }) => outcome)).toEqual(
    events.map(() => "ACCEPTED"),
  );
}

const hasEvents = (id: number, count: number) =>
  eventually(async () => {
    const found = await detail(id);
    return found.history.length === count && found;
  }, `shipment ${id} has ${count} events`);

const archivedShipments = async (): Promise<number> =>
  (await operator("GET", "/overview")).body.stores.archive?.shipments ?? 0;

/** Delivers a shipment of the channel without webhooks, whose decisions would keep it for 30 days, and waits until it has moved. */
async function archive(id: number, trackingNumber: string): Promise<void> {
  const before = await archivedShipments();
  await send(event({ trackingNumber, status: STATUS.delivered, occurredAt: at(-1_000) }));
  const isDelivered = async () => (await detail(id, OUTLET_KEY)).status === "DELIVERED";
  await eventually(isDelivered, "it is delivered");
  await advanceDays(2);
  // The archiver pauses for nine times as long as each unit of its work took.
  await eventually(async () => (await archivedShipments()) > before, "it is archived", 200_000);
}

async function endpointId(channel: string = ENDPOINTS.live): Promise<string> {
  return (await operator("GET", `/channels/${channel}/webhooks`)).body.items[0].id;
}

const sentOf = (receiver: Receiver, id: number): ReceivedRequest[] =>
  receiver.requests.filter(({ body }) => body.data.shipment.id === id);

const isSent = (receiver: Receiver, id: number, count: number) =>
  eventually(() => {
    const sent = sentOf(receiver, id);
    return sent.length === count && sent;
  }, `${count} webhooks of shipment ${id} are sent`);

interface LoggedDelivery {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly state: string;
  readonly shipmentId: number;
}

async function deliveriesOf(id: number, channel: string = ENDPOINTS.live) {
  const path = `/webhooks/${await endpointId(channel)}/deliveries`;
  const { items } = (await operator("GET", path)).body;
  return (items as LoggedDelivery[]).filter(({ shipmentId }) => shipmentId === id);
}

/** Replays the only delivery of a shipment, once it is delivered. */
async function replayOnly(receiver: Receiver, id: number, channel: string = ENDPOINTS.live) {
  const delivery = await eventually(async () => {
    const [only] = await deliveriesOf(id, channel);
    return only?.state === "delivered" && only;
  }, "it is delivered");
  const [first] = sentOf(receiver, id);
  const path = `/deliveries/${delivery.deliveryId}/replay`;
  expect((await operator("POST", path)).status).toBeLessThan(300);
  const [, again] = await isSent(receiver, id, 2);
  return { first, again };
}

const mapCode = (code: string, status: string) =>
  operator("PUT", `/couriers/GLS_ITA/catalogue/${code}`, {
    description: code,
    status,
    terminal: false,
  });

const erase = async (id: number) =>
  expect((await operator("DELETE", `/shipments/${id}/personal-data`)).status).toBe(204);

const verdictsOf = async (id: number): Promise<string> =>
  JSON.stringify((await operator("GET", `/shipments/${id}/trace`)).body);

describe("an archived shipment", () => {
  const hasOutletEvents = (id: number, count: number) =>
    eventually(async () => {
      const found = await detail(id, OUTLET_KEY);
      return found.history.length === count && found;
    }, `shipment ${id} has ${count} events`);

  test("is a duplicate in an import of its number", async () => {
    const id = await create("PAIR-1", {}, OUTLET_KEY);
    await archive(id, "PAIR-1");
    const result = await importAll([item("PAIR-1"), item("PAIR-2")], OUTLET_KEY);
    expect(result.summary).toMatchObject({ totalSuccess: 1, totalFailed: 1 });
    expect(result.errors[0].errors[0].code).toBe("DUPLICATE_SHIPMENT");
    const path = "/shipments?trackingNumber=PAIR-1";
    expect((await call("GET", path, undefined, OUTLET_KEY)).body.items).toMatchObject([{ id }]);
  }, 300_000);

  test("is found by an event under a number that its courier announced, and a change that comes late counts", async () => {
    const id = await create("PAIR-3", {}, OUTLET_KEY);
    const announced = { trackingNumberChange: { newTrackingNumber: "PAIR-3-NEW" } };
    await send(event({ trackingNumber: "PAIR-3", occurredAt: at(-5_000), ...announced }));
    await archive(id, "PAIR-3");
    const second = { trackingNumberChange: { newTrackingNumber: "PAIR-3-NEWER" } };
    await send(event({ trackingNumber: "PAIR-3-NEW", occurredAt: at(-3_000), ...second }));
    await hasOutletEvents(id, 3);
    await send(event({ trackingNumber: "PAIR-3-NEWER", occurredAt: at(-2_000) }));
    expect(await hasOutletEvents(id, 4)).toMatchObject({
      newTrackingNumbers: ["PAIR-3-NEW", "PAIR-3-NEWER"],
    });
    await eventually(async () => (await archivedShipments()) === 1, "only the first one is there");
  }, 300_000);

  test("that a late event brings back sends nothing to a disabled endpoint, and says why", async () => {
    const id = await create("PAIR-4", {}, OUTLET_KEY);
    await archive(id, "PAIR-4");
    const wanted = { url: live.url, alertEmail: "ops@acme.test" };
    const made = await operator("POST", "/channels/acme-outlet/webhooks", wanted);
    const path = `/webhooks/${made.body.endpointId}`;
    expect((await operator("POST", `${path}/disable`)).status).toBeLessThan(300);
    await send(event({ trackingNumber: "PAIR-4", occurredAt: at() }));
    await hasOutletEvents(id, 2);
    await eventually(async () => (await verdictsOf(id)).includes("disabled"), "it says why");
    expect((await operator("DELETE", path)).status).toBe(204);
    expect(sentOf(live, id)).toEqual([]);
    await eventually(async () => (await archivedShipments()) === 1, "only the first one is there");
  }, 300_000);
});

describe("a trace as of an earlier time", () => {
  /** Without the second of the last status change, which is kept of the latest one alone. */
  const trace = async (id: number, asOf = "") => {
    const { statusUpdatedAt: _, ...rest } = (await operator("GET", `/shipments/${id}/trace${asOf}`))
      .body;
    return rest;
  };

  test("has set-aside events from their release on and numbers from their announcement on, in the archive too", async () => {
    const early = event({ trackingNumber: "PAIR-30", occurredAt: at(-9_000) });
    expect((await push(product.ingest, [early])).body).toMatchObject({ unknownTracking: 1 });
    const id = await create("PAIR-30", {}, OUTLET_KEY);
    const answers: { instant: string; body: unknown }[] = [];
    const note = async (events: number) => {
      const body = await eventually(async () => {
        const found = await trace(id);
        return found.total === events && found;
      }, `there are ${events} events`);
      answers.push({ instant: at(), body });
    };
    await note(0);
    const change = { trackingNumberChange: { newTrackingNumber: "PAIR-30-NEW" } };
    await send(event({ trackingNumber: "PAIR-30", occurredAt: at(-5_000), ...change }));
    await note(2);
    await send(event({ trackingNumber: "PAIR-30-NEW", occurredAt: at(-7_000) }));
    await note(3);
    await archive(id, "PAIR-30");
    for (const { instant, body } of answers) {
      expect(await trace(id, `?asOf=${instant}`)).toEqual(body);
    }
    expect(await trace(id, `?asOf=${at()}`)).toEqual(await trace(id));
  }, 300_000);
});

describe("an erased recipient", () => {
  const leaves = async (id: number) => {
    expect(JSON.stringify(await detail(id))).not.toContain("Zyxw");
    expect(await verdictsOf(id)).not.toContain("Zyxw");
  };

  test("does not come back when a code is mapped and the shipment is folded again", async () => {
    const id = await create("PAIR-5", { consignee: RECIPIENT });
    const status = { code: "PAIR5", description: "new" };
    const delivery = { deliveredTo: "NEIGHBOUR", signedBy: "Zyxw Signer" } as const;
    await send(event({ trackingNumber: "PAIR-5", status, delivery, occurredAt: at() }));
    await hasEvents(id, 1);
    await erase(id);
    expect((await mapCode("PAIR5", "EXCEPTION")).status).toBe(200);
    await eventually(async () => (await detail(id)).status === "EXCEPTION", "it is folded again");
    await leaves(id);
  }, 300_000);

  test("is in no replay of a delivery that had named them, and in none of a number that changed", async () => {
    const id = await create("PAIR-6", { consignee: RECIPIENT });
    await send(event({ trackingNumber: "PAIR-6", occurredAt: at() }));
    const [sent] = await isSent(live, id, 1);
    expect(sent?.raw).toContain(RECIPIENT.email);
    await erase(id);
    const { first, again } = await replayOnly(live, id);
    expect(again?.body.id).toBe(first?.body.id);
    expect(again?.raw).not.toContain("Zyxw");
    const change = { trackingNumberChange: { newTrackingNumber: "PAIR-6-NEW" } };
    await send(event({ trackingNumber: "PAIR-6", occurredAt: at(), ...change }));
    await send(event({ trackingNumber: "PAIR-6-NEW", occurredAt: at() }));
    await isSent(live, id, 4);
    expect(
      sentOf(live, id)
        .slice(1)
        .map(({ raw }) => raw)
        .join("\n"),
    ).not.toContain("Zyxw");
    await leaves(id);
  }, 300_000);

  test("gets no mail that was waiting for another attempt", async () => {
    const id = await create("PAIR-7", { consignee: RECIPIENT });
    mail.refuse(451);
    const { body } = await call("POST", `/shipments/${id}/notifications`, { event: "review" });
    const path = `/shipments/${id}/notifications/${body.notificationId}`;
    await eventually(() => mail.refused() > 0, "the first attempt is refused");
    await erase(id);
    mail.refuse(null);
    await advanceDays(2);
    await eventually(async () => (await call("GET", path)).body.status !== "accepted", "it ends");
    expect((await call("GET", path)).body.status).not.toBe("sent");
    expect(mail.received.filter(({ to }) => to.includes(RECIPIENT.email))).toEqual([]);
  }, 300_000);

  test("of a test parcel stays erased while its life goes on", async () => {
    const number = "TEST_REALTIME_DELIVERED-8";
    const id = await create(number, { consignee: RECIPIENT, courier: TEST_COURIER }, TEST_KEY);
    await advanceDays(0.2);
    await eventually(async () => (await detail(id, TEST_KEY)).history.length > 0, "it lives");
    await erase(id);
    await advanceDays(2);
    const ended = await eventually(async () => {
      const found = await detail(id, TEST_KEY);
      return found.status === "DELIVERED" && found;
    }, "it is delivered");
    expect(JSON.stringify(ended)).not.toContain("Zyxw");
  }, 300_000);
});

describe("a code that is mapped later", () => {
  test("is found by a catch-up, counts for events under every number, and leaves the id of a replay as it was", async () => {
    const id = await create("PAIR-9");
    const status = { code: "PAIR9", description: "new" };
    const change = { trackingNumberChange: { newTrackingNumber: "PAIR-9-NEW" } };
    await send(event({ trackingNumber: "PAIR-9", status, occurredAt: at(-9_000), ...change }));
    await send(event({ trackingNumber: "PAIR-9-NEW", status, occurredAt: at(-8_000) }));
    await hasEvents(id, 2);
    const last = await call("GET", "/shipments?scope=company&sortBy=updatedAt_desc&limit=1");
    const since = last.body.items[0].statusUpdatedAt;
    expect((await mapCode("PAIR9", "DELAY")).status).toBe(200);
    const isListed = async () => {
      const query = `scope=company&sortBy=updatedAt_asc&updatedAfter=${encodeURIComponent(since)}`;
      const { items } = (await call("GET", `/shipments?${query}&limit=100`)).body;
      return items.find((one: { id: number }) => one.id === id);
    };
    expect(await eventually(isListed, "the catch-up finds it")).toMatchObject({ status: "DELAY" });
    const { history } = await detail(id);
    expect(history.map((one: { statusCode: string }) => one.statusCode)).toEqual([
      "DELAY",
      "DELAY",
    ]);
    await isSent(live, id, 1);
    const { first, again } = await replayOnly(live, id);
    expect(again?.body.id).toBe(first?.body.id);
    expect(again?.body.data.event).toEqual(first?.body.data.event);
  }, 300_000);

  test("sends nothing to an endpoint that was disabled meanwhile, also once it is enabled", async () => {
    const id = await create("PAIR-10");
    const status = { code: "PAIR10", description: "new" };
    await send(event({ trackingNumber: "PAIR-10", status, occurredAt: at() }));
    await hasEvents(id, 1);
    const path = `/webhooks/${await endpointId()}`;
    await operator("POST", `${path}/disable`);
    await mapCode("PAIR10", "DELAY");
    await eventually(async () => (await verdictsOf(id)).includes("disabled"), "it says why");
    await operator("POST", `${path}/enable`);
    await send(event({ trackingNumber: "PAIR-10", occurredAt: at(1_000) }));
    const [only] = await isSent(live, id, 1);
    expect(only?.body.data.event.statusCode).toBe("IN_TRANSIT");
  }, 300_000);

  test("is none of test mode: its couriers' codes cannot be mapped", async () => {
    const path = `/couriers/${TEST_COURIER}/catalogue/OUT`;
    const { status } = await operator("PUT", path, {
      description: "x",
      status: "DELAY",
      terminal: false,
    });
    expect(status).toBe(404);
  });
});

describe("a parcel of test mode", () => {
  test("that an import has made lives its life, is caught up with, and its deliveries are replayed to its own endpoint", async () => {
    const shipments = [item("TEST_RENUMBERED-11", { courier: TEST_COURIER })];
    const { successes } = await importAll(shipments, TEST_KEY);
    const { id } = successes[0];
    await advanceDays(0.01);
    await eventually(async () => (await detail(id, TEST_KEY)).status === "DELIVERED", "it ends");
    const query = "/shipments?scope=company&sortBy=updatedAt_asc&updatedAfter=";
    const since = encodeURIComponent("2026-01-01 00:00:00");
    const found = await call("GET", `${query}${since}`, undefined, TEST_KEY);
    expect(found.body.items.map((one: { id: number }) => one.id)).toContain(id);
    const missed = await call("GET", `${query}${since}&limit=100`);
    expect(missed.body.items.map((one: { id: number }) => one.id)).not.toContain(id);
    const sent = await isSent(rehearsal, id, 5);
    const [oldest] = (await deliveriesOf(id, ENDPOINTS.test)).toReversed();
    await operator("POST", `/deliveries/${oldest?.deliveryId}/replay`);
    const again = (await isSent(rehearsal, id, 6)).at(-1);
    expect(sent.map(({ body }) => body.id)).toContain(again?.body.id);
    expect(sentOf(live, id)).toEqual([]);
  }, 300_000);

  test("is told of by no disabled endpoint of test mode, and the live one goes on", async () => {
    const path = `/webhooks/${await endpointId(ENDPOINTS.test)}`;
    await operator("POST", `${path}/disable`);
    const tested = await create("TEST_DELIVERED-12", { courier: TEST_COURIER }, TEST_KEY);
    const real = await create("PAIR-12");
    await send(event({ trackingNumber: "PAIR-12", occurredAt: at() }));
    await advanceDays(0.01);
    await eventually(
      async () => (await detail(tested, TEST_KEY)).status === "DELIVERED",
      "the test parcel is delivered",
    );
    await isSent(live, real, 1);
    await eventually(async () => (await verdictsOf(tested)).includes("disabled"), "it says why");
    expect(sentOf(rehearsal, tested)).toEqual([]);
    await operator("POST", `${path}/enable`);
  }, 300_000);
});

test("a number that a courier announced is taken on its channel, and free on another one, which gets its events too", async () => {
  const id = await create("PAIR-13");
  const change = { trackingNumberChange: { newTrackingNumber: "PAIR-13-NEW" } };
  await send(event({ trackingNumber: "PAIR-13", occurredAt: at(-3_000), ...change }));
  await hasEvents(id, 1);
  const { errors } = await importAll([item("PAIR-13-NEW")]);
  expect(errors[0].errors).toMatchObject([{ code: "DUPLICATE_SHIPMENT", existingId: id }]);
  const other = await create("PAIR-13-NEW", {}, OUTLET_KEY);
  await send(event({ trackingNumber: "PAIR-13-NEW", occurredAt: at(-2_000) }));
  await hasEvents(id, 2);
  await eventually(async () => (await detail(other, OUTLET_KEY)).history.length === 1, "it too");
}, 300_000);

test("a restored backup has the shipments of both sides, test mode's too, and still refuses their numbers", async () => {
  const id = await create("PAIR-14", {}, OUTLET_KEY);
  await archive(id, "PAIR-14");
  const erased = await create("PAIR-15", { consignee: RECIPIENT });
  await erase(erased);
  const tested = await create("TEST_SILENT-15", { courier: TEST_COURIER }, TEST_KEY);
  const questions = [
    [id, OUTLET_KEY],
    [erased, LIVE_KEY],
    [tested, TEST_KEY],
  ] as const;
  const ask = () => Promise.all(questions.map(([shipment, key]) => detail(shipment, key)));
  const before = await ask();
  const [backup, dataDir] = [`${product.dataDir}-backup`, `${product.dataDir}-restored`];
  const run = (verb: "backup" | "restore", DATA_DIR: string) =>
    outcomeOf(startCommand(["bun", "cli/main.ts", verb, backup], { DATA_DIR }));
  expect(await run("backup", product.dataDir)).toMatchObject({ status: 0, errors: "" });
  const first = product;
  await first.terminate();
  expect(await run("restore", dataDir)).toMatchObject({ status: 0, errors: "" });
  product = await newProduct(BARE, setupOf(), { ...env(), DATA_DIR: dataDir });
  try {
    await product.start();
    const isAnswered = async () =>
      (await ask()).every(({ code }) => code !== "ARCHIVE_UNAVAILABLE");
    await eventually(isAnswered, "the archive has started");
    expect(await ask()).toEqual(before);
    for (const [number, key] of [
      ["PAIR-14", OUTLET_KEY],
      ["PAIR-15", LIVE_KEY],
      ["TEST_SILENT-15", TEST_KEY],
    ] as const) {
      const courier = key === TEST_KEY ? TEST_COURIER : "GLS_ITA";
      const body = { shipments: [item(number, { courier })] };
      const refused = await call("POST", "/shipments", body, key);
      expect(refused.body.items[0].errors[0].code).toBe("DUPLICATE_SHIPMENT");
    }
    await send(event({ trackingNumber: "PAIR-14", occurredAt: at() }));
    await eventually(async () => (await detail(id, OUTLET_KEY)).history.length === 2, "it is back");
  } finally {
    await product.terminate();
    await first.end();
  }
}, 300_000);

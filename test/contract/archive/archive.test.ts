/** Shipments that are over leave Redis, and nobody who asks about them notices. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ArchiverDeps } from "#analytics/archive/archiver.ts";
import { startAnalytics } from "#analytics/main.ts";
import { startApi } from "#api/main.ts";
import { noteRound } from "#core/archive/store/archive-status.ts";
import { factsOfWhole } from "#core/archive/store/archived-shipment.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { beginGeneration } from "#core/events/store/compact-references.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { companyKeys, companyPartition, trackingReference } from "#core/platform/redis/keys.ts";
import type { Running, StartRole } from "#core/runtime/runtime.ts";
import { readBalance } from "#core/webhooks/store/deliveries/ledger.ts";
import { startIngest } from "#ingest/main.ts";
import { startPanel } from "#panel/main.ts";
import { startProcessors } from "#processors/main.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { type Answer, request } from "#test/support/clients/merchant.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestArchive, type TestArchive } from "#test/support/product/archive.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";

const DAY_SECONDS = 86_400;
const DELIVERED = { code: "DLV", description: "ok" };
const TEMPLATE = { event: "review", language: "it" as const, subject: "Com’era?", body: "<p>" };

let runtime: TestRuntime;
let mail: MailServer;
let opened: TestArchive;
const roles: Running[] = [];
let token: string;
let foreign: string;
let companyWide: string;

const urlOf = (role: string) => roles.find(({ name }) => name === role)?.url ?? "";

beforeAll(async () => {
  const setup = testSetup();
  for (const channel of setup.companies?.flatMap(({ channels = [] }) => channels) ?? []) {
    channel.trackingPage = true;
    channel.emails = { managed: true, from: "shop@acme.test", templates: [TEMPLATE] };
  }
  for (const detail of [{ id: 4, status: "EXCEPTION", heldInDepot: true }] as const) {
    setup.statusDetails = [{ ...detail, description: { it: "In giacenza", en: "Held" } }];
  }
  for (const courier of setup.couriers ?? []) courier.stockRelease = "sync";
  mail = await startMailServer();
  runtime = await openTestRuntime(setup, { ARCHIVE_AFTER_DAYS: "0", SMTP_URL: mail.url });
  const starts: StartRole[] = [startAnalytics, startProcessors, startPanel, startApi, startIngest];
  for (const start of starts) roles.push(await start(runtime, roles));
  opened = await openTestArchive(runtime);
  token = await tokenOf("key_acme_outlet");
  companyWide = await tokenOf("key_acme_main");
  foreign = await tokenOf("key_beta_main");
}, 300_000);

afterAll(async () => {
  await opened.end();
  for (const { stop } of roles.reverse()) await stop();
  await runtime.end();
  await mail.stop();
});

async function tokenOf(apiKey: string): Promise<string> {
  const { body } = await request("POST", `${urlOf("api")}/v2/auth/token`, { apiKey });
  return body.token;
}

async function call(
  method: string,
  path: string,
  body?: unknown,
  as = companyWide,
): Promise<Answer> {
  return request(method, `${urlOf("api")}${path}`, body, { authorization: `Bearer ${as}` });
}

async function panel(path: string): Promise<Answer> {
  const headers = { authorization: `Bearer ${runtime.secrets.panelToken}` };
  return request("GET", `${urlOf("panel")}${path}`, undefined, headers);
}

let counter = 0;

interface Created {
  readonly id: number;
  readonly number: string;
  readonly url: string;
}

async function create(members: Readonly<Record<string, unknown>> = {}): Promise<Created> {
  counter += 1;
  const number = `ARCH${counter}`;
  const consignee = { name: "Ada Rossi", city: "Roma", email: "ada@example.test" };
  const item = { trackingNumber: number, courier: "GLS_ITA", shipDate: "2026-11-10", consignee };
  const { status, body } = await call("POST", "/v2/shipments", {
    shipments: [{ ...item, ...members }],
  });
  expect(status).toBe(201);
  const { id, trackingUrl } = body.items[0];
  return { id, number, url: trackingUrl };
}

async function send(...events: ReturnType<typeof event>[]): Promise<string[]> {
  const { body } = await push(urlOf("ingest"), events);
  return body.results.map(({ outcome }: { outcome: string }) => outcome);
}

async function settled(): Promise<void> {
  await eventually(async () => {
    const lags = await readLags(runtime.redis);
    return lags.every(({ entries }) => entries === 0);
  }, "all logs are empty");
}

function at(offsetMs = 0): string {
  return new Date(runtime.live.now() + offsetMs).toISOString().replace("Z", "+00:00");
}

async function deliver({ number }: Created): Promise<void> {
  const outcomes = await send(
    event({ trackingNumber: number, occurredAt: at(-2_000) }),
    event({
      trackingNumber: number,
      occurredAt: at(-1_000),
      status: { code: "DLV", description: "ok" },
    }),
  );
  expect(outcomes).toEqual(["ACCEPTED", "ACCEPTED"]);
  await settled();
}

async function advanceDays(days: number): Promise<void> {
  await advanceClock(runtime.redis, days * DAY_SECONDS);
  await runtime.live.refresh();
  // Tokens last a day.
  [token, companyWide, foreign] = (await Promise.all(
    ["key_acme_outlet", "key_acme_main", "key_beta_main"].map(tokenOf),
  )) as [string, string, string];
}

const archiveNow = (members: Partial<ArchiverDeps> = {}) => opened.archiveNow(members);

/** Keys of Redis that name a shipment. */
async function keysOf(id: number): Promise<string[]> {
  return (await runtime.redis.keys("{[kt]*")).filter((key) => key.split(":").includes(String(id)));
}

test("a delivered shipment that has been quiet moves, and every answer about it stays the same", async () => {
  const one = await create({ orderReference: "ORDER-1", customAttributes: { custom1: "red" } });
  await deliver(one);
  const questions = [
    `/v2/shipments/${one.id}`,
    `/v2/shipments?trackingNumber=${one.number}`,
    "/v2/shipments?orderReference=ORDER-1",
    "/v2/shipments?custom1=red&status=DELIVERED",
    "/v2/shipments?scope=company&sortBy=updatedAt_asc",
    "/v2/shipments",
  ];
  const page = async () => (await fetch(`${urlOf("panel")}/t/${one.url.split("/t/")[1]}`)).text();
  const ask = async () =>
    Promise.all(questions.map(async (path) => (await call("GET", path)).body));
  await advanceDays(31);
  const before = await ask();
  const shown = async () => [
    (await panel(`/panel/api/shipments/${one.id}`)).body,
    (await panel("/panel/api/shipments?companyCode=acme")).body,
    (await panel(`/panel/api/shipments?q=${one.number}`)).body,
  ];
  const shownBefore = await shown();
  const [tracePath, pageBefore] = [`/panel/api/shipments/${one.id}/trace`, await page()];
  const { decisions: _, ...traceBefore } = (await panel(tracePath)).body;
  expect(await archiveNow()).toBe(1);
  expect(await keysOf(one.id)).toEqual([]);
  expect(await ask()).toEqual(before);
  expect(await shown()).toEqual(shownBefore);
  expect(await page()).toBe(pageBefore);
  expect(pageBefore).toContain("Roma");
  expect((await panel(tracePath)).body).toMatchObject({
    total: traceBefore.total,
    current: traceBefore.current,
  });
  expect((await call("GET", questions[0] ?? "", undefined, foreign)).status).toBe(404);
  expect((await call("GET", "/v2/shipments", undefined, foreign)).body.total).toBe(0);
}, 300_000);

test("an archived shipment keeps its number however it is typed, and the search finds it as it was given alone", async () => {
  const given = " Arch typed-1 ";
  const one = { ...(await create({ trackingNumber: given })), number: "ARCHTYPED-1" };
  await deliver(one);
  await advanceDays(31);
  expect(await archiveNow()).toBe(1);
  const found = async (text: string) => {
    const { body } = await call("GET", `/v2/shipments?trackingNumber=${encodeURIComponent(text)}`);
    return body.items.map(({ id }: { id: number }) => id);
  };
  expect([await found(given), await found("ARCHTYPED-1")]).toEqual([[one.id], []]);
  const asked = (await panel("/panel/api/shipments?q=archtyped-1")).body;
  expect(asked.items.map(({ id }: { id: number }) => id)).toEqual([one.id]);
  const item = { courier: "GLS_ITA", shipDate: "2026-11-10" };
  const shipments = ["ARCHTYPED-1", "arch\u200btyped-1"].map((trackingNumber) => {
    return { ...item, trackingNumber };
  });
  const { body } = await call("POST", "/v2/shipments", { shipments });
  for (const { errors } of body.items) {
    expect(errors).toMatchObject([{ code: "DUPLICATE_SHIPMENT" }]);
  }
  const late = event({ trackingNumber: "archTYPED-1\r\n", occurredAt: at(), status: DELIVERED });
  expect(await send(late)).toEqual(["ACCEPTED"]);
  await settled();
  expect((await call("GET", `/v2/shipments/${one.id}`)).body.trackingNumber).toBe(given);
  await advanceDays(31);
  expect(await archiveNow()).toBe(1);
}, 300_000);

test("a shipment that 0.1.0 wrote under its number as it was given is archived, found, taken and brought back", async () => {
  const given = "arch-older";
  const one = { ...(await create({ trackingNumber: given })), number: given };
  const { redis } = runtime;
  const { asGiven, key } = trackingReference("GLS_ITA", given);
  const { companyId, id: channelId } = channelOf(runtime);
  const keys = companyKeys(companyPartition(companyId));
  await redis.rename(key, asGiven?.key ?? "");
  await redis.rename(keys.numbers(channelId, given), keys.numbersAsGiven(channelId, given));
  await deliver(one);
  await advanceDays(31);
  expect(await archiveNow()).toBe(1);
  expect(await redis.exists(asGiven?.key ?? "")).toBe(0);
  const shown = async () => (await call("GET", `/v2/shipments?trackingNumber=${given}`)).body.items;
  expect(await shown()).toMatchObject([{ id: one.id, status: "DELIVERED" }]);
  await redis.del(keys.numbersAsGiven(channelId, given));
  const item = { trackingNumber: given, courier: "GLS_ITA", shipDate: "2026-11-10" };
  const { body } = await call("POST", "/v2/shipments", { shipments: [item] });
  expect(body.items[0].errors).toMatchObject([{ code: "DUPLICATE_SHIPMENT" }]);
  const late = event({ trackingNumber: given, occurredAt: at(), status: DELIVERED });
  expect(await send(late)).toEqual(["ACCEPTED"]);
  await settled();
  expect(await redis.exists(keys.shipment(one.id))).toBe(1);
  expect(await shown()).toMatchObject([{ id: one.id }]);
  await advanceDays(31);
  expect(await archiveNow()).toBe(1);
}, 300_000);

test("a delivery of an archived shipment is shown, and signed for a receiver under development, as before", async () => {
  const headers = { authorization: `Bearer ${runtime.secrets.panelToken}` };
  const webhooks = `${urlOf("panel")}/panel/api/channels/acme-it/webhooks`;
  const wanted = { url: "https://127.0.0.1:1/hook", alertEmail: "ops@acme.test" };
  const { endpointId } = (await request("POST", webhooks, wanted, headers)).body;
  const one = await create();
  await deliver(one);
  const log = `/panel/api/webhooks/${endpointId}/deliveries?trackingNumber=${one.number}`;
  const deliveryId = await eventually(
    async () => (await panel(log)).body.items[0]?.deliveryId,
    "the delivery is decided",
  );
  const typed = log.replace(one.number, `${one.number.toLowerCase()}%20`);
  const listed = (await panel(typed)).body.items.map(
    (one: { deliveryId: string }) => one.deliveryId,
  );
  expect(listed).toContain(deliveryId);
  const path = `/panel/api/deliveries/${deliveryId}`;
  const endpoint = `${urlOf("panel")}/panel/api/webhooks/${endpointId}`;
  // A shipment does not move before its webhook decisions have expired; a delivery that was replayed late outlives them.
  await request("POST", `${endpoint}/disable`, undefined, headers);
  await eventually(async () => (await panel(path)).body.state === "failed", "it is not sent again");
  const [decisions = ""] = await runtime.redis.keys(`*:dv:${one.id}`);
  await runtime.redis.del(decisions);
  const shown = async () => [
    (await panel(path)).body.payload,
    (await panel(`${path}/request`)).body.body,
  ];
  const before = await shown();
  await advanceDays(3);
  expect(await archiveNow({ afterDays: 2 })).toBe(1);
  expect(await keysOf(one.id)).toEqual([]);
  expect(await shown()).toEqual(before);
  const { id } = JSON.parse(before[1]);
  expect(id).toStartWith("evt_");
  expect((await request("DELETE", endpoint, undefined, headers)).status).toBe(204);
}, 300_000);

test("a shipment with news, and one that is under way, stays", async () => {
  const [late, open] = [await create(), await create()];
  await deliver(late);
  expect(await send(event({ trackingNumber: open.number, occurredAt: at() }))).toEqual([
    "ACCEPTED",
  ]);
  await settled();
  await advanceDays(29);
  const old = event({ trackingNumber: late.number, occurredAt: at(-40 * DAY_SECONDS * 1_000) });
  expect(await send(old)).toEqual(["ACCEPTED"]);
  await settled();
  await advanceDays(2);
  expect(await archiveNow()).toBe(0);
  await advanceDays(150);
  expect(await archiveNow()).toBe(2);
}, 300_000);

test("a shipment with events that nobody has mapped stays for 180 days, and comes back when they are mapped", async () => {
  const one = await create();
  await deliver(one);
  const unknown = { code: "XYZ", description: "Chissà" };
  await send(event({ trackingNumber: one.number, occurredAt: at(), status: unknown }));
  await settled();
  await advanceDays(31);
  expect(await archiveNow()).toBe(0);
  await advanceDays(150);
  expect(await archiveNow()).toBe(1);
  const authorization = `Bearer ${runtime.secrets.panelToken}`;
  const url = `${urlOf("panel")}/panel/api/couriers/GLS_ITA/catalogue/XYZ`;
  const mapping = { status: "RETURNED", statusDetail: 0, terminal: true };
  const preview = await request("PUT", `${url}?preview=true`, mapping, { authorization });
  expect(preview.body.preview).toMatchObject({ examined: 0, complete: false });
  expect((await request("PUT", url, mapping, { authorization })).status).toBe(200);
  const statusOf = async () => (await call("GET", `/v2/shipments/${one.id}`)).body.status;
  await eventually(async () => (await statusOf()) === "RETURNED", "the remap has reached it");
  expect(await keysOf(one.id)).not.toEqual([]);
  await advanceDays(31);
  expect(await archiveNow()).toBe(1);
}, 300_000);

describe("a late event of an archived shipment", () => {
  test("is ACCEPTED, brings it back, and counts once; then it moves again", async () => {
    const one = await create();
    await deliver(one);
    await advanceDays(31);
    expect(await archiveNow()).toBe(1);
    const back = event({
      trackingNumber: one.number,
      occurredAt: at(),
      status: { code: "HLD", description: "Di nuovo in giacenza" },
    });
    expect(await send(back, back)).toEqual(["ACCEPTED", "DUPLICATE"]);
    await settled();
    const { body } = await call("GET", `/v2/shipments/${one.id}`);
    expect(body.history).toHaveLength(3);
    expect((await call("GET", `/v2/shipments?trackingNumber=${one.number}`)).body.total).toBe(1);
    await advanceDays(181);
    expect(await archiveNow()).toBe(1);
    expect((await call("GET", `/v2/shipments/${one.id}`)).body).toEqual(body);
    expect((await call("GET", `/v2/shipments?trackingNumber=${one.number}`)).body.total).toBe(1);
    expect((await readBalance(runtime.redis, runtime.live.configuration())).difference).toEqual({
      received: 0,
      applied: 0,
      webhooks: 0,
    });
  }, 300_000);

  test("finds it by its order under a sender account", async () => {
    const one = await create({ orderReference: "ORDER-X" });
    await deliver(one);
    await advanceDays(31);
    await archiveNow();
    const byOrder = event({ externalId: "ORDER-X", senderAccount: "ACC-1", occurredAt: at() });
    const { trackingNumber: _, ...withoutNumber } = byOrder;
    expect(await send(withoutNumber as typeof byOrder)).toEqual(["ACCEPTED"]);
    await settled();
    expect((await call("GET", `/v2/shipments/${one.id}`)).body.history).toHaveLength(3);
  }, 300_000);

  test("of another order under the same number is UNKNOWN_TRACKING", async () => {
    const one = await create({ orderReference: "ORDER-Y" });
    await deliver(one);
    await advanceDays(31);
    await archiveNow();
    const other = event({ trackingNumber: one.number, externalId: "ORDER-Z", occurredAt: at() });
    expect(await send(other)).toEqual(["UNKNOWN_TRACKING"]);
    expect(await send({ ...other, externalId: "ORDER-Y" })).toEqual(["ACCEPTED"]);
  }, 300_000);
});

describe("the tracking number of an archived shipment", () => {
  test("is a duplicate on its channel, and free on another one", async () => {
    const one = await create();
    await deliver(one);
    await advanceDays(31);
    await archiveNow();
    // What keeps the number taken for a while after the move is over.
    const taken = (await runtime.redis.keys("*")).filter((key) => key.endsWith(`:${one.number}`));
    expect(taken).toHaveLength(1);
    await runtime.redis.del(taken);
    const again = { trackingNumber: one.number, courier: "GLS_ITA", shipDate: "2026-11-10" };
    const refused = await call("POST", "/v2/shipments", { shipments: [again] });
    expect(refused.body.items[0].errors[0].code).toBe("DUPLICATE_SHIPMENT");
    const created = await call("POST", "/v2/shipments", { shipments: [again] }, token);
    expect(created.status).toBe(201);
    const both = event({ trackingNumber: one.number, occurredAt: at() });
    expect(await send(both)).toEqual(["ACCEPTED"]);
    await settled();
    expect((await call("GET", `/v2/shipments/${one.id}`)).body.history).toHaveLength(3);
    const { id } = created.body.items[0];
    expect((await call("GET", `/v2/shipments/${id}`, undefined, token)).body.history).toHaveLength(
      1,
    );
  }, 300_000);

  test("that another parcel has by now no longer means a shipment that ended 90 days before", async () => {
    const one = await create();
    await deliver(one);
    await advanceDays(120);
    await archiveNow();
    const again = { trackingNumber: one.number, courier: "GLS_ITA", shipDate: at().slice(0, 10) };
    const created = await call("POST", "/v2/shipments", { shipments: [again] }, token);
    expect(created.status).toBe(201);
    expect(await send(event({ trackingNumber: one.number, occurredAt: at() }))).toEqual([
      "ACCEPTED",
    ]);
    await settled();
    expect((await call("GET", `/v2/shipments/${one.id}`)).body.history).toHaveLength(2);
  }, 300_000);
});

test("what was asked of an archived shipment and told its recipient is kept, and more can be", async () => {
  const one = await create();
  const held = { code: "HLD", description: "In giacenza" };
  await send(event({ trackingNumber: one.number, occurredAt: at(), status: held }));
  await settled();
  const body = { event: "review" };
  const told = await call("POST", `/v2/shipments/${one.id}/notifications`, body);
  expect(told.status).toBe(202);
  const message = `/v2/shipments/${one.id}/notifications/${told.body.notificationId}`;
  await eventually(async () => (await call("GET", message)).body.status !== "accepted", "it ends");
  await advanceDays(181);
  const ended = (await call("GET", message)).body;
  const before = (await call("GET", `/v2/shipments/${one.id}`)).body;
  expect(await archiveNow()).toBeGreaterThan(0);
  expect(await keysOf(one.id)).toEqual([]);
  expect((await call("GET", message)).body).toEqual(ended);
  expect((await call("GET", `/v2/shipments/${one.id}`)).body).toEqual(before);
  expect(await keysOf(one.id)).toEqual([]);
  const released = await call("POST", `/v2/shipments/${one.id}/stock-release`, {
    action: "return_to_sender",
  });
  expect([released.status, released.body.courierOutcome]).toEqual([200, "ok"]);
  const release = `/v2/shipments/${one.id}/stock-releases/${released.body.releaseId}`;
  expect(await archiveNow()).toBe(0);
  await advanceDays(181);
  const sent = (await call("GET", release)).body;
  expect(await archiveNow()).toBeGreaterThan(0);
  expect((await call("GET", release)).body).toEqual(sent);
  expect((await call("GET", `${release}9`)).status).toBe(404);
  expect((await call("GET", release, undefined, foreign)).status).toBe(404);
}, 300_000);

test("the recipient of an archived shipment is erased, there too", async () => {
  const one = await create();
  await deliver(one);
  await advanceDays(31);
  expect(await archiveNow()).toBe(1);
  const headers = { authorization: `Bearer ${runtime.secrets.panelToken}` };
  const path = `${urlOf("panel")}/panel/api/shipments/${one.id}/personal-data`;
  expect((await fetch(path, { method: "DELETE", headers })).status).toBe(204);
  const shown = async () => (await call("GET", `/v2/shipments/${one.id}`)).body;
  expect(JSON.stringify(await shown())).not.toContain("Ada");
  await archiveNow();
  expect(JSON.stringify(await shown())).not.toContain("Ada");
  await opened.deleteObsolete();
  const channelIds = [...runtime.live.configuration().channels.keys()];
  const rows = await opened.archive.read([one.id], channelIds);
  expect(JSON.stringify(rows.map(({ whole }) => factsOfWhole(whole)))).not.toContain("Ada");
}, 300_000);

test("a shipment whose archived row is damaged is answered 503 to its merchant alone, and left out of pages", async () => {
  const one = await create();
  await deliver(one);
  await advanceDays(31);
  expect(await archiveNow()).toBe(1);
  const noPage = await fetch(`${urlOf("panel")}/t/unknown`);
  await opened.clickhouse.command({
    query: `ALTER TABLE archived_shipments UPDATE sealed = 'spoilt' WHERE id = ${one.id}`,
    clickhouse_settings: { mutations_sync: "1" },
  });
  const path = `/v2/shipments/${one.id}`;
  const notify = { event: TEMPLATE.event };
  for (const answer of [
    await call("GET", path),
    await call("POST", `${path}/notifications`, notify),
  ]) {
    expect(answer).toMatchObject({ status: 503, body: { code: "ARCHIVE_UNAVAILABLE" } });
  }
  expect(await call("GET", path, undefined, foreign)).toMatchObject({
    status: 404,
    body: { code: "SHIPMENT_NOT_FOUND" },
  });
  const page = await call("GET", `/v2/shipments?trackingNumber=${one.number}`);
  expect(page).toMatchObject({ status: 200, body: { items: [] } });
  const tracking = await fetch(one.url.replace(/^https?:\/\/[^/]+/, urlOf("panel")));
  expect([tracking.status, await tracking.text()]).toEqual([404, await noPage.text()]);
  const listed = { companyCode: "acme", shipmentId: one.id, since: expect.any(String) };
  expect((await panel("/panel/api/archive")).body.damagedRows).toEqual([listed]);
  const erasure = await fetch(`${urlOf("panel")}/panel/api/shipments/${one.id}/personal-data`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${runtime.secrets.panelToken}` },
  });
  expect(erasure.status).toBe(503);
}, 300_000);

test("the overview tells what the latest round of the archiver has left", async () => {
  const { redis, live } = runtime;
  const shown = async () => (await panel("/panel/api/overview")).body.stores.archive;
  const note = () => noteRound(redis, live.configuration(), live.now(), 30);
  await archiveNow();
  const before = await note();
  await deliver(await create());
  await advanceDays(31);
  const { quiet } = await note();
  expect(quiet).toBeGreaterThan(before.quiet);
  const due = { shipments: before.archived + 1, quiet: before.quiet, backlog: 0 };
  // An erasure that is repeated meanwhile brings its shipment back for a round.
  await eventually(async () => {
    await archiveNow();
    await note();
    const { behindSeconds, ...counts } = await shown();
    return behindSeconds < 60 && Bun.deepEquals(counts, due);
  }, "the overview has the counts of the round");
}, 300_000);

test("the panel tells what the archive takes on disk", async () => {
  await deliver(await create());
  await advanceDays(31);
  await archiveNow();
  const onDisk = async () => {
    const answer = await opened.clickhouse.query({
      query: `SELECT toFloat64(sum(bytes_on_disk)) AS bytes FROM system.parts
              WHERE database = currentDatabase() AND startsWith(table, 'archived_') AND active`,
      format: "JSONEachRow",
    });
    const [row] = await answer.json<{ bytes: number }>();
    return row?.bytes ?? 0;
  };
  // Parts may be merged between the two readings.
  await eventually(async () => {
    const { bytes } = (await panel("/panel/api/archive")).body;
    return bytes > 0 && bytes === (await onDisk());
  }, "both readings are the same");
}, 300_000);

test("a generation of references is not used early by a process that did not begin it", async () => {
  const nextYear = runtime.live.now() + 366 * DAY_SECONDS * 1_000;
  const waits = [];
  for (let times = 0; times < 2; times += 1) {
    waits.push(await beginGeneration(runtime.redis, nextYear, runtime.config.eventsPerDay));
  }
  const [first = 0, second = 0] = waits;
  expect(first).toBeGreaterThan(10_000);
  expect(second).toBeGreaterThan(10_000);
  expect(second).toBeLessThanOrEqual(first);
});

test("what Redis keeps of archived shipments are their references alone", async () => {
  const ids: number[] = [];
  for (let n = 0; n < 3; n += 1) ids.push((await create()).id);
  const names = await Promise.all(ids.map(keysOf));
  expect(names.every((keys) => keys.length > 0)).toBe(true);
  await advanceDays(181);
  expect(await archiveNow()).toBeGreaterThanOrEqual(3);
  expect((await Promise.all(ids.map(keysOf))).flat()).toEqual([]);
}, 300_000);

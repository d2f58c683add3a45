/** `PATCH /v2/shipments/{id}`, an extension of document 1: what a merchant corrects, and what it leaves alone. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Consumer, startConsumer } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { FORMER_REFERENCES } from "#core/shipments/rules/correct.ts";
import { eraseShipment } from "#core/shipments/store/erase-shipment.ts";
import { readHistory } from "#core/shipments/store/shipments.ts";
import { startIngest } from "#ingest/main.ts";
import { trackHandler } from "#processors/track/track.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let token: string;
let url: string;
let stop: () => Promise<void>;
let track: Consumer;
let counter = 0;

beforeAll(async () => {
  api = await openTestApi(testSetup());
  token = await api.token("key_acme_main");
  const { runtime } = api;
  const ingest = await startIngest(runtime);
  ({ stop } = ingest);
  url = ingest.url ?? "";
  const { redis, live, log, config } = runtime;
  const handler = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay });
  track = startConsumer({ redis, log, source: "event", group: "track", handler, batch: 100 });
});
afterAll(async () => {
  await track.stop();
  await stop();
  await api.end();
});

const patch = (id: number, body: unknown, as = token) =>
  api.call("PATCH", `/v2/shipments/${id}`, { token: as, body });
const read = async (id: number) => (await api.call("GET", `/v2/shipments/${id}`, { token })).body;
const find = async (query: string) => {
  const { body } = await api.call("GET", `/v2/shipments?${query}`, { token });
  return body.items.map(({ id }: { id: number }) => id);
};

async function create(members: Readonly<Record<string, unknown>> = {}) {
  counter += 1;
  const number = `CORRECT-${counter}`;
  const body = { shipments: [item(number, members)] };
  const created = await api.call("POST", "/v2/shipments", { token, body });
  return { number, id: created.body.items[0].id as number };
}

/** Outcomes of events, once what was accepted has been applied. */
async function send(...events: readonly unknown[]): Promise<string[]> {
  const { body } = await push(url, events);
  await eventually(async () => {
    const lags = await readLags(api.runtime.redis);
    return lags.every(({ group, entries }) => group !== "track" || entries === 0);
  }, "the events are applied");
  return body.results.map(({ outcome }: { outcome: string }) => outcome);
}

test("members that are given change, the others stay; what changed is listed, once", async () => {
  const consignee = { name: "Mario Rosi", street: "Via Roma 1", postcode: "00184", phone: "1" };
  const { id, number } = await create({
    consignee,
    note: "ring",
    customAttributes: { custom1: "a" },
  });
  await send(event({ trackingNumber: number }));
  const before = await read(id);
  const body = { consignee: { name: "Mario Rossi", phone: "" }, note: "ring twice", tag: null };
  const { status, body: changed } = await patch(id, body);
  expect(status).toBe(200);
  expect(changed).toEqual({
    ...before,
    note: "ring twice",
    consignee: { ...before.consignee, name: "Mario Rossi", phone: null },
    corrections: [
      {
        date: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
        fields: ["consignee.name", "consignee.phone", "note"],
        apiKey: "main",
      },
    ],
  });
  // `statusUpdatedAt` is among what stays: a reconciliation does not come back to it.
  expect(before.statusUpdatedAt).not.toBeNull();
  expect((await patch(id, body)).body).toEqual(changed);
  expect(await read(id)).toEqual(changed);
});

test("the search finds it by its new values, and no longer by the old ones", async () => {
  const { id } = await create({ orderReference: "c-old", customAttributes: { custom2: "c2-old" } });
  const other = await create({ orderReference: "c-old" });
  await patch(id, { orderReference: "c-new", customAttributes: { custom2: "c2-new" } });
  expect(await find("orderReference=c-new&custom2=c2-new")).toEqual([id]);
  expect(await find("orderReference=c-old")).toEqual([other.id]);
  expect(await find("custom2=c2-old")).toEqual([]);
});

test("events find it by its new order reference at once, and by the old one still", async () => {
  const account = { senderAccount: "ACC-1" };
  const byOrder = (eventId: string, externalId: string) => {
    const { trackingNumber: _, ...others } = event({ eventId, externalId, ...account });
    return others;
  };
  const { id, number } = await create({ orderReference: "e-old" });
  const early = { eventId: "correct-early", externalId: "e-new", ...account };
  expect(await send(event({ ...early, trackingNumber: number }))).toEqual(["UNKNOWN_TRACKING"]);
  expect((await patch(id, { orderReference: "e-new" })).status).toBe(200);
  const outcomes = await send(
    event({ eventId: "correct-1", trackingNumber: number, externalId: "e-new", ...account }),
    event({ eventId: "correct-2", trackingNumber: number, externalId: "e-old", ...account }),
    byOrder("correct-3", "e-old"),
    byOrder("correct-4", "e-new"),
  );
  expect(outcomes).toEqual(["ACCEPTED", "ACCEPTED", "ACCEPTED", "ACCEPTED"]);
  const known = (await readHistory(api.runtime.redis, id)).map((fact) => fact.event.eventId);
  // What had been parked under the new reference is released with the first of them.
  expect(known.toSorted()).toEqual([
    ...["correct-1", "correct-2", "correct-3", "correct-4", "correct-early"],
  ]);
});

test(`${FORMER_REFERENCES} earlier references are kept; one more is 409, an earlier one is not`, async () => {
  const { id } = await create({ orderReference: "many-0" });
  for (let at = 1; at <= FORMER_REFERENCES; at += 1) {
    expect((await patch(id, { orderReference: `many-${at}` })).status).toBe(200);
  }
  const { status, body } = await patch(id, { orderReference: "many-again" });
  expect([status, body.code]).toEqual([409, "TOO_MANY_REFERENCES"]);
  expect((await patch(id, { orderReference: "many-0" })).body.orderReference).toBe("many-0");
});

test("an erased recipient does not come back: 409, and its order reference can still be corrected", async () => {
  const { id } = await create({ consignee: { name: "Mario" }, orderReference: "erased-1" });
  await patch(id, { consignee: { name: "Maria" } });
  await eraseShipment(api.runtime.redis, id);
  for (const body of [{ consignee: { name: "M" } }, { note: "M" }, { customAttributes: {} }]) {
    const refused = await patch(id, body);
    expect([refused.status, refused.body.code]).toEqual([409, "RECIPIENT_ERASED"]);
  }
  const { body } = await patch(id, { orderReference: "erased-2" });
  expect([body.orderReference, body.consignee.name]).toEqual(["erased-2", null]);
  // The list names members and no values, so an erasure has nothing to take out of it.
  expect(JSON.stringify(body.corrections)).not.toInclude("Mari");
});

test("422 without a member and for wrong ones, 404 for another channel, warnings of unknown ones", async () => {
  const { id } = await create();
  expect((await patch(id, {})).status).toBe(422);
  expect((await patch(id, { consignee: { email: "no address" } })).status).toBe(422);
  const { body } = await patch(id, { note: "n", trackingNumber: "other" });
  expect(body.warnings).toEqual([
    { path: "trackingNumber", code: "UNKNOWN_MEMBER", nearest: null },
  ]);
  const beta = await api.token("key_beta_main");
  expect((await patch(id, { note: "n" }, beta)).status).toBe(404);
});

/** Document 1, `GET /v2/shipments/{id}`, and the isolation of channels. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { applyEvents } from "#test/support/data/facts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let token: string;
let counter = 0;

beforeAll(async () => {
  api = await openTestApi(testSetup());
  token = await api.token("key_acme_main");
});
afterAll(() => api.end());

async function create(members: Readonly<Record<string, unknown>> = {}, as = token) {
  counter += 1;
  const body = { shipments: [item(`D-${counter}`, members)] };
  const answer = await api.call("POST", "/v2/shipments", { token: as, body });
  expect(answer.status).toBe(201);
  return answer.body.items[0].id as number;
}

async function detail(id: number | string, as = token) {
  const answer = await api.call("GET", `/v2/shipments/${id}`, { token: as });
  expect(answer.status).toBe(200);
  return answer.body;
}

describe("200", () => {
  test("the summary of search, then planning, parcels, orderItems, history and notifications", async () => {
    const id = await create({ orderReference: "o-7" });
    const body = await detail(id);
    const found = await api.call("GET", "/v2/shipments?orderReference=o-7", { token });
    const { planning, parcels, orderItems, history, notifications, ...more } = body;
    const { newTrackingNumbers, expectedDelivery, expectedDeliveryReason, ...summary } = more;
    expect(newTrackingNumbers).toEqual([]);
    expect([expectedDelivery, expectedDeliveryReason]).toEqual([null, "NO_LANE"]);
    expect(summary).toEqual(found.body.items[0]);
    expect({ parcels, orderItems, history, notifications }).toEqual({
      parcels: [],
      orderItems: [],
      history: [],
      notifications: [],
    });
    expect(planning).toEqual({
      deliveryDate: null,
      latestShipDate: null,
      latestDeliveryDate: null,
    });
  });

  test("every field of the summary as it was created", async () => {
    const members = {
      orderReference: "o-8",
      orderDate: "2026-11-01",
      platformOrderId: "gid-8",
      origin: "shopify",
      language: "en",
      tag: "gift",
      note: "ring twice",
      consignee: {
        name: "Mario Rossi",
        street: "Via Roma 1",
        city: "Roma",
        postcode: "00184",
        state: "RM",
        country: "IT",
        email: "mario@example.test",
        phone: "+39061234",
      },
      monetary: { totalValue: 10.5, codAmount: 3, shippingCost: 4.9, currency: "EUR" },
      customAttributes: { custom1: "a", custom2: "b", custom3: "c" },
    };
    const { language, ...shown } = members;
    expect(await detail(await create(members))).toMatchObject({
      ...shown,
      courier: "GLS_ITA",
      courierName: "GLS Italy",
      shipDate: "2026-11-10",
      statusDescription: "Waiting for the first tracking event",
    });
  });

  test("parcels as recorded at creation, absent fields null", async () => {
    const full = {
      id: "p1",
      trackingNumber: "P-1",
      weight: 1.25,
      length: 10,
      width: 20,
      height: 30,
      content: "books",
      originCountry: "IT",
    };
    const { parcels } = await detail(
      await create({ parcels: [full, { weight: 2, boxCode: "S" }] }),
    );
    expect(parcels).toEqual([
      { ...full, boxCode: null },
      {
        id: null,
        trackingNumber: null,
        weight: 2,
        length: 30,
        width: 20,
        height: 10,
        boxCode: "S",
        content: null,
        originCountry: null,
      },
    ]);
  });

  test("orderItems: quantity 1 and isReturnable true by default, absent fields null", async () => {
    const full = {
      sku: "s1",
      name: "Shirt",
      quantity: 3,
      price: 9.9,
      total: 29.7,
      weight: 0.3,
      netWeight: 0.2,
      unitOfMeasurement: "pcs",
      url: "https://shop.example/s1",
      imageUrl: "https://shop.example/s1.png",
      isReturnable: false,
      customsCode: "6109",
      originCountry: "PT",
      parcelId: "p1",
      notes: "blue",
      custom1: "1",
      custom2: "2",
      custom3: "3",
      custom4: "4",
      custom5: "5",
    };
    const orderItems = [
      { ...full, transparencyCodes: ["t"] },
      { sku: "s2", name: "Hat" },
    ];
    const [first, second] = (await detail(await create({ orderItems }))).orderItems;
    expect(first).toEqual(full);
    expect(Object.keys(second)).toEqual(Object.keys(full));
    expect(second).toMatchObject({ quantity: 1, isReturnable: true, price: null, custom5: null });
  });
});

describe("history", () => {
  test("most recent first by the time of the courier, whatever order the events came in", async () => {
    const id = await create();
    const at = (day: number) => `2026-11-${day}T10:00:00+01:00`;
    for (const [code, day] of [
      ["OUT", 13],
      ["INF", 11],
      ["TRN", 12],
      ["DLV", 14],
    ] as const) {
      await applyEvents(api.runtime, [{ shipmentId: id, code, occurredAt: at(day) }]);
    }
    const { history, status, statusDate } = await detail(id);
    expect(history.map(({ statusCode }: { statusCode: string }) => statusCode)).toEqual([
      "DELIVERED",
      "OUT_FOR_DELIVERY",
      "IN_TRANSIT",
      "INFO_RECEIVED",
    ]);
    expect([status, statusDate]).toEqual(["DELIVERED", "2026-11-14 10:00:00"]);
  });

  test("an entry has the raw text, the place, the mapped description, name and detail", async () => {
    const id = await create();
    const event = { shipmentId: id, code: "HLD", place: "Filiale di Roma" };
    const occurredAt = "2026-11-12T09:30:15Z";
    await applyEvents(api.runtime, [{ ...event, description: "Giacenza aperta", occurredAt }]);
    const body = await detail(id);
    expect(body.history).toEqual([
      {
        date: "2026-11-12 10:30:15",
        courierStatus: "Giacenza aperta",
        place: "Filiale di Roma",
        status: "Anomalia",
        statusCode: "EXCEPTION",
        statusDetail: "In giacenza",
      },
    ]);
    expect(body).toMatchObject({
      statusDetail: 4,
      statusDetailDescription: "In giacenza",
      statusPlace: "Filiale di Roma",
    });
  });

  test("an unmapped code has null mapped fields and leaves the status as it was", async () => {
    const id = await create();
    await applyEvents(api.runtime, [{ shipmentId: id, code: "XYZ", description: "???" }]);
    const body = await detail(id);
    expect(body.history[0]).toMatchObject({
      courierStatus: "???",
      place: null,
      status: null,
      statusCode: null,
      statusDetail: null,
    });
    expect([body.status, body.statusUpdatedAt]).toEqual(["PENDING", null]);
  });

  test("times are Europe/Rome local time on both sides of both clock changes", async () => {
    const id = await create();
    const instants = [
      "2027-03-28T00:59:59Z",
      "2027-03-28T01:00:00Z",
      "2027-10-31T00:59:59Z",
      "2027-10-31T01:00:00Z",
    ];
    for (const occurredAt of instants) {
      await applyEvents(api.runtime, [{ shipmentId: id, code: "TRN", occurredAt }]);
    }
    const { history } = await detail(id);
    expect(history.map(({ date }: { date: string }) => date)).toEqual([
      "2027-10-31 02:00:00",
      "2027-10-31 02:59:59",
      "2027-03-28 03:00:00",
      "2027-03-28 01:59:59",
    ]);
  });
});

test("newTrackingNumbers are those that the courier announced after the first", async () => {
  const id = await create();
  for (const newTrackingNumber of ["NEW-B", "NEW-A", "NEW-B"]) {
    await applyEvents(api.runtime, [{ shipmentId: id, code: "TRN", newTrackingNumber }]);
  }
  const { trackingNumber, newTrackingNumbers } = await detail(id);
  expect([trackingNumber, newTrackingNumbers]).toEqual([`D-${counter}`, ["NEW-A", "NEW-B"]]);
});

describe("404", () => {
  /** An answer without what counts the caller's own requests. */
  async function answer(id: string) {
    const { status, headers, body } = await api.call("GET", `/v2/shipments/${id}`, { token });
    const shown = [...headers].filter(([name]) => !name.startsWith("x-ratelimit"));
    return { status, body, headers: shown };
  }

  test("missing, foreign and non-integer ids answer exactly the same", async () => {
    const sibling = await create({}, await api.token("key_acme_outlet"));
    const foreign = await create({}, await api.token("key_beta_main"));
    const missing = await answer("999999");
    expect(missing).toEqual({
      status: 404,
      body: {
        status: 404,
        code: "SHIPMENT_NOT_FOUND",
        message: "There is no such shipment.",
        requestId: expect.any(String),
      },
      headers: expect.any(Array),
    });
    const others = [sibling, foreign, "abc", "1.5", "-1", "0", "1e3", "017", "9".repeat(40), "%20"];
    for (const other of others) expect(await answer(String(other))).toEqual(missing);
    const own = await create();
    expect(await answer(`${own}x`)).toEqual(missing);
  });
});

describe("channels never see each other", () => {
  test("search finds the own shipments only, by any filter", async () => {
    const beta = await api.token("key_beta_main");
    const members = { orderReference: "shared", customAttributes: { custom1: "shared" } };
    const mine = await create(members);
    const theirs = await create(members, beta);
    for (const filter of ["orderReference=shared", "custom1=shared", "limit=100"]) {
      const seen = async (as: string) =>
        (await api.call("GET", `/v2/shipments?${filter}`, { token: as })).body.items.map(
          ({ id }: { id: number }) => id,
        );
      expect(await seen(token)).toContain(mine);
      expect(await seen(token)).not.toContain(theirs);
      expect(await seen(beta)).toContain(theirs);
      expect(await seen(beta)).not.toContain(mine);
    }
  });

  test("scope=company ends at the company", async () => {
    const theirs = await create({}, await api.token("key_beta_main"));
    const { body } = await api.call("GET", "/v2/shipments?scope=company&limit=100", { token });
    expect(body.items.map(({ id }: { id: number }) => id)).not.toContain(theirs);
  });

  test("two channels may have the same courier and tracking number", async () => {
    const body = { shipments: [item("common")] };
    for (const key of ["key_acme_main", "key_acme_outlet", "key_beta_main"]) {
      const as = await api.token(key);
      const { status } = await api.call("POST", "/v2/shipments", { token: as, body });
      expect(status).toBe(201);
    }
  });
});

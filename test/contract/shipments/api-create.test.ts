/** Document 1, `POST /v2/shipments`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { resolveReferences } from "#core/events/store/references.ts";
import { externalReference, trackingReference } from "#core/platform/redis/keys.ts";
import { addYears, romeDate } from "#core/platform/time/rome-time.ts";
import type { ShipmentMeta } from "#core/shipments/rules/shipment.ts";
import { readHotShipments } from "#core/shipments/store/shipments.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { type Answer, item, openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let token: string;
let counter = 0;

beforeAll(async () => {
  const setup = testSetup();
  setup.couriers?.push(
    { code: "SDA_ITA", name: "SDA", tokens: ["tok_sda_1"] },
    { code: "UPS_ITA", name: "UPS", tokens: ["tok_ups_1"] },
  );
  const couriers = setup.companies?.[0]?.channels?.[0]?.couriers;
  couriers?.push({ code: "UPS_ITA", shippingEnabled: false });
  api = await openTestApi(setup);
  token = await api.token("key_acme_main");
});
afterAll(() => api.end());

function newNumber(): string {
  counter += 1;
  return `TN-${counter}`;
}

function create(shipments: unknown, as = token): Promise<Answer> {
  return api.call("POST", "/v2/shipments", { token: as, body: { shipments } });
}

const one = (members: Readonly<Record<string, unknown>> = {}) =>
  create([item(newNumber(), members)]);

/** Creates one shipment and returns its detail. */
async function detailOf(members: Readonly<Record<string, unknown>>) {
  const { status, body } = await one(members);
  expect(status).toBe(201);
  return (await api.call("GET", `/v2/shipments/${body.items[0].id}`, { token })).body;
}

async function metaOf(members: Readonly<Record<string, unknown>>): Promise<ShipmentMeta> {
  const { body } = await one(members);
  const { id } = body.items[0];
  const meta = (await readHotShipments(api.runtime.redis, [id])).get(id)?.meta;
  if (!meta) throw new Error("not created");
  return meta;
}

async function total(): Promise<number> {
  return (await api.call("GET", "/v2/shipments", { token })).body.total;
}

describe("document 1, Shipments: shipDate is from 2000-01-01 to a year ahead", () => {
  const inAYear = (days: number) => {
    const date = addYears(romeDate(api.runtime.live.now()), 1);
    return new Date(Date.parse(date) + days * 86_400_000).toISOString().slice(0, 10);
  };

  test("201 for the first day and the last", async () => {
    const items = ["2000-01-01", inAYear(0)].map((shipDate) => item(newNumber(), { shipDate }));
    expect((await create(items)).status).toBe(201);
  });

  test("422 for the day before and the day after, and nothing is created", async () => {
    const before = await total();
    const dates = ["1999-12-31", "2026-11-10", inAYear(1)];
    const { status, body } = await create(dates.map((shipDate) => item(newNumber(), { shipDate })));
    expect(status).toBe(422);
    expect(body.violations).toMatchObject([
      { path: "shipments[0].shipDate", code: "OUT_OF_RANGE" },
      { path: "shipments[2].shipDate", code: "OUT_OF_RANGE" },
    ]);
    expect(await total()).toBe(before);
  });
});

describe("201 and 207", () => {
  test("201 when every item was created: summary and items in the order of the request", async () => {
    const { status, body } = await create([item("first"), item("second")]);
    expect(status).toBe(201);
    expect(body).toEqual({
      summary: { totalRequested: 2, totalSuccess: 2, totalFailed: 0 },
      items: [
        { status: "success", trackingNumber: "first", id: expect.any(Number), trackingUrl: null },
        { status: "success", trackingNumber: "second", id: expect.any(Number), trackingUrl: null },
      ],
    });
  });

  test("207 when one item was rejected: the others are created", async () => {
    const { status, body } = await create([
      item("third"),
      item("fourth", { courier: "NOBODY" }),
      item("fifth"),
    ]);
    expect(status).toBe(207);
    expect(body.summary).toEqual({ totalRequested: 3, totalSuccess: 2, totalFailed: 1 });
    expect(body.items.map((row: { status: string }) => row.status)).toEqual([
      "success",
      "error",
      "success",
    ]);
    expect(body.items[1]).toEqual({
      status: "error",
      trackingNumber: "fourth",
      id: null,
      trackingUrl: null,
      errors: [{ code: "INVALID_COURIER", message: expect.any(String), field: "courier" }],
    });
  });

  test("207 when every item was rejected", async () => {
    expect((await one({ courier: "NOBODY" })).status).toBe(207);
  });

  test("100 items are created, each with an id of its own", async () => {
    const { status, body } = await create(Array.from({ length: 100 }, () => item(newNumber())));
    expect(status).toBe(201);
    expect(new Set(body.items.map(({ id }: { id: number }) => id)).size).toBe(100);
  });

  test("a created shipment is found by the next request and by courier events", async () => {
    const number = newNumber();
    const { body } = await create([item(number, { orderReference: "order-9" })]);
    const { id } = body.items[0];
    const found = await api.call("GET", `/v2/shipments?trackingNumber=${number}`, { token });
    expect(found.body.items.map((row: { id: number }) => row.id)).toEqual([id]);
    expect(found.body.items[0].status).toBe("PENDING");
    const references = [
      trackingReference("GLS_ITA", number),
      externalReference("GLS_ITA", "ACC-1", "order-9"),
    ];
    const candidates = await resolveReferences(api.runtime.redis, references);
    expect([...candidates.values()].flat().map(({ shipmentId }) => shipmentId)).toEqual([id, id]);
  });
});

describe("422: static faults reject the whole request and create nothing", () => {
  const faulty: [string, Record<string, unknown>, string, string][] = [
    ["trackingNumber missing", { trackingNumber: undefined }, "trackingNumber", "REQUIRED"],
    ["trackingNumber null", { trackingNumber: null }, "trackingNumber", "REQUIRED"],
    ["trackingNumber empty", { trackingNumber: "" }, "trackingNumber", "TOO_SHORT"],
    [
      "trackingNumber of 51 characters",
      { trackingNumber: "x".repeat(51) },
      "trackingNumber",
      "TOO_LONG",
    ],
    ["courier missing", { courier: undefined }, "courier", "REQUIRED"],
    ["shipDate missing", { shipDate: undefined }, "shipDate", "REQUIRED"],
    ["shipDate no real day", { shipDate: "2026-02-30" }, "shipDate", "BAD_FORMAT"],
    ["shipDate with a time", { shipDate: "2026-02-03T00:00:00Z" }, "shipDate", "BAD_FORMAT"],
    ["orderDate no date", { orderDate: "yesterday" }, "orderDate", "BAD_FORMAT"],
    ["isReturnable no bool", { isReturnable: "yes" }, "isReturnable", "WRONG_TYPE"],
    [
      "country of three letters",
      { consignee: { country: "ITA" } },
      "consignee.country",
      "BAD_FORMAT",
    ],
    ["e-mail without @", { consignee: { email: "nobody" } }, "consignee.email", "BAD_FORMAT"],
    ["currency not EUR", { monetary: { currency: "USD" } }, "monetary.currency", "NOT_ALLOWED"],
    ["codAmount a text", { monetary: { codAmount: "3" } }, "monetary.codAmount", "WRONG_TYPE"],
    [
      "planning without offset",
      { planning: { deliveryDate: "2026-11-10T10:00:00" } },
      "planning.deliveryDate",
      "BAD_FORMAT",
    ],
    ["parcel without weight", { parcels: [{ boxCode: "S" }] }, "parcels[0].weight", "REQUIRED"],
    [
      "parcel of no weight",
      { parcels: [{ weight: 0, boxCode: "S" }] },
      "parcels[0].weight",
      "OUT_OF_RANGE",
    ],
    [
      "101 parcels",
      { parcels: Array.from({ length: 101 }, () => ({ weight: 1, boxCode: "S" })) },
      "parcels",
      "TOO_MANY",
    ],
    ["order line without sku", { orderItems: [{ name: "a" }] }, "orderItems[0].sku", "REQUIRED"],
    ["order line without name", { orderItems: [{ sku: "a" }] }, "orderItems[0].name", "REQUIRED"],
    [
      "quantity no int",
      { orderItems: [{ sku: "a", name: "b", quantity: 1.5 }] },
      "orderItems[0].quantity",
      "WRONG_TYPE",
    ],
    [
      "501 order lines",
      { orderItems: Array.from({ length: 501 }, () => ({ sku: "a", name: "b" })) },
      "orderItems",
      "TOO_MANY",
    ],
  ];

  test.each(faulty)("%s", async (_, members, path, code) => {
    const before = await total();
    const { status, headers, body } = await create([item(newNumber()), item(newNumber(), members)]);
    expect(status).toBe(422);
    expect(headers.get("content-type")).toBe("application/problem+json");
    expect(headers.get("x-error-message")).toBe(body.detail);
    expect(body).toMatchObject({ status: 422, code: "VALIDATION_FAILED" });
    expect(body.violations).toMatchObject([
      { path: `shipments[1].${path}`, code, message: expect.any(String) },
    ]);
    expect(await total()).toBe(before);
  });

  test("no items, 101 items, no array, null instead of an item, no object", async () => {
    const many = Array.from({ length: 101 }, (_, at) => item(`many-${at}`));
    const bodies = [[], many, "x", [null], undefined];
    const answers = await Promise.all(bodies.map((shipments) => create(shipments)));
    expect(answers.map(({ status }) => status)).toEqual([422, 422, 422, 422, 422]);
    expect(answers.map(({ body }) => [body.violations[0].path, body.violations[0].code])).toEqual([
      ["shipments", "TOO_FEW"],
      ["shipments", "TOO_MANY"],
      ["shipments", "WRONG_TYPE"],
      ["shipments[0]", "WRONG_TYPE"],
      ["shipments", "REQUIRED"],
    ]);
    const list = await api.call("POST", "/v2/shipments", { token, body: [] });
    expect([list.status, list.body.violations[0].path]).toEqual([422, ""]);
  });

  test("all violations are reported at once", async () => {
    const { body } = await one({ shipDate: "x", orderDate: "y", monetary: { currency: "USD" } });
    expect(body.violations).toHaveLength(3);
  });

  test("400 when the body is not JSON", async () => {
    for (const text of ["", "{", '{"shipments":[}']) {
      const { status, body } = await api.call("POST", "/v2/shipments", { token, text });
      expect([status, body.code]).toEqual([400, "MALFORMED_BODY"]);
    }
  });
});

describe("per-item errors", () => {
  async function errorsOf(members: Readonly<Record<string, unknown>>) {
    const { status, body } = await one(members);
    expect(status).toBe(207);
    return body.items[0].errors.map(({ code, field }: { code: string; field: string }) => [
      code,
      field,
    ]);
  }

  test("INVALID_COURIER: no courier, name or transcoding of that text", async () => {
    expect(await errorsOf({ courier: "DHL" })).toEqual([["INVALID_COURIER", "courier"]]);
  });

  test("COURIER_NOT_CONFIGURED: the variant is not enabled for the channel", async () => {
    expect(await errorsOf({ courier: "SDA_ITA" })).toEqual([["COURIER_NOT_CONFIGURED", "courier"]]);
    expect(await errorsOf({ courier: "UPS_ITA" })).toEqual([["COURIER_NOT_CONFIGURED", "courier"]]);
  });

  test("INVALID_LANGUAGE: not one of the supported languages", async () => {
    expect(await errorsOf({ language: "xx" })).toEqual([["INVALID_LANGUAGE", "language"]]);
    expect(await errorsOf({ language: "IT" })).toEqual([["INVALID_LANGUAGE", "language"]]);
  });

  test("INVALID_ORIGIN: not in the platform registry", async () => {
    expect(await errorsOf({ origin: "etsy" })).toEqual([["INVALID_ORIGIN", "origin"]]);
  });

  test("INVALID_BOX_CODE: unknown box, or no registry at all", async () => {
    const members = { parcels: [{ weight: 1, boxCode: "XL" }] };
    expect(await errorsOf(members)).toEqual([["INVALID_BOX_CODE", "parcels[0].boxCode"]]);
    const beta = await api.token("key_beta_main");
    const parcels = [{ weight: 1, boxCode: "S" }];
    const { body } = await create([item(newNumber(), { parcels })], beta);
    expect(body.items[0].errors[0].code).toBe("INVALID_BOX_CODE");
  });

  test("MISSING_PARCEL_DIMENSIONS: neither box nor all of length, width and height", async () => {
    const parcels = [
      { weight: 1, length: 1, width: 1, height: 1 },
      { weight: 1, length: 1, width: 1 },
      { weight: 1 },
    ];
    expect(await errorsOf({ parcels })).toEqual([
      ["MISSING_PARCEL_DIMENSIONS", "parcels[1]"],
      ["MISSING_PARCEL_DIMENSIONS", "parcels[2]"],
    ]);
  });

  test("DUPLICATE_SHIPMENT: the channel has this courier and tracking number already", async () => {
    const first = await create([item("double")]);
    const { status, body } = await create([item("double")]);
    expect(status).toBe(207);
    expect(body.items[0]).toMatchObject({ status: "error", id: null });
    expect(body.items[0].errors).toEqual([
      {
        code: "DUPLICATE_SHIPMENT",
        message: expect.any(String),
        field: "trackingNumber",
        existingId: first.body.items[0].id,
      },
    ]);
    const other = await create([item("double", { courier: "BRT_ITA" })]);
    expect(other.status).toBe(201);
    expect((await create([item("double")], await api.token("key_acme_outlet"))).status).toBe(201);
  });

  test("DUPLICATE_SHIPMENT tells the id of the channel's own shipment, whoever else has the number", async () => {
    const number = newNumber();
    const outlet = await api.token("key_acme_outlet");
    const beta = await api.token("key_beta_main");
    const ids: number[] = [];
    for (const as of [token, outlet, beta]) {
      const { body } = await create([item(number)], as);
      ids.push(body.items[0].id);
    }
    expect(new Set(ids).size).toBe(3);
    for (const [at, as] of [token, outlet, beta].entries()) {
      const { body } = await create([item(newNumber()), item(number)], as);
      expect(body.items[1].errors[0].existingId).toBe(ids[at]);
      const { existingId } = body.items[1].errors[0];
      const read = await api.call("GET", `/v2/shipments/${existingId}`, { token: as });
      expect([read.status, read.body.trackingNumber]).toEqual([200, number]);
    }
  });

  test("DUPLICATE_SHIPMENT inside one batch: the first one that is valid is created", async () => {
    const { body } = await create([
      item("twin", { language: "xx" }),
      item("twin"),
      item("twin", { courier: "gls" }),
    ]);
    const codes = body.items.map(
      ({ errors }: { errors?: { code: string }[] }) => errors?.[0]?.code,
    );
    expect(codes).toEqual(["INVALID_LANGUAGE", undefined, "DUPLICATE_SHIPMENT"]);
    expect(body.items[2].errors[0].existingId).toBe(body.items[1].id);
  });

  test("all errors of an item are reported", async () => {
    const members = { courier: "DHL", language: "xx", origin: "etsy", parcels: [{ weight: 1 }] };
    expect((await errorsOf(members)).map(([code]: string[]) => code)).toEqual([
      "INVALID_COURIER",
      "INVALID_LANGUAGE",
      "INVALID_ORIGIN",
      "MISSING_PARCEL_DIMENSIONS",
    ]);
  });

  test("(channel, courier, trackingNumber) stays unique under concurrent requests of two processes", async () => {
    const another = await api.another();
    const numbers = Array.from({ length: 50 }, () => newNumber());
    const body = { shipments: numbers.map((number) => item(number)) };
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        (at % 2 === 0 ? api.call : another)("POST", "/v2/shipments", { token, body }),
      ),
    );
    const rows = answers.flatMap((answer) => answer.body.items);
    const created = rows.filter(({ status }: { status: string }) => status === "success");
    expect(created.map((row: { trackingNumber: string }) => row.trackingNumber).sort()).toEqual(
      [...numbers].sort(),
    );
  });
});

describe("courier", () => {
  const texts = ["GLS_ITA", "gls_ita", "GLS Italy", "gls italy", "GLS", "Corriere GLS"];

  test.each(texts)(
    "%s means GLS_ITA: code, name and transcoding, in any letter case",
    async (courier) => {
      const detail = await detailOf({ courier });
      expect([detail.courier, detail.courierName]).toEqual(["GLS_ITA", "GLS Italy"]);
    },
  );

  test("a transcoding counts on its channel only", async () => {
    const { body } = await create(
      [item(newNumber(), { courier: "corriere gls" })],
      await api.token("key_acme_outlet"),
    );
    expect(body.items[0].errors[0].code).toBe("INVALID_COURIER");
  });
});

describe("defaults and what is kept", () => {
  test("a null member counts as absent, at every depth", async () => {
    const detail = await detailOf({
      orderReference: null,
      language: null,
      consignee: { name: "A", country: null, email: null },
      monetary: null,
      parcels: [{ weight: 1, boxCode: "S", length: null, content: null }],
      orderItems: [{ sku: "a", name: "b", quantity: null, isReturnable: null }],
    });
    expect(detail.orderReference).toBeNull();
    expect(detail.consignee).toMatchObject({ name: "A", country: "IT", email: null });
    expect(detail.parcels[0]).toMatchObject({ length: 30, content: null });
    expect(detail.orderItems[0]).toMatchObject({ quantity: 1, isReturnable: true });
  });

  test("language it, country IT, currency EUR, not a return, PENDING and never updated", async () => {
    expect(await detailOf({ consignee: { city: "Roma" } })).toMatchObject({
      status: "PENDING",
      statusDescription: "In attesa del primo evento",
      statusDetail: 0,
      statusDate: null,
      statusUpdatedAt: null,
      trackingUrl: null,
      isReturn: false,
      consignee: { city: "Roma", country: "IT" },
      monetary: { currency: "EUR", codAmount: null },
    });
  });

  test("a shipment without e-mail or phone is created", async () => {
    expect((await one({ consignee: { name: "A" } })).status).toBe(201);
  });

  test("a member that the document does not know is left out", async () => {
    const detail = await detailOf({ consignee: { secret: "x" }, surprise: 1 });
    expect(JSON.stringify(detail)).not.toContain("secret");
    expect(detail.surprise).toBeUndefined();
  });

  test("the box registry supplies the dimensions, those of the parcel itself come first", async () => {
    const detail = await detailOf({
      parcels: [
        { weight: 1.5, boxCode: "S" },
        { weight: 2, boxCode: "S", height: 7 },
        { weight: 3, length: 1, width: 2, height: 3 },
      ],
    });
    expect(
      detail.parcels.map((parcel: { length: number; width: number; height: number }) => [
        parcel.length,
        parcel.width,
        parcel.height,
      ]),
    ).toEqual([
      [30, 20, 10],
      [30, 20, 7],
      [1, 2, 3],
    ]);
  });

  test("planning members are returned as the day it is in Rome", async () => {
    const { planning } = await detailOf({
      planning: { deliveryDate: "2026-11-12", latestShipDate: "2026-11-10T23:30:00Z" },
    });
    expect(planning).toEqual({
      deliveryDate: "2026-11-12",
      latestShipDate: "2026-11-11",
      latestDeliveryDate: null,
    });
  });

  test("the lane has the CAP of an Italian consignee, the seat's CAP and the weight of all parcels", async () => {
    const parcels = [
      { weight: 0.1, boxCode: "S" },
      { weight: 0.2, boxCode: "S" },
    ];
    expect(await metaOf({ consignee: { postcode: "00118" }, parcels })).toMatchObject({
      destCap: "00118",
      originCap: "20121",
      weightKg: 0.3,
    });
  });

  test("a foreign or invalid postal code is in no lane, and no parcels are no weight", async () => {
    const meta = await metaOf({ consignee: { postcode: "75001", country: "FR" } });
    expect(meta).toMatchObject({ destCap: null, weightKg: null });
    expect((await metaOf({ consignee: { postcode: "00000" } })).destCap).toBeNull();
    expect((await metaOf({ consignee: { postcode: "123" } })).destCap).toBeNull();
  });

  test("numbers of parcels find the shipment too, each once and besides its own", async () => {
    const trackingNumber = "WITH-PARCELS";
    const parcels = ["P-1", "P-2", "P-1", trackingNumber, undefined].map((number) => ({
      weight: 1,
      boxCode: "S",
      ...(number !== undefined && { trackingNumber: number }),
    }));
    const meta = await metaOf({ trackingNumber, parcels });
    expect(meta.parcelNumbers).toEqual(["P-1", "P-2"]);
    const references = ["P-1", "P-2"].map((number) => trackingReference("GLS_ITA", number));
    const found = await resolveReferences(api.runtime.redis, references);
    for (const { key } of references) expect(found.get(key)).toHaveLength(1);
  });

  test("isRealTrackingNumber false makes the number a placeholder", async () => {
    expect((await metaOf({ isRealTrackingNumber: false })).isPlaceholder).toBe(true);
    expect((await metaOf({})).isPlaceholder).toBe(false);
  });
});

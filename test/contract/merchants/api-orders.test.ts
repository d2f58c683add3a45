/** Document 1, "Orders": listing, natural key, detail, and the panel's import of orders. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { naturalKey, naturalKeyAsGiven } from "#core/merchants/rules/order.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { applySetupFile } from "#core/runtime/runtime.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestApi, type TestApi } from "#test/support/product/api.ts";

const FULL = {
  source: "shopify",
  reference: "1001",
  orderId: "gid-1",
  courier: "GLS_ITA",
  courierService: "EXPRESS",
  senderId: 7,
  status: "ready",
  createdAt: "2026-11-01T10:00:00+01:00",
  updatedAt: "2026-11-02T10:00:00+01:00",
  isReturnable: false,
  notes: "ring twice",
  content: "books",
  tag: "gift",
  pickupDate: "2026-11-03",
  pickupTime: "09:30",
  pickupPoint: "PP-1",
  consignee: {
    name: "Mario Rossi",
    street: "Via Roma 1",
    city: "Roma",
    state: "RM",
    postcode: "00184",
    country: "IT",
    email: "mario@example.test",
    phone: "+39061234",
  },
  monetary: {
    paymentMethod: "card",
    isCod: true,
    codPaymentOption: "CASH",
    value: 99.5,
    shippingCost: 4.9,
    currency: "EUR",
    shippingInsurance: 10,
  },
  planning: {
    deliveryOptions: "SAT",
    requestedDeliveryDate: "2026-11-05",
    latestShipDate: "2026-11-03T23:30:00+00:00",
    latestDeliveryDate: "2026-11-09",
  },
  customAttributes: { custom1: "a", custom2: "b", custom3: "c" },
  parcels: [
    { weight: 1, length: 30, width: 20, height: 10, boxCode: "S" },
    { weight: 2, length: 40, width: 30, height: 20 },
    { weight: 7 },
  ],
  items: [{ sku: "s1", name: "Book", quantity: 2, transparencyCodes: ["t1"] }],
};

let api: TestApi;
let token: string;
let outlet: string;
let panel: (path: string, text: string) => Promise<{ status: number; body: Imported }>;
let closeBenchmarks: () => Promise<void>;

interface Imported {
  readonly summary: Readonly<Record<string, number>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the panel answered
  readonly items: any[];
}

beforeAll(async () => {
  const setup = testSetup();
  Object.assign(setup.companies?.[0]?.channels?.[0] ?? {}, { orders: [FULL] });
  api = await openTestApi(setup);
  token = await api.token("key_acme_main");
  outlet = await api.token("key_acme_outlet");
  const benchmarks = await openBenchmarks(api.runtime.config);
  closeBenchmarks = () => benchmarks.close();
  const app = createPanelApp(api.runtime, benchmarks);
  panel = async (path, text) => {
    const headers = {
      authorization: `Bearer ${api.runtime.config.panelToken}`,
      "content-type": "application/x-ndjson",
    };
    const request = new Request(`http://localhost${path}`, { method: "POST", headers, body: text });
    const response = await app.handle(request);
    return { status: response.status, body: (await response.json()) as Imported };
  };
});
afterAll(async () => {
  await closeBenchmarks();
  await api.end();
});

const get = (path: string, as = token) => api.call("GET", path, { token: as });
const lines = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).join("\n");
const put = (rows: readonly object[], channel = "acme-it") =>
  panel(`/panel/api/channels/${channel}/orders`, lines(rows));
const order = (reference: string, members: object = {}) => ({
  source: "api",
  reference,
  createdAt: "2026-10-01T10:00:00+02:00",
  ...members,
});

async function lookUp(reference: string, source = "api", as = token) {
  const { status, body } = await get(`/v2/orders?source=${source}&reference=${reference}`, as);
  expect(status).toBe(200);
  return body[0];
}

describe("200", () => {
  test("every field of the Order table, from the setup file", async () => {
    const { status, headers, body } = await get("/v2/orders?source=shopify&reference=1001");
    expect(status).toBe(200);
    const couriers = api.runtime.live.configuration().couriers;
    const { courier, parcels, planning, items, ...shown } = FULL;
    expect(body).toEqual([
      {
        ...shown,
        id: expect.any(Number),
        channelId: api.runtime.live.configuration().channelByCode.get("acme-it")?.id,
        courierId: couriers.get(courier)?.number,
        updatedAt: "2026-11-02T10:00:00.000+01:00",
        planning: { ...planning, latestShipDate: "2026-11-04" },
        totalWeight: 10,
        parcelsCount: 3,
        firstParcelLength: 30,
        firstParcelWidth: 20,
        firstParcelHeight: 10,
        parcels: expect.any(Array),
        items: [
          {
            ...items[0],
            weight: null,
            url: null,
            imageUrl: null,
            price: null,
            total: null,
            isReturnable: true,
            notes: null,
            customsCode: null,
            originCountry: null,
            netWeight: null,
            unitOfMeasurement: null,
            parcelId: null,
          },
        ],
      },
    ]);
    expect(headers.get("x-total-count")).toBe("1");
    expect([headers.get("x-page"), headers.get("x-limit")]).toEqual([null, null]);
  });

  test("parcels are rebuilt: weight spread evenly, dimensions of the first parcel only", async () => {
    const { parcels } = await lookUp("1001", "shopify");
    const weight = 3.333333;
    const rest = { content: "books", originCountry: null };
    const unknown = { weight, length: null, width: null, height: null, boxCode: null, ...rest };
    expect(parcels).toEqual([
      { weight, length: 30, width: 20, height: 10, boxCode: "S", ...rest },
      unknown,
      unknown,
    ]);
  });

  test("an order of the fewest fields: unassigned courier 0, sender null, empty lists", async () => {
    await put([order("bare")]);
    expect(await lookUp("bare")).toMatchObject({
      courierId: 0,
      senderId: null,
      totalWeight: 0,
      parcelsCount: 0,
      parcels: [],
      items: [],
      isReturnable: true,
    });
  });

  test("an order that comes with totals alone has its parcels rebuilt from them", async () => {
    await put([order("totals", { totalWeight: 5, parcelsCount: 2, firstParcelLength: 11 })]);
    const { parcels } = await lookUp("totals");
    expect(parcels.map((one: { weight: number }) => one.weight)).toEqual([2.5, 2.5]);
    expect(parcels.map((one: { length: number }) => one.length)).toEqual([11, null]);
  });

  test("the natural key has nothing of the blanks around source and reference, and keeps case and inner spaces", async () => {
    const typed = (reference: string) => lookUp(encodeURIComponent(reference), "%20api");
    await put([order("Typed 1 \u00a0")]);
    const { id, reference } = await typed("Typed 1");
    expect(reference).toBe("Typed 1 \u00a0");
    await put([order("\ufeffTyped 1", { notes: "again" }), order("typed 1")]);
    expect(await typed(" Typed 1")).toMatchObject({ id, notes: "again" });
    expect((await typed("typed 1")).id).not.toBe(id);
  });

  test("an order that 0.1.0 put under its reference as it was given is found and changed", async () => {
    await put([order(" older ")]);
    const { id } = await lookUp("older");
    const channel = api.runtime.live.configuration().channelByCode.get("acme-it");
    const { orderNaturals } = companyKeys(companyPartition(channel?.companyId ?? 0));
    const key = orderNaturals(channel?.id ?? 0);
    await api.runtime.redis.hDel(key, naturalKey("api", "older"));
    await api.runtime.redis.hSet(key, naturalKeyAsGiven("api", " older "), String(id));
    expect((await lookUp("%20older%20")).id).toBe(id);
    await put([order(" older ", { notes: "changed" })]);
    for (const reference of ["older", "%20older%20"]) {
      expect(await lookUp(reference)).toMatchObject({ id, notes: "changed" });
    }
  });

  test("GET /v2/orders/{id} answers the same order", async () => {
    const found = await lookUp("1001", "shopify");
    expect(await get(`/v2/orders/${found.id}`)).toMatchObject({ status: 200, body: found });
  });

  test("newest order date first, ties by the higher id, pages without gap or repetition", async () => {
    const day = (n: number) => `2026-0${1 + (n % 3)}-10T10:00:00+01:00`;
    const rows = Array.from({ length: 9 }, (_, n) => order(`p${n}`, { createdAt: day(n) }));
    await put(rows, "acme-outlet");
    const pages = await Promise.all(
      [1, 2, 3].map((page) => get(`/v2/orders?page=${page}&limit=3`, outlet)),
    );
    const seen = pages.flatMap(({ body }) =>
      body.map((one: { reference: string }) => one.reference),
    );
    expect(seen).toEqual(["p8", "p5", "p2", "p7", "p4", "p1", "p6", "p3", "p0"]);
    for (const { headers } of pages) expect(headers.get("x-total-count")).toBe("9");
    expect(pages.map(({ headers }) => headers.get("x-page"))).toEqual(["1", "2", "3"]);
  });

  test("page and limit are clamped without an error; what is no number counts as absent", async () => {
    const shown = async (query: string) => {
      const { status, headers } = await get(`/v2/orders?${query}`, outlet);
      return [status, headers.get("x-page"), headers.get("x-limit")];
    };
    expect(await shown("")).toEqual([200, "1", "50"]);
    expect(await shown("page=0&limit=0")).toEqual([200, "1", "1"]);
    expect(await shown("page=-3&limit=-1")).toEqual([200, "1", "1"]);
    expect(await shown("limit=1000")).toEqual([200, "1", "100"]);
    expect(await shown("page=abc&limit=1.5")).toEqual([200, "1", "50"]);
  });

  test("source or reference given twice is 422: neither is looked up", async () => {
    for (const name of ["source", "reference"]) {
      const { status, body } = await get(`/v2/orders?source=a&reference=b&${name}=c`, outlet);
      expect([status, body.violations?.[0]]).toMatchObject([422, { path: name, code: "TOO_MANY" }]);
    }
  });

  test("a page past the end is an empty array; source or reference alone is ignored", async () => {
    expect(await get("/v2/orders?page=99", outlet)).toMatchObject({ status: 200, body: [] });
    const all = (await get("/v2/orders", outlet)).body;
    expect((await get("/v2/orders?source=nowhere", outlet)).body).toEqual(all);
    expect((await get("/v2/orders?reference=nothing", outlet)).body).toEqual(all);
  });
});

describe("404", () => {
  test("natural-key lookup without match", async () => {
    const answer = await get("/v2/orders?source=shopify&reference=none");
    expect(answer).toMatchObject({ status: 404, body: { code: "ORDER_NOT_FOUND" } });
    expect(answer.headers.get("x-error-message")).toBe("There is no such order.");
  });

  test("missing, deleted, foreign and non-integer ids answer exactly the same", async () => {
    await put([order("gone"), order("foreign")]);
    const gone = (await lookUp("gone")).id;
    const own = (await lookUp("foreign")).id;
    await put([order("gone", { deleted: true })]);
    const missing = await get("/v2/orders/999999");
    for (const id of [gone, "abc", "0", "-1", "1.5", `${own}x`]) {
      expect(await get(`/v2/orders/${id}`)).toMatchObject({ status: 404, body: missing.body });
    }
    const other = await get(`/v2/orders/${own}`, outlet);
    expect(other).toMatchObject({ status: 404, body: missing.body });
    expect((await get("/v2/orders?source=api&reference=foreign", outlet)).status).toBe(404);
  });

  test("a deleted order leaves the listing and the lookup, and returns when it comes in again", async () => {
    await put([order("comeback")]);
    const { id } = await lookUp("comeback");
    await put([order("comeback", { deleted: true })]);
    expect((await get("/v2/orders?source=api&reference=comeback")).status).toBe(404);
    const listed = (await get("/v2/orders?limit=100")).body.map((one: { id: number }) => one.id);
    expect(listed).not.toContain(id);
    await put([order("comeback")]);
    expect((await lookUp("comeback")).id).toBe(id);
  });
});

describe("403", () => {
  test("a key without orders:read", async () => {
    const apiKeys = [{ code: "narrow", key: "key_narrow", scopes: ["shipments:read" as const] }];
    const channels = [{ code: "acme-it", apiKeys }];
    await applySetupFile(api.runtime, { companies: [{ code: "acme", channels }] });
    const narrow = await api.token("key_narrow");
    expect(await get("/v2/orders", narrow)).toMatchObject({
      status: 403,
      body: { code: "MISSING_SCOPE" },
    });
  });
});

describe("POST /panel/api/channels/{code}/orders", () => {
  test("thousands at once, each once; a resend changes nothing", async () => {
    const rows = Array.from({ length: 3_000 }, (_, n) => order(`many-${n}`));
    const first = await put(rows, "beta-it");
    expect(first.body.summary).toMatchObject({ lines: 3_000, created: 3_000, rejected: 0 });
    const again = await put(rows, "beta-it");
    expect(again.body.summary).toMatchObject({ unchanged: 3_000, created: 0, updated: 0 });
    const beta = await api.token("key_beta_main");
    const { headers } = await get("/v2/orders", beta);
    expect(headers.get("x-total-count")).toBe("3000");
    expect(again.body.items.map(({ id }) => id)).toEqual(first.body.items.map(({ id }) => id));
  });

  test("the same order with other content is updated and keeps its id and order date", async () => {
    const [{ id }] = (await put([order("upd")])).body.items;
    const { createdAt, ...undated } = order("upd", { tag: "new" });
    const answer = await put([undated]);
    expect(answer.body.items).toEqual([{ line: 1, outcome: "updated", id, violations: [] }]);
    expect(await lookUp("upd")).toMatchObject({ id, tag: "new", createdAt });
  });

  test("faulty lines are rejected alone, each with its line and violations", async () => {
    const text = [
      JSON.stringify(order("good-1")),
      "",
      "{not json",
      JSON.stringify({ source: "api" }),
      JSON.stringify(order("bad", { source: "unknown-platform" })),
      JSON.stringify(order("bad", { courier: "NOPE" })),
      JSON.stringify(order("good-2", { notes: null })),
    ].join("\n");
    const { body } = await panel("/panel/api/channels/acme-it/orders", text);
    expect(body.summary).toMatchObject({ lines: 6, created: 2, rejected: 4 });
    expect(body.items.map(({ line, outcome }) => `${line} ${outcome}`)).toEqual([
      "1 created",
      "3 rejected",
      "4 rejected",
      "5 rejected",
      "6 rejected",
      "7 created",
    ]);
    expect(body.items[2].violations).toMatchObject([{ path: "reference", code: "REQUIRED" }]);
  });

  test("the same order twice in one body: the later line counts", async () => {
    const { body } = await put([order("twice", { tag: "a" }), order("twice", { tag: "b" })]);
    expect(body.items.map(({ outcome }) => outcome)).toEqual(["created", "updated"]);
    expect((await lookUp("twice")).tag).toBe("b");
  });

  test("racing imports of the same orders make each of them once", async () => {
    const rows = Array.from({ length: 50 }, (_, n) => order(`race-${n}`));
    const answers = await Promise.all([put(rows), put(rows), put(rows), put(rows)]);
    const created = answers.map(({ body }) => body.summary["created"] ?? 0);
    expect(created.reduce((sum, one) => sum + one)).toBe(50);
  });

  test("a body of too many lines is refused whole; an unknown channel is 404", async () => {
    const text = `${JSON.stringify(order("x"))}\n`.repeat(10_001);
    expect((await panel("/panel/api/channels/acme-it/orders", text)).status).toBe(413);
    expect((await panel("/panel/api/channels/none/orders", "{}")).status).toBe(404);
  });
});

describe("the setup file", () => {
  const file = (orders: readonly object[]) => ({
    companies: [{ code: "acme", channels: [{ code: "acme-it", orders }] }],
  });

  test("an order of the file is written once, and again when the file changes it", async () => {
    const row = order("from-file", { consignee: { email: null } });
    expect(await applySetupFile(api.runtime, file([row]))).toBe(1);
    expect(await applySetupFile(api.runtime, file([row]))).toBe(0);
    expect(await applySetupFile(api.runtime, file([{ ...row, tag: "t" }]))).toBe(1);
    expect((await lookUp("from-file")).tag).toBe("t");
  });

  test("a source outside the platform registry is a fault of the file", async () => {
    const faulty = applySetupFile(api.runtime, file([order("f", { source: "elsewhere" })]));
    expect(faulty).rejects.toThrow("orders[0].source: NOT_ALLOWED");
  });
});

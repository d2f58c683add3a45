/** Document 1, "Order parcels": the family `/v2/parcels`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let token: string;
let counter = 0;

beforeAll(async () => {
  const setup = testSetup();
  const [acme] = setup.companies ?? [];
  const [main] = acme?.channels ?? [];
  Object.assign(acme ?? {}, { products: ["api-parcels"] });
  const scopes = ["create", "read", "update", "delete"].map((verb) => `parcels:${verb}`);
  const keys = scopes.map((scope) => ({
    code: scope.replace(":", "-"),
    key: `key_${scope}`,
    scopes: scopes.filter((one) => one !== scope),
  }));
  const order = {
    source: "shopify",
    reference: "setup-1",
    parcels: [{ weight: 2, length: 10, content: "tea" }, { weight: 3 }],
  };
  Object.assign(main ?? {}, { apiKeys: [...(main?.apiKeys ?? []), ...keys], orders: [order] });
  api = await openTestApi(setup);
  token = await api.token("key_acme_main");
});
afterAll(() => api.end());

const call = (method: string, path: string, body?: object, as = token) =>
  api.call(method, path, { token: as, ...(body && { body }) });
const query = (reference: string, more = "", origin = "api") =>
  `/v2/parcels?orderReference=${reference}&orderOrigin=${origin}${more}`;

function creation(members: object = {}) {
  counter += 1;
  const parcels = [
    { weightKg: 1, lengthCm: 10, widthCm: 20, heightCm: 30, clientInternalCode: "A" },
    { weightKg: 2.5, originCountryIso: "IT", contentsDescription: "tea", shippingNotes: "up" },
  ];
  return { orderReference: `P-${counter}`, orderOrigin: "api", parcels, ...members };
}

async function created(members: object = {}) {
  const body = creation(members);
  const answer = await call("POST", "/v2/parcels", body);
  expect(answer.status).toBe(201);
  return { reference: body.orderReference, parcels: answer.body };
}

async function orderOf(reference: string, source = "api") {
  const path = `/v2/orders?source=${source}&reference=${reference}`;
  return (await call("GET", path)).body[0];
}

describe("200", () => {
  test("the parcels of an order, page by page", async () => {
    const parcels = Array.from({ length: 25 }, (_, at) => ({ weightKg: at + 1 }));
    const { reference } = await created({ parcels });
    const first = (await call("GET", query(reference))).body;
    expect(first).toMatchObject({ total: 25, page: 1, limit: 20, pages: 2 });
    const second = (await call("GET", query(reference, "&page=2&limit=20"))).body;
    const numbers = [...first.items, ...second.items].map(({ number }) => number);
    expect(numbers).toEqual(Array.from({ length: 25 }, (_, at) => at + 1));
  });

  test("an order without parcels and a missing order are an empty page", async () => {
    expect(await call("GET", query("none"))).toMatchObject({
      status: 200,
      body: { items: [], total: 0, pages: 0 },
    });
  });

  test("parcels of orders from the setup file and the panel are found the same way", async () => {
    const { body } = await call("GET", query("setup-1", "", "shopify"));
    expect(body.items).toMatchObject([
      { number: 1, weightKg: 2, lengthCm: 10, contentsDescription: "tea" },
      { number: 2, weightKg: 3, lengthCm: null },
    ]);
  });

  test("one parcel by its hash, every field", async () => {
    const { reference, parcels } = await created();
    const answer = await call("GET", `/v2/parcels/${parcels[1].hash}`);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      hash: expect.stringMatching(/^[0-9a-f]{40}$/),
      orderReference: reference,
      orderOrigin: "api",
      number: 2,
      weightKg: 2.5,
      lengthCm: null,
      widthCm: null,
      heightCm: null,
      originCountryIso: "IT",
      contentsDescription: "tea",
      clientInternalCode: null,
      shippingNotes: "up",
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
  });

  test("an update changes what it names, keeps the hash, and moves the order's totals", async () => {
    const { reference, parcels } = await created();
    const [{ hash }] = parcels;
    const update = { weightKg: 5, shippingNotes: "fragile" };
    const answer = await call("PATCH", `/v2/parcels/${hash}`, update);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ ...parcels[0], ...update, updatedAt: expect.any(String) });
    expect(await orderOf(reference)).toMatchObject({ totalWeight: 7.5, firstParcelLength: 10 });
  });

  test("updates at the same time lose nothing", async () => {
    const parcels = Array.from({ length: 40 }, () => ({ weightKg: 1 }));
    const { reference, parcels: made } = await created({ parcels });
    const answers = await Promise.all(
      made.map(({ hash }: { hash: string }, at: number) =>
        call("PATCH", `/v2/parcels/${hash}`, { weightKg: at + 1 }),
      ),
    );
    for (const { status } of answers) expect(status).toBe(200);
    expect((await orderOf(reference)).totalWeight).toBe(820);
  });
});

describe("201", () => {
  test("an array of the parcels; the order stands among the orders", async () => {
    const { reference, parcels } = await created({ orderDate: "2026-11-01T10:00:00+01:00" });
    expect(parcels.map(({ number }: { number: number }) => number)).toEqual([1, 2]);
    expect(await orderOf(reference)).toMatchObject({
      createdAt: "2026-11-01T10:00:00+01:00",
      totalWeight: 3.5,
      parcelsCount: 2,
      parcels: [
        { weight: 1.75, length: 10 },
        { weight: 1.75, length: null },
      ],
    });
  });

  test("100 parcels are answered at once", async () => {
    const { parcels } = await created({ parcels: Array(100).fill({ weightKg: 1 }) });
    expect(parcels).toHaveLength(100);
  });
});

describe("202", () => {
  test("more than 100 parcels: a job descriptor whose job tells the hashes", async () => {
    const body = creation({ parcels: Array(101).fill({ weightKg: 1 }) });
    const answer = await call("POST", "/v2/parcels", body);
    expect(answer.status).toBe(202);
    const { jobId, statusUrl } = answer.body;
    expect(answer.body).toMatchObject({ status: "processing", totalParcels: 101 });
    expect(statusUrl).toBe(`/jobs/${jobId}`);
    const job = await call("GET", `/v2${statusUrl}`);
    expect(job).toMatchObject({
      status: 200,
      body: { status: "completed", totalItems: 101, processedItems: 101, failedItems: 0 },
    });
    const [hash] = job.body.result.hashes;
    expect((await call("GET", `/v2/parcels/${hash}`)).status).toBe(200);
    const outlet = await api.token("key_acme_outlet");
    expect((await call("GET", `/v2${statusUrl}`, undefined, outlet)).status).toBe(404);
  });
});

describe("204", () => {
  test("all parcels of an order go, the order stays", async () => {
    const { reference, parcels } = await created();
    const answer = await call("DELETE", query(reference));
    expect([answer.status, answer.body]).toEqual([204, null]);
    expect((await call("GET", query(reference))).body.total).toBe(0);
    expect((await call("GET", `/v2/parcels/${parcels[0].hash}`)).status).toBe(404);
    expect(await orderOf(reference)).toMatchObject({ totalWeight: 0, parcelsCount: 0 });
  });

  test("one parcel goes, the others keep hash and number", async () => {
    const { reference, parcels } = await created();
    expect((await call("DELETE", `/v2/parcels/${parcels[0].hash}`)).status).toBe(204);
    const { items } = (await call("GET", query(reference))).body;
    expect(items).toEqual([parcels[1]]);
    expect(await orderOf(reference)).toMatchObject({ totalWeight: 2.5, firstParcelLength: null });
  });
});

describe("403", () => {
  test("the company does not own api-parcels", async () => {
    const beta = await api.token("key_beta_main");
    for (const [method, path] of [
      ["GET", query("x")],
      ["POST", "/v2/parcels"],
      ["DELETE", query("x")],
      ["GET", "/v2/parcels/abc"],
      ["PATCH", "/v2/parcels/abc"],
      ["DELETE", "/v2/parcels/abc"],
    ] as const) {
      const body = method === "POST" || method === "PATCH" ? creation() : undefined;
      expect(await call(method, path, body, beta)).toMatchObject({
        status: 403,
        body: { code: "PRODUCT_NOT_OWNED" },
      });
    }
  });

  test.each([
    ["parcels:create", "POST", "/v2/parcels"],
    ["parcels:read", "GET", "/v2/parcels?orderReference=a&orderOrigin=b"],
    ["parcels:read", "GET", "/v2/parcels/abc"],
    ["parcels:update", "PATCH", "/v2/parcels/abc"],
    ["parcels:delete", "DELETE", "/v2/parcels/abc"],
    ["parcels:delete", "DELETE", "/v2/parcels?orderReference=a&orderOrigin=b"],
  ])("a key without %s: %s %s", async (scope, method, path) => {
    const without = await api.token(`key_${scope}`);
    const body = method === "POST" || method === "PATCH" ? creation() : undefined;
    expect(await call(method, path, body, without)).toMatchObject({
      status: 403,
      body: { code: "MISSING_SCOPE", message: `The token lacks the scope ${scope}.` },
    });
  });
});

describe("404", () => {
  test("missing and foreign hashes answer exactly the same", async () => {
    const { parcels } = await created();
    const outlet = await api.token("key_acme_outlet");
    for (const method of ["GET", "PATCH", "DELETE"]) {
      const body = method === "PATCH" ? { weightKg: 1 } : undefined;
      const missing = await call(method, "/v2/parcels/nothing", body);
      const foreign = await call(method, `/v2/parcels/${parcels[0].hash}`, body, outlet);
      expect(missing).toMatchObject({ status: 404, body: { code: "PARCEL_NOT_FOUND" } });
      expect(foreign).toMatchObject({ status: 404, body: missing.body });
    }
    expect((await call("GET", `/v2/parcels/${parcels[0].hash}`)).status).toBe(200);
  });

  test("deleting the parcels of an order that has none", async () => {
    const { reference } = await created();
    await call("DELETE", query(reference));
    expect((await call("DELETE", query(reference))).status).toBe(404);
    expect((await call("DELETE", query("nothing"))).status).toBe(404);
  });
});

describe("409", () => {
  test("an order with the same channel, origin and reference exists, from wherever it came", async () => {
    const { reference } = await created();
    const again = await call("POST", "/v2/parcels", creation({ orderReference: reference }));
    expect(again).toMatchObject({ status: 409, body: { code: "ORDER_EXISTS" } });
    const setup = creation({ orderReference: "setup-1", orderOrigin: "shopify" });
    expect((await call("POST", "/v2/parcels", setup)).status).toBe(409);
    const outlet = await api.token("key_acme_outlet");
    const elsewhere = creation({ orderReference: reference });
    expect((await call("POST", "/v2/parcels", elsewhere, outlet)).status).toBe(201);
  });

  test("ten creations at once: one is 201, the others 409", async () => {
    const body = creation();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => call("POST", "/v2/parcels", body)),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([201, ...Array(9).fill(409)]);
  });
});

describe("limits", () => {
  test("a reference of 50 characters counts them, not the units of UTF-16", async () => {
    const { status } = await call("GET", query(encodeURIComponent("📦".repeat(50))));
    expect(status).toBe(200);
  });

  test("parcels of 1,000,000 kg and cm are taken, and their sum is a number", async () => {
    const heavy = { weightKg: 1_000_000, lengthCm: 1_000_000 };
    const { reference } = await created({ parcels: [heavy, heavy] });
    expect((await orderOf(reference)).totalWeight).toBe(2_000_000);
  });
});

describe("422", () => {
  test.each([
    ["no order", "/v2/parcels", ["orderReference REQUIRED", "orderOrigin REQUIRED"]],
    ["page 0", query("a", "&page=0"), ["page OUT_OF_RANGE"]],
    ["limit 101", query("a", "&limit=101"), ["limit OUT_OF_RANGE"]],
    ["limit x", query("a", "&limit=x"), ["limit WRONG_TYPE"]],
    ["page beyond the last possible", query("a", "&page=1000000001"), ["page OUT_OF_RANGE"]],
    ["a reference twice", query("a", "&orderReference=b"), ["orderReference TOO_MANY"]],
    ["a reference of 51 characters", query("x".repeat(51)), ["orderReference TOO_LONG"]],
  ])("query: %s", async (_, path, violations) => {
    const { status, body } = await call("GET", path);
    expect(status).toBe(422);
    const reported = body.violations.map(
      (one: { path: string; code: string }) => `${one.path} ${one.code}`,
    );
    expect(reported).toEqual(violations);
  });

  test.each([
    ["no parcels", creation({ parcels: [] }), "parcels TOO_FEW"],
    [
      "too many parcels",
      creation({ parcels: Array(1001).fill({ weightKg: 1 }) }),
      "parcels TOO_MANY",
    ],
    ["no weight", creation({ parcels: [{}] }), "parcels[0].weightKg REQUIRED"],
    [
      "a long country",
      creation({ parcels: [{ weightKg: 1, originCountryIso: "ITA" }] }),
      "parcels[0].originCountryIso BAD_FORMAT",
    ],
    ["an unknown origin", creation({ orderOrigin: "elsewhere" }), "orderOrigin NOT_ALLOWED"],
    [
      "a weight over 1,000,000 kg",
      creation({ parcels: [{ weightKg: 1_000_000.001 }] }),
      "parcels[0].weightKg OUT_OF_RANGE",
    ],
    [
      "a length over 1,000,000 cm",
      creation({ parcels: [{ weightKg: 1, lengthCm: 1_000_000.001 }] }),
      "parcels[0].lengthCm OUT_OF_RANGE",
    ],
  ])("creation: %s", async (_, body, violation) => {
    const answer = await call("POST", "/v2/parcels", body);
    expect(answer.status).toBe(422);
    const [first] = answer.body.violations;
    expect(`${first.path} ${first.code}`).toBe(violation);
  });

  test("an update without a field, and one with a bad value", async () => {
    const { parcels } = await created();
    const path = `/v2/parcels/${parcels[0].hash}`;
    expect((await call("PATCH", path, {})).status).toBe(422);
    expect((await call("PATCH", path, { unknown: 1 })).status).toBe(422);
    expect((await call("PATCH", path, { weightKg: 0 })).status).toBe(422);
  });
});

/** Errors and warnings about typing mistakes: allowed values, unknown members and unknown parameters. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { WARNINGS_LISTED } from "#core/platform/schema/unknown-members.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";

let api: TestApi;
let token: string;

beforeAll(async () => {
  const setup = testSetup();
  const [acme] = setup.companies ?? [];
  const [main] = acme?.channels?.[0]?.apiKeys ?? [];
  Object.assign(acme ?? {}, { products: ["api-parcels"] });
  main?.scopes?.push("parcels:create", "parcels:read", "parcels:update");
  api = await openTestApi(setup);
  token = await api.token("key_acme_main");
});
afterAll(() => api.end());

const post = (path: string, body: unknown) => api.call("POST", path, { token, body });
const get = (path: string) => api.call("GET", path, { token });
const codes = (rows: readonly { readonly code: string }[]) => rows.map(({ code }) => code);

describe("GET /v2/channel", () => {
  test("answers the couriers, boxes, platforms, languages, details, scopes and limits of the key", async () => {
    const { status, body } = await get("/v2/channel");
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual([
      ...["code", "name", "couriers", "boxes", "platforms", "languages"],
      ...["statusDetails", "scopes", "limits"],
    ]);
    const gls = { code: "GLS_ITA", name: "GLS Italy", labelFormats: [] };
    expect(body.couriers.find(({ code }: { code: string }) => code === "GLS_ITA")).toMatchObject(
      gls,
    );
    expect(body.scopes).toContain("shipments:write");
    expect(body.limits).toMatchObject({ shipmentsPerCreate: 100, shipmentsPerImport: 5_000 });
  });

  test("what it answers is what a creation takes, and the carriers of labels say their format", async () => {
    const { body } = await get("/v2/channel");
    const [box] = codes(body.boxes);
    for (const { code, transcodings } of body.couriers) {
      if (code === "GENERIC") continue;
      for (const [at, courier] of [code, ...transcodings].entries()) {
        const parcels = [{ weight: 1, boxCode: box }];
        const members = { courier, parcels, origin: body.platforms[0], language: "de" };
        const created = await post("/v2/shipments", {
          shipments: [item(`TYPO-${code}-${at}`, members)],
        });
        expect(created.status).toBe(201);
      }
    }
  });
});

test("errors of names say the value, the allowed ones and the nearest", async () => {
  const { body } = await post("/v2/shipments", {
    shipments: [
      item("TYPO-1", {
        courier: "GSL_ITA",
        language: "itt",
        origin: "shopfy",
        parcels: Array.from({ length: 7 }, () => ({ weight: 1, boxCode: "SS" })),
      }),
    ],
  });
  const [{ errors }] = body.items;
  const of = (code: string) => errors.filter((one: { code: string }) => one.code === code);
  expect(of("INVALID_COURIER")[0].message).toStartWith(
    'The courier "GSL_ITA" is not known. Did you mean GLS_ITA? Allowed: ',
  );
  expect(of("INVALID_LANGUAGE")[0].message).toInclude("Did you mean it? Allowed: it, en, de,");
  expect(of("INVALID_ORIGIN")[0].message).toStartWith(
    'The origin "shopfy" is not in the platform registry. Did you mean shopify? Allowed: shopify',
  );
  // Beyond five the list is not repeated.
  const boxes = of("INVALID_BOX_CODE").map(({ message }: { message: string }) => message);
  expect(boxes).toHaveLength(7);
  expect(boxes.filter((message: string) => message.includes("Allowed: "))).toHaveLength(5);
  for (const message of boxes) expect(message).toInclude('"SS"');
});

describe("unknown members are accepted and reported", () => {
  test("of a creation, at any depth, with the nearest name; without one there are no warnings", async () => {
    const shipment = item("TYPO-2", {
      orderReferance: "1001",
      consignee: { name: "Mario", zipcode: "00184" },
      parcels: [{ weight: 1, length: 1, width: 1, heigth: 1, height: 1 }],
    });
    const { status, body } = await post("/v2/shipments", { shipments: [shipment], webhook: 1 });
    expect(status).toBe(201);
    const unknown = (path: string, nearest: string | null) => {
      return { path, code: "UNKNOWN_MEMBER", nearest };
    };
    expect(body.warnings).toEqual([
      unknown("webhook", null),
      unknown("shipments[0].orderReferance", "orderReference"),
      unknown("shipments[0].consignee.zipcode", null),
      unknown("shipments[0].parcels[0].heigth", "height"),
    ]);
    const plain = await post("/v2/shipments", { shipments: [item("TYPO-3")] });
    expect(plain.body).not.toContainKey("warnings");
  });

  test(`at most ${WARNINGS_LISTED} of them`, async () => {
    const members = Object.fromEntries(
      Array.from({ length: WARNINGS_LISTED + 1 }, (_, at) => [`zz${at}`, at]),
    );
    const { body } = await post("/v2/shipments", { shipments: [item("TYPO-4", members)] });
    expect(body.warnings).toHaveLength(WARNINGS_LISTED);
  });

  test("of an import, in the answer and in the job, also beside a large list", async () => {
    const shipments = Array.from({ length: 1_000 }, (_, at) =>
      item(`TYPO-I-${at}`, { note: "x".repeat(200), ...(at === 700 && { tags: "a" }) }),
    );
    const accepted = await post("/v2/shipments/import", { shipments, webhookURL: "" });
    expect(accepted.status).toBe(202);
    const warnings = [
      { path: "shipments[700].tags", code: "UNKNOWN_MEMBER", nearest: "tag" },
      { path: "webhookURL", code: "UNKNOWN_MEMBER", nearest: "webhookUrl" },
    ];
    expect(accepted.body.warnings).toEqual(warnings);
    const job = await get(`/v2/jobs/${accepted.body.jobId}`);
    expect(job.body.warnings).toEqual(warnings);
  });

  test("of changes; in a header where the answer is a list", async () => {
    const order = { orderOrigin: "shopify", orderReference: "TYPO-5" };
    const parcels = [{ weightKg: 1, lenghtCm: 2, größe: 1 }];
    const created = await post("/v2/parcels", { ...order, parcels });
    expect(created.status).toBe(201);
    expect(JSON.parse(created.headers.get("x-warnings") ?? "")).toEqual([
      { path: "parcels[0].lenghtCm", code: "UNKNOWN_MEMBER", nearest: "lengthCm" },
      { path: "parcels[0].größe", code: "UNKNOWN_MEMBER", nearest: null },
    ]);
    const path = `/v2/parcels/${created.body[0].hash}`;
    const changed = await api.call("PATCH", path, { token, body: { weightKg: 2, weight: 3 } });
    expect(changed.body.warnings).toEqual([
      { path: "weight", code: "UNKNOWN_MEMBER", nearest: "weightKg" },
    ]);
    expect((await get(path)).body).not.toContainKey("warnings");
  });
});

describe("unknown query parameters are refused", () => {
  test.each([
    ["trackingNo=AB1", "trackingNo", "trackingNumber"],
    ["status[]=DELIVERED", "status[]", "status"],
    ["page=1&Limit=5", "Limit", "limit"],
    ["q=AB1", "q", null],
  ])("?%s", async (query, parameter, nearest) => {
    const { status, headers, body } = await get(`/v2/shipments?${query}`);
    expect(status).toBe(422);
    expect(headers.get("content-type")).toBe("application/problem+json");
    const violation = { path: parameter, code: "UNKNOWN_PARAMETER", nearest };
    expect(body).toMatchObject({ code: "UNKNOWN_PARAMETER", parameter, nearest });
    expect(body.violations).toMatchObject([violation]);
  });

  test("of calls without parameters too, and nothing is done", async () => {
    const answer = await api.call("POST", "/v2/shipments?dryRun=1", {
      token,
      body: { shipments: [item("TYPO-6")] },
    });
    expect(answer.body).toMatchObject({ code: "UNKNOWN_PARAMETER", nearest: null });
    expect((await get("/v2/shipments?trackingNumber=TYPO-6")).body.total).toBe(0);
    expect((await get("/v2/orders/1?refrence=1")).status).toBe(422);
  });
});

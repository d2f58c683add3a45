/** `GET /v2/openapi.json`: valid, complete, and its examples are what its schemas say. */
import { afterAll, describe, expect, test } from "bun:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { MERCHANT_API } from "#api/openapi.ts";
import { claimRelease } from "#core/merchants/store/stock-releases.ts";
import { errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { EXTENSION } from "#core/platform/openapi/document.ts";
import { namedComponents, publishedSchema } from "#core/platform/schema/published-schema.ts";
import { OFFSET_DATE_TIME } from "#core/platform/time/rome-time.ts";
import { typesOf, UNKNOWN_TYPE } from "#test/client-types/generate.ts";
import { answerChecker } from "#test/support/clients/described-answers.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { type Answer, openTestApi } from "#test/support/product/api.ts";

const api = await openTestApi(testSetup());
const { call, operations } = api;
afterAll(() => api.end());

/** What describes the API is no part of it. */
const isReference = (path: string) =>
  /^\/v2\/(openapi\.json|errors|errors\.json|docs(\/.*)?|(examples|clients)\/.*)$/.test(path);

describe("the document", () => {
  test("is served without a token and says OpenAPI 3.1", async () => {
    const answer = await call("GET", "/v2/openapi.json");
    expect(answer).toMatchObject({ status: 200, body: { openapi: "3.1.0" } });
    expect(answer.headers.get("content-type")).toContain("application/json");
  });

  test("has no fault and no warning by Redocly's recommended rules, examples included", async () => {
    const { body } = await call("GET", "/v2/openapi.json");
    const rules = {
      "no-invalid-media-type-examples": "error",
      "no-invalid-parameter-examples": "error",
      "no-invalid-schema-examples": "error",
    } as const;
    const config = await createConfig({ extends: ["recommended"], rules });
    const problems = await lintFromString({ source: JSON.stringify(body), config });
    const reported = problems.map(
      ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ""}`,
    );
    expect(reported).toEqual([]);
  });

  test("describes every route of /v2, and no other", () => {
    const routes = api.routes
      .filter(({ path }) => path.startsWith("/v2/") && !isReference(path))
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
    const described = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(described.sort()).toEqual(routes.sort());
  });

  test("the search says how to miss no change", async () => {
    const { body } = await call("GET", "/v2/openapi.json");
    const { description, parameters } = body.paths["/v2/shipments"].get;
    for (const step of ["`sortBy=updatedAt_asc`", "`limit=100`", "fewer than 100", "by `id`"]) {
      expect(description).toContain(step);
    }
    const updatedAfter = parameters.find(({ name }: { name: string }) => name === "updatedAfter");
    expect(updatedAfter.description).toContain("none that never changed");
  });

  test("descriptions say what no schema can: templates, weights of the index, nulls, where a job is", async () => {
    const { body } = await call("GET", "/v2/openapi.json");
    const said = (path: string, method: string) => body.paths[path][method].description;
    expect(said("/v2/shipments/{id}/notifications", "post")).toContain("(fallback, English)");
    expect(said("/v2/shipments/import", "post")).toContain("VALIDATION_ERROR");
    expect(said("/v2/couriers/efficiency-index", "post")).toContain("0.2 consistency");
    expect(said("/v2/sandbox/{id}", "patch")).toContain("except `dateTimeValue`");
    for (const name of ["AcceptedImport", "AcceptedParcels"]) {
      const { statusUrl } = body.components.schemas[name].properties;
      expect(statusUrl.description).toBe("relative to /v2");
    }
  });

  test("every body and answer is a named component, and every name is used", () => {
    const { schemas } = api.document.components;
    expect(Object.keys(schemas).sort()).toEqual(Object.keys(MERCHANT_API.components).sort());
    for (const name of ["ShipmentSummary", "Consignee", "Parcel", "Status", "NewShipment"]) {
      expect(Object.keys(schemas)).toContain(name);
    }
    const contents = Object.values(api.document.paths).flatMap((path) =>
      [...JSON.stringify(path).matchAll(/"schema":(\{"[^}]*\})/g)].map(([, text = ""]) => text),
    );
    const written = contents.filter((text) => text.includes('"properties"'));
    expect(written).toEqual([]);
  });

  test("types that are generated from it know every member", async () => {
    expect(await typesOf(api.document)).not.toMatch(UNKNOWN_TYPE);
  });

  test("what it adds to the API's documents is marked", () => {
    const { paths, components } = api.document;
    const marked = Object.entries(paths).flatMap(([path, methods]) =>
      Object.values(methods).flatMap((one) =>
        JSON.stringify(one).includes(EXTENSION) ? path : [],
      ),
    );
    expect(marked.sort()).toEqual([
      "/v2/channel",
      "/v2/couriers/on-time",
      "/v2/labels",
      "/v2/labels/transmissions/{id}",
      "/v2/labels/{id}",
      "/v2/labels/{id}",
      "/v2/shipments/{id}",
      "/v2/shipments/{id}/notifications/{notificationId}",
      "/v2/shipments/{id}/stock-releases/{releaseId}",
    ]);
    expect(components.schemas["ShipmentDetail"]).toMatchObject({
      properties: { newTrackingNumbers: { [EXTENSION]: true } },
    });
  });

  test("one name stands for one schema", () => {
    const one = Type.Object({ a: Type.Optional(Type.String()) });
    expect(() => namedComponents({ One: one, Other: one })).toThrow("the same schema");
    const components = namedComponents({ One: one });
    publishedSchema(one, { components });
    expect(() => publishedSchema(one, { components, nullIsAbsent: true })).toThrow("One");
  });

  test("every error of the catalogue is an answer of some call, or of paths that do not exist", () => {
    const listed = new Set(
      [...JSON.stringify(api.document).matchAll(/"x-codes":(\[[^\]]*\])/g)].flatMap(
        ([, codes = "[]"]): string[] => JSON.parse(codes),
      ),
    );
    const missing = errorsOf("merchant")
      .map(({ code }) => code)
      .filter((code) => !listed.has(code));
    expect(missing.sort()).toEqual([
      "METHOD_NOT_ALLOWED",
      "METRICS_ELSEWHERE",
      "NOT_FOUND",
      "UNAUTHORIZED",
    ]);
  });
});

describe("schemas of bodies", () => {
  test("say what the readers do: an optional member may be null, a required one may not", () => {
    const schema = publishedSchema(
      Type.Object({
        a: Type.String({ maxLength: 5 }),
        b: Type.Optional(Type.String({ format: "calendar-date" })),
        c: Type.Optional(Type.Union([Type.Literal("x"), Type.Literal("y")])),
        d: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
        e: Type.Optional(Type.Array(Type.Object({ f: Type.Optional(Type.Boolean()) }))),
        g: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
      }),
      { nullIsAbsent: true },
    );
    const f = { type: ["boolean", "null"] };
    expect(schema).toMatchObject({
      required: ["a"],
      properties: {
        a: { type: "string", maxLength: 5 },
        b: { type: ["string", "null"], format: "date" },
        c: { type: ["string", "null"], enum: ["x", "y", null] },
        d: { type: ["number", "null"] },
        e: { type: ["array", "null"], items: { properties: { f } } },
        g: { anyOf: [{ type: "string" }, { type: "integer" }, { type: "null" }] },
      },
    });
  });

  test("say the form of an instant, its years and its offset", () => {
    const instant = publishedSchema(Type.String({ format: "offset-date-time" }));
    expect(instant).toMatchObject({ type: "string", pattern: `^${OFFSET_DATE_TIME}$` });
  });
});

describe("what the API answers is what its schemas say", () => {
  // `call` compares every answer with the document, here and in all other tests of the merchant API.
  test("every operation, with the answer it is called for", async () => {
    const own = await openTestApi(everythingSetup());
    const token = await own.token("key_acme_main");
    const routeOf = (id: string) => own.operations.find(({ operation }) => operation.id === id);
    const example = (id: string) => routeOf(id)?.operation.body?.example;
    const answers: Ask = async (id, path, body = undefined) => {
      const { method = "", operation } = routeOf(id) ?? {};
      const options = { token, ...(body !== undefined && { body }) };
      const answer = await own.call(method.toUpperCase(), path, options);
      if (operation?.answers?.[304]) {
        await own.call("GET", path, { token, headers: { "if-none-match": "*" } });
      }
      return answer.body;
    };

    const { id, notificationId } = await askForShipments(answers);
    await askForParcels(answers, example("createParcels"));
    const { labelId, transmissionId } = await askForLabels(answers);
    const asked = { action: "redeliver", redeliveryDate: null, digest: "x", askedAtMs: 0 };
    const { releaseId } = await claimRelease(own.runtime.redis, id, asked, 1_000);
    await answers("readChannel", "/v2/channel");
    await answers("searchShipments", "/v2/shipments");
    await answers("readShipment", `/v2/shipments/${id}`);
    await answers("correctShipment", `/v2/shipments/${id}`, example("correctShipment"));
    await answers("readStockRelease", `/v2/shipments/${id}/stock-releases/${releaseId}`);
    await answers("readNotification", `/v2/shipments/${id}/notifications/${notificationId}`);
    await answers("listLabels", "/v2/labels");
    await answers("readLabel", `/v2/labels/${labelId}`);
    await answers("readTransmission", `/v2/labels/transmissions/${transmissionId}`);
    await answers("checkAddress", "/v2/addresses/check", example("checkAddress"));
    await askForBenchmarks(answers, example);
    await answers("readSandboxEntity", "/v2/sandbox/1");
    await answers("replaceSandboxEntity", "/v2/sandbox/1", example("replaceSandboxEntity"));
    await answers("updateSandboxEntity", "/v2/sandbox/1", example("updateSandboxEntity"));
    await answers("deleteSandboxEntity", "/v2/sandbox/1");

    const possible = own.operations.flatMap(({ operation }) =>
      Object.keys(operation.answers ?? {}).map((status) => `${operation.id} ${status}`),
    );
    const unseen = possible.filter((answer) => !own.seen.has(answer));
    // Those take a parcel held in depot and a network of deliveries: `api-stock-release.test.ts`, `api-delivery-times.test.ts`,
    // `api-efficiency-index.test.ts` and `api-promise.test.ts` ask for them, with the same comparison.
    expect(unseen).toEqual([
      ...["releaseStock 200", "readDeliveryTimes 200", "readEfficiencyIndex 200", "readOnTime 200"],
      "promiseDelivery 200",
    ]);
    await own.end();
  }, 300_000);

  test("an answer that the document does not describe fails the test that asked for it", () => {
    const { check } = answerChecker(api.routes, MERCHANT_API);
    const headers = new Headers({ "content-type": "application/json", "x-request-id": "1" });
    const answer = { method: "GET", path: "/v2/jobs/1", status: 404, headers };
    const body = { status: 404, code: "JOB_NOT_FOUND", message: "m", requestId: "1" };
    expect(() => check({ ...answer, body })).not.toThrow();
    expect(() => check({ ...answer, body: { ...body, more: 1 } })).toThrow("additional");
    expect(() => check({ ...answer, body: { ...body, code: "ORDER_NOT_FOUND" } })).toThrow("code");
    expect(() => check({ ...answer, status: 409, body })).toThrow("no such status");
  });
});

describe("every example is what its schema says", () => {
  for (const { operation } of operations) {
    test(`${operation.id}`, () => {
      const { body, answers = {}, parameters = [] } = operation;
      const contents = [
        ...(body ? [body] : []),
        ...Object.values(answers).flatMap(({ content }) => (content ? [content] : [])),
        ...parameters,
      ];
      for (const { schema, example } of contents) {
        expect(
          [...Value.Errors(schema, example)].map(({ path, message }) => `${path} ${message}`),
        ).toEqual([]);
      }
    });
  }
});

/** Calls an operation and returns the body of its answer. */
type Ask = (operationId: string, path: string, body?: unknown) => Promise<Json>;
type Json = Answer["body"];

/** A company that may use every operation. */
function everythingSetup() {
  const setup = labelSetup();
  const [acme] = setup.companies ?? [];
  Object.assign(acme ?? {}, { products: ["api-parcels", "checkAddress"] });
  const [channel] = acme?.channels ?? [];
  const sandbox = [{ id: 1, stringValue: "a" }];
  const template = { event: "review-request", language: "it", subject: "S", body: "B" };
  const emails = { managed: true, from: "shop@example.test", templates: [template] };
  Object.assign(channel ?? {}, { addressCheck: true, sandbox, emails });
  return setup;
}

/** @returns ids of a shipment and of a notification about it */
async function askForShipments(answers: Ask): Promise<Json> {
  const shipment = (trackingNumber: string, courier = "GLS_ITA") => ({
    trackingNumber,
    courier,
    shipDate: "2026-11-20",
    consignee: { email: "rossi@example.test" },
  });
  const created = await answers("createShipments", "/v2/shipments", {
    shipments: [shipment("A1")],
  });
  await answers("createShipments", "/v2/shipments", {
    shipments: [shipment("A2"), shipment("A3", "NOBODY")],
  });
  const [{ id }] = created.items;
  await answers("releaseStock", `/v2/shipments/${id}/stock-release`, { action: "redeliver" });
  const { notificationId } = await answers("notifyRecipient", `/v2/shipments/${id}/notifications`, {
    event: "review-request",
  });
  const imported = await answers("importShipments", "/v2/shipments/import", {
    shipments: [shipment("A4")],
  });
  await answers("readJob", `/v2/jobs/${imported.jobId}`);
  return { id, notificationId };
}

async function askForParcels(answers: Ask, example: unknown): Promise<void> {
  const [parcel] = await answers("createParcels", "/v2/parcels", example);
  const many = Array.from({ length: 101 }, () => ({ weightKg: 1 }));
  const job = await answers("createParcels", "/v2/parcels", {
    orderReference: "many",
    orderOrigin: "shopify",
    parcels: many,
  });
  await answers("readJob", `/v2/jobs/${job.jobId}`);
  const ofOrder = "?orderReference=1002&orderOrigin=shopify";
  await answers("listParcels", `/v2/parcels${ofOrder}`);
  await answers("readParcel", `/v2/parcels/${parcel.hash}`);
  await answers("updateParcel", `/v2/parcels/${parcel.hash}`, { weightKg: 2 });
  const [order] = await answers("listOrders", "/v2/orders");
  await answers("readOrder", `/v2/orders/${order.id}`);
  await answers("deleteParcel", `/v2/parcels/${parcel.hash}`);
  await answers("deleteParcels", "/v2/parcels?orderReference=many&orderOrigin=shopify");
}

/** @returns ids of a label and of its transmission */
async function askForLabels(answers: Ask): Promise<Json> {
  const request = labelBody();
  const label = await answers("createLabel", "/v2/labels", request);
  await answers("createLabel", "/v2/labels", request);
  await answers("createLabel", "/v2/labels", { ...labelBody(), courier: "NOBODY" });
  const other = await answers("createLabel", "/v2/labels", labelBody());
  await answers("voidLabel", `/v2/labels/${other.id}`);
  const confirmation = { courier: "GENERIC", labelIds: [label.id] };
  await answers("confirmLabels", "/v2/labels/confirm", confirmation);
  const { transmissions } = await answers("confirmLabels", "/v2/labels/confirm", confirmation);
  return { labelId: label.id, transmissionId: transmissions[0].transmissionId };
}

async function askForBenchmarks(answers: Ask, example: (id: string) => unknown): Promise<void> {
  for (const name of ["delivery-times", "efficiency-index"]) {
    const operation = name === "delivery-times" ? "readDeliveryTimes" : "readEfficiencyIndex";
    await answers(operation, `/v2/couriers/${name}`, example(operation));
    await answers(operation, `/v2/couriers/${name}`, { destCap: "00184", detail: "full" });
  }
  await answers("promiseDelivery", "/v2/couriers/promise", example("promiseDelivery"));
}

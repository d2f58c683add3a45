/** `GET /v2/openapi.json`: valid, complete, and its examples are what its schemas say. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import { OPERATIONS } from "#api/openapi/document.ts";
import { publishedSchema } from "#core/domain/schema/published-schema.ts";
import { OFFSET_DATE_TIME } from "#core/domain/time/rome-time.ts";
import { type Call, openTestApi, type TestApi } from "#test/support/api.ts";
import { labelBody, labelSetup } from "#test/support/label-setup.ts";
import { testSetup } from "#test/support/setup.ts";

let api: TestApi;
let call: Call;

beforeAll(async () => {
  api = await openTestApi(testSetup());
  call = api.call;
});
afterAll(() => api.end());

/** What describes the API is no part of it. */
const REFERENCE = ["/v2/openapi.json", "/v2/errors", "/v2/errors.json"];

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

  test("describes every route of /v2, and no other", async () => {
    const benchmarks = await openBenchmarks(api.runtime.config);
    const app = createApiApp({ ...api.runtime, benchmarks });
    await benchmarks.close();
    const routes = app.routes
      .filter(({ path }) => path.startsWith("/v2/") && !REFERENCE.includes(path))
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
    const described = OPERATIONS.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
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

  test("one name stands for one schema", () => {
    const byName = new Map<string, unknown>();
    for (const { body, answers } of OPERATIONS) {
      const contents = [body, ...Object.values(answers).map(({ content }) => content)];
      for (const content of contents.filter((one) => one !== undefined)) {
        expect(byName.get(content.name) ?? content.schema).toBe(content.schema);
        byName.set(content.name, content.schema);
      }
    }
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
      }),
      { nullIsAbsent: true },
    );
    const nil = { type: "null" };
    const f = { anyOf: [{ type: "boolean" }, nil] };
    expect(schema).toMatchObject({
      required: ["a"],
      properties: {
        a: { type: "string", maxLength: 5 },
        b: { anyOf: [{ type: "string", format: "date" }, nil] },
        c: { anyOf: [{ const: "x" }, { const: "y" }, nil] },
        d: { anyOf: [{ type: "number" }, nil] },
        e: { anyOf: [{ type: "array", items: { properties: { f } } }, nil] },
      },
    });
  });

  test("say the form of an instant, its years and its offset", () => {
    const instant = publishedSchema(Type.String({ format: "offset-date-time" }));
    expect(instant).toMatchObject({ type: "string", pattern: `^${OFFSET_DATE_TIME}$` });
  });
});

describe("what the API answers is what its schemas say", () => {
  test("orders, parcels, labels, confirmations, address checks", async () => {
    const setup = labelSetup();
    const [acme] = setup.companies ?? [];
    Object.assign(acme ?? {}, { products: ["api-parcels", "checkAddress"] });
    Object.assign(acme?.channels?.[0] ?? {}, { addressCheck: true });
    const own = await openTestApi(setup);
    const token = await own.token("key_acme_main");

    async function answers(id: string, path: string, body?: unknown) {
      const operation = OPERATIONS.find((one) => one.id === id);
      const method = operation?.method.toUpperCase() ?? "";
      const answer = await own.call(method, path, { token, ...(body !== undefined && { body }) });
      const content = operation?.answers[answer.status]?.content;
      expect(content).toBeDefined();
      expect(content && [...Value.Errors(content.schema, answer.body)]).toEqual([]);
      return answer.body;
    }

    const example = (id: string) => OPERATIONS.find((one) => one.id === id)?.body?.example;
    const [parcel] = await answers("createParcels", "/v2/parcels", example("createParcels"));
    await answers("updateParcel", `/v2/parcels/${parcel.hash}`, { weightKg: 2 });
    await answers("listParcels", "/v2/parcels?orderReference=1002&orderOrigin=shopify");
    const [order] = await answers("listOrders", "/v2/orders");
    await answers("readOrder", `/v2/orders/${order.id}`);
    const label = await answers("createLabel", "/v2/labels", labelBody());
    await answers("createLabel", "/v2/labels", { ...labelBody(), courier: "NOBODY" });
    const confirmation = { courier: "GENERIC", labelIds: [label.id] };
    await answers("confirmLabels", "/v2/labels/confirm", confirmation);
    await answers("confirmLabels", "/v2/labels/confirm", confirmation);
    await answers("checkAddress", "/v2/addresses/check", example("checkAddress"));
    await own.end();
  });
});

describe("every example is what its schema says", () => {
  for (const { id, body, answers, parameters = [] } of OPERATIONS) {
    test(id, () => {
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

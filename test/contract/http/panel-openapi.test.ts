/** `GET /panel/api/openapi.json`: valid and complete; what is answered is compared with it wherever tests call the panel. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { type Insights, openInsights } from "#analytics/insights.ts";
import { errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { openApiDocument } from "#core/platform/openapi/document.ts";
import { LOGIN_LIMIT_BYTES } from "#panel/server/accounts/session.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { TEMPLATE_BODY_BYTES } from "#panel/server/companies/templates.ts";
import { CSV_FILE_BYTES } from "#panel/server/http/csv-file.ts";
import { ORDERS_BODY_BYTES, PANEL_BODY_BYTES } from "#panel/server/http/read-json.ts";
import { PANEL_API } from "#panel/server/openapi.ts";
import { ENTRY_BODY_BYTES } from "#panel/server/setup/apply-entry.ts";
import { typesOf, UNKNOWN_TYPE } from "#test/client-types/generate.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

interface WithBody {
  readonly requestBody: { readonly description: string };
}

let runtime: TestRuntime;
let benchmarks: Benchmarks;
let insights: Insights;
let app: ReturnType<typeof createPanelApp>;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  });
  benchmarks = await openBenchmarks(runtime.config);
  insights = openInsights(runtime.config);
  app = createPanelApp(runtime, benchmarks, insights);
});
afterAll(async () => {
  await Promise.all([benchmarks.close(), insights.close()]);
  await runtime.end();
});

const read = (path: string) => app.handle(new Request(`http://localhost${path}`));
const document = () => openApiDocument(app.routes, PANEL_API);

describe("the panel's OpenAPI document", () => {
  test("needs no credentials, and says OpenAPI 3.1", async () => {
    const answer = await read("/panel/api/openapi.json");
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual(JSON.parse(JSON.stringify(document())));
  });

  test("has no fault and no warning by Redocly's recommended rules, examples included", async () => {
    const rules = {
      "no-invalid-media-type-examples": "error",
      "no-invalid-parameter-examples": "error",
      "no-invalid-schema-examples": "error",
    } as const;
    const config = await createConfig({ extends: ["recommended"], rules });
    const problems = await lintFromString({ source: JSON.stringify(document()), config });
    expect(problems.map(({ ruleId, location }) => [ruleId, location[0]?.pointer])).toEqual([]);
  });

  test("describes every call, and what it answers when it succeeds", () => {
    const described = Object.entries(document().paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const calls = app.routes
      .filter(({ path }) => path.startsWith("/panel/api/") && path !== "/panel/api/openapi.json")
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
    expect(calls.filter((call) => !described.includes(call))).toEqual([]);
    expect(calls.length).toBeGreaterThan(70);
  });

  test("types that are generated from it know every member", async () => {
    expect(await typesOf(document())).not.toMatch(UNKNOWN_TYPE);
  });

  test("every body and answer that has members is a named component", () => {
    const schemas = [...JSON.stringify(document().paths).matchAll(/"schema":(\{"[^}]*\})/g)];
    const written = schemas.map(([, text = ""]) => text);
    expect(written.filter((text) => text.includes('"properties"'))).toEqual([]);
    const names = Object.keys(document().components.schemas);
    for (const name of Object.keys(PANEL_API.components)) expect(names).toContain(name);
  });

  test("every error of the catalogue is an answer of some call, or of paths that do not exist", () => {
    const codes = [...JSON.stringify(document()).matchAll(/"x-codes":(\[[^\]]*\])/g)];
    const listed = new Set(codes.flatMap(([, text = "[]"]): string[] => JSON.parse(text)));
    const missing = errorsOf("operator").map(({ code }) => code);
    expect(missing.filter((code) => !listed.has(code)).sort()).toEqual([
      "METHOD_NOT_ALLOWED",
      "METRICS_ELSEWHERE",
      "NOT_FOUND",
      "UNAUTHORIZED",
    ]);
  });

  test("a call lists 404 with the code of what its path names, 403 and 401", () => {
    const { paths } = document() as unknown as Record<string, Record<string, Record<string, Told>>>;
    const responses = paths?.["/panel/api/couriers/{code}/tokens"]?.["post"]?.responses;
    expect(responses?.[404]?.["x-codes"]).toEqual(["COURIER_NOT_FOUND"]);
    expect(responses?.[403]?.["x-codes"]).toEqual(["FORBIDDEN", "CROSS_SITE"]);
    expect(responses?.[409]?.["x-codes"]).toEqual([
      ...["TOO_MANY_ISSUED", "IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_KEY_IN_USE"],
    ]);
    expect(responses?.[429]?.["x-codes"]).toContain("TOO_MANY_IDEMPOTENCY_KEYS");
  });

  test("says of a body what its call takes: one byte more is 413 with the same words", async () => {
    const { paths } = document() as unknown as { paths: Record<string, Record<string, WithBody>> };
    const said = (method: string, path: string) =>
      paths[path]?.[method]?.requestBody.description ?? "";
    const calls = [
      ["post", "/couriers/{code}/catalogue/import", CSV_FILE_BYTES],
      ["post", "/couriers/{code}/comparison", CSV_FILE_BYTES],
      ["post", "/channels/{channelCode}/orders", ORDERS_BODY_BYTES],
      ["put", "/channels/{channelCode}/templates/{event}/{language}", TEMPLATE_BODY_BYTES],
      ["post", "/channels/{channelCode}/templates/preview", TEMPLATE_BODY_BYTES],
      ["post", "/channels/{channelCode}/templates/test", TEMPLATE_BODY_BYTES],
      ["post", "/session", LOGIN_LIMIT_BYTES],
      ["post", "/password-reset", LOGIN_LIMIT_BYTES],
      ["put", "/channels/{channelCode}/rate-limit", PANEL_BODY_BYTES],
      ["patch", "/channels/{channelCode}", ENTRY_BODY_BYTES],
    ] as const;
    const named = { "{code}": "GLS_ITA", "{channelCode}": "acme-it", "{event}": "hello" };
    for (const [method, path, bytes] of calls) {
      expect([path, said(method, `/panel/api${path}`)]).toEqual([path, `At most ${bytes} bytes.`]);
      const url = Object.entries({ ...named, "{language}": "it" }).reduce(
        (text, [name, value]) => text.replace(name, value),
        `http://localhost/panel/api${path}`,
      );
      const answer = await app.handle(
        new Request(url, {
          method: method.toUpperCase(),
          headers: { authorization: `Bearer ${runtime.secrets.panelToken}` },
          body: new Uint8Array(bytes + 1).fill(0x20),
        }),
      );
      const { detail } = (await answer.json()) as { detail: string };
      expect([path, answer.status, detail]).toEqual([path, 413, `At most ${bytes} bytes.`]);
    }
  });

  test("has a page to read and to search", async () => {
    const page = await (await read("/panel/docs")).text();
    expect(page).toContain('data-document="/panel/api/openapi.json"');
    expect((await read("/panel/docs/swagger-ui.js")).status).toBe(200);
  });
});

describe("what schemathesis has found in the panel's API", () => {
  const send = async (method: string, path: string, body?: unknown) => {
    const answer = await app.handle(
      new Request(`http://localhost/panel/api${path}`, {
        method,
        headers: {
          authorization: `Bearer ${runtime.secrets.panelToken}`,
          "content-type": "application/json",
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
    const { code, violations } = (await answer.json()) as Record<string, unknown>;
    return { status: answer.status, code, violations, allow: answer.headers.get("allow") };
  };

  test("a URL that is none is 422 beside another fault too", async () => {
    const webhookV1 = { url: "0", acknowledgement: {} };
    expect(await send("PATCH", "/channels/acme-it", { webhookV1 })).toMatchObject({
      status: 422,
      code: "INVALID_BODY",
      violations: [{ path: "webhookV1.acknowledgement" }, { path: "webhookV1.url" }],
    });
  });

  test("a body that may be left out is no null", async () => {
    const made = await send("POST", "/channels/acme-it/api-keys", null);
    expect(made).toMatchObject({ status: 422, code: "INVALID_BODY" });
  });

  test("another method of an existing path is 405 with the methods that it has", async () => {
    expect(await send("DELETE", "/companies")).toMatchObject({
      status: 405,
      code: "METHOD_NOT_ALLOWED",
      allow: "GET, HEAD, POST",
    });
    expect(await send("DELETE", "/nothing")).toMatchObject({ status: 404, code: "NOT_FOUND" });
  });

  test("files are described beside JSON where a format is asked for", () => {
    const { paths } = document() as unknown as {
      readonly paths: Record<string, Record<string, { responses: Record<number, Contents> }>>;
    };
    const typesAt = (path: string, method: string) =>
      Object.keys(paths[path]?.[method]?.responses[200]?.content ?? {});
    expect(typesAt("/panel/api/analytics/trend", "get")).toEqual([
      ...["application/json", "text/csv", "application/vnd.apache.parquet"],
    ]);
    expect(typesAt("/panel/api/sql", "post")).toEqual([
      ...["application/json", "text/csv", "text/tab-separated-values"],
      ...["application/vnd.apache.parquet", "text/plain"],
    ]);
  });
});

interface Contents {
  readonly content: object;
}

interface Told {
  readonly responses: Readonly<Record<number, { readonly "x-codes": readonly string[] }>>;
}

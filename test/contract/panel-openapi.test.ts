/** `GET /panel/api/openapi.json`: valid and complete; what is answered is compared with it wherever tests call the panel. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { type Insights, openInsights } from "#analytics/insights.ts";
import { errorsOf } from "#core/error-catalogue.ts";
import { openApiDocument } from "#core/http/openapi/document.ts";
import { createPanelApp } from "#panel/app.ts";
import { PANEL_API } from "#panel/openapi.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

let runtime: TestRuntime;
let benchmarks: Benchmarks;
let insights: Insights;
let app: ReturnType<typeof createPanelApp>;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: "http://nobody:nothing@127.0.0.1:1/none",
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
    expect(responses?.[409]?.["x-codes"]).toEqual(["TOO_MANY_ISSUED"]);
  });

  test("has a page to read and to search", async () => {
    const page = await (await read("/panel/docs")).text();
    expect(page).toContain('data-document="/panel/api/openapi.json"');
    expect((await read("/panel/docs/swagger-ui.js")).status).toBe(200);
  });
});

interface Told {
  readonly responses: Readonly<Record<number, { readonly "x-codes": readonly string[] }>>;
}

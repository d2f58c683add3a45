/** Document 1, "Errors": what every error answer of the merchant API carries. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { openArchive } from "#analytics/archive.ts";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import { SMALL_BODY_BYTES } from "#api/http/body-limits.ts";
import { errorResponse, ProblemDocument, validationFailed } from "#api/http/error-response.ts";
import { startApi } from "#api/main.ts";
import { MERCHANT_API } from "#api/openapi.ts";
import { ITEM_CODES } from "#api/reference/errors.ts";
import { CourierEvent, Envelope } from "#core/events/rules/event.ts";
import { OrderInput } from "#core/merchants/rules/order.ts";
import { errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { acceptsJson } from "#core/platform/http/accept.ts";
import { toProblem } from "#core/platform/http/errors.ts";
import { describedRoutes } from "#core/platform/openapi/document.ts";
import { FAULT_CODES, FAULTS_COUNTED, FAULTS_LISTED } from "#core/platform/schema/fault.ts";
import { rejectedValue } from "#core/platform/schema/rejected-value.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { SetupFile } from "#core/setup/rules/setup.ts";
import { openRawConnection, rawRequest } from "#test/support/clients/raw-http.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { item } from "#test/support/product/api.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

let runtime: TestRuntime;
let api: Running;
let token: string;

beforeAll(async () => {
  const setup = testSetup();
  const channel = setup.companies?.[0]?.channels?.[0];
  if (channel) channel.sandbox = [{ id: 1, stringValue: "a" }];
  runtime = await openTestRuntime(setup, {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  });
  api = await startApi(runtime);
  const { body } = await send("POST", "/v2/auth/token", { apiKey: "key_acme_main" });
  ({ token } = body);
});
afterAll(async () => {
  await api.stop();
  await runtime.end();
});

interface Options {
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string | null;
}

async function send(method: string, path: string, body?: unknown, options: Options = {}) {
  const bearer = options.token === undefined ? token : options.token;
  const headers = {
    ...(bearer && { authorization: `Bearer ${bearer}` }),
    ...options.headers,
  };
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const answer = await fetch(`${api.url}${path}`, { method, headers, body: text ?? null });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was answered
  const reported: any = await answer.json().catch(() => null);
  return { status: answer.status, headers: answer.headers, body: reported };
}

describe("every error answer", () => {
  /** Text of the header, and where the code is explained. */
  function expectTold(status: number, { headers, body }: Awaited<ReturnType<typeof send>>) {
    expect(body.status).toBe(status);
    expect(headers.get("x-error-message")).toBe(body.detail ?? body.message);
    expect(headers.get("link")).toBe(`</v2/errors#${body.code}>; rel="help"`);
    if (headers.get("content-type")?.startsWith("application/problem+json")) {
      expect(body.type).toBe(`/v2/errors#${body.code}`);
    }
  }

  const cases: [number, string, () => ReturnType<typeof send>][] = [
    [400, "no JSON", () => send("POST", "/v2/shipments", "{")],
    [400, "a doubled key", () => send("POST", "/v2/shipments", '{"shipments":[],"shipments":[]}')],
    [400, "a label without JSON", () => send("POST", "/v2/labels", "{")],
    [401, "no token", () => send("GET", "/v2/shipments", undefined, { token: null })],
    [401, "a wrong key", () => send("POST", "/v2/auth/token", { apiKey: "key_wrong" })],
    [403, "a product that is not owned", () => send("GET", "/v2/parcels/x")],
    [404, "no such shipment", () => send("GET", "/v2/shipments/4711")],
    [404, "no such path", () => send("GET", "/v2/nothing")],
    [405, "another method", () => send("PUT", "/v2/shipments")],
    [406, "no JSON wanted", () => send("GET", "/v2/shipments", undefined, accepting("text/html"))],
    [413, "too large", () => send("PUT", "/v2/sandbox/1", "x".repeat(2 * SMALL_BODY_BYTES + 1))],
    [422, "a fault of the query", () => send("GET", "/v2/shipments?limit=101")],
    [422, "a fault of the body", () => send("POST", "/v2/shipments", { shipments: [] })],
    [503, "no ClickHouse", () => send("POST", "/v2/couriers/delivery-times", { destCap: "00184" })],
  ];
  for (const [status, name, ask] of cases) {
    test(`${status} ${name}: X-Error-Message and the way to the code's explanation`, async () => {
      const answer = await ask();
      expect(answer.status).toBe(status);
      expectTold(status, answer);
    });
  }

  test("400 for a query that is not UTF-8; a percent sign that encodes nothing stands for itself", async () => {
    for (const query of ["custom1=%FF", "custom1=a%ed%a0%80", "page=2&custom1=%C3"]) {
      const answer = await send("GET", `/v2/shipments?${query}`);
      expect(answer.status).toBe(400);
      expect(answer.body.code).toBe("BAD_REQUEST_TARGET");
      expectTold(400, answer);
    }
    for (const query of ["custom1=100%", "custom1=50%25+50%", "custom1=citt%C3%A0&custom2=%zz%"]) {
      expect((await send("GET", `/v2/shipments?${query}`)).status).toBe(200);
    }
  });

  test("429 at the token call, 400 before routing, 413 far above every limit, and 500 too", async () => {
    const raw = openRawConnection(api.url ?? "");
    const malformed = await raw.ask(rawRequest("GET", "/v2/%ff", ["Host: a"]));
    expect(malformed.status).toBe(400);
    expect(malformed.headers.get("x-error-message")).toBe(JSON.parse(malformed.body).message);
    const huge = [`Authorization: Bearer ${token}`, "Host: a", "Content-Length: 99999999999"];
    const tooLarge = await raw.ask(rawRequest("POST", "/v2/shipments", huge));
    expect(tooLarge.status).toBe(413);
    expect(tooLarge.headers.get("x-error-message")).toBe(JSON.parse(tooLarge.body).message);
    raw.close();
    const guesses = Array.from({ length: 40 }, () =>
      send("POST", "/v2/auth/token", { apiKey: "key_guess" }),
    );
    const limited = (await Promise.all(guesses)).filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThan(0);
    for (const answer of limited) expectTold(429, answer);
    const response = errorResponse(toProblem(new Error("a bug"), runtime.redis, runtime.log));
    const { status, headers } = response;
    expectTold(500, { status, headers, body: await response.json() });
  });

  test("a message that is no ASCII is a valid header all the same", async () => {
    const { headers } = errorResponse(validationFailed([fault("città\r\nSet-Cookie: a=b")]));
    expect(headers.get("x-error-message")).toBe("The request has 1 violation.");
    const sent = await send("POST", "/v2/auth/token", '{"\u00e0":1,"\u00e0":2}');
    expect(sent.headers.get("x-error-message")).toMatch(/^[\x20-\x7e]+$/);
  });
});

const accepting = (accept: string) => ({ headers: { accept } });
const fault = (message: string) => ({ path: "x", code: "BAD_FORMAT", message }) as const;

describe("406: Accept excludes JSON", () => {
  const accepted = [
    ...[null, "", "*/*", "*", "application/*", "application/json", "APPLICATION/JSON"],
    ...["application/json;charset=utf-8", "text/html, */*;q=0.1", "application/problem+json"],
    ...["text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "nonsense", "text/html;q=1,*/*"],
    ...["application/json;q=0.001", "*/*;q=0, application/json", "application/pdf, application/*"],
  ];
  const excluded = [
    ...["text/html", "application/pdf", "application/xml, text/*", "application/json;q=0"],
    ...["application/json;q=0, */*", "*/*;q=0", "application/*;q=0, */*", "text/html, */*;q=0.0"],
    ...["application/json; Q=0.000", "application/vnd.api+json", "application/json-seq"],
  ];
  test.each(accepted)("%p does not", (accept) => expect(acceptsJson(accept)).toBe(true));
  test.each(excluded)("%p does", (accept) => expect(acceptsJson(accept)).toBe(false));

  test("at every call, before the token is looked at and before anything is done", async () => {
    const benchmarks = await openBenchmarks(runtime.config);
    const archive = openArchive(runtime.config, runtime.secrets.vault);
    const operations = describedRoutes(createApiApp({ ...runtime, benchmarks, archive }).routes);
    await Promise.all([benchmarks.close(), archive.close()]);
    expect(operations.length).toBeGreaterThan(20);
    for (const { method, path } of operations) {
      const filled = path.replaceAll(/\{\w+\}/g, "1");
      const answer = await send(method.toUpperCase(), filled, undefined, {
        ...accepting("application/pdf"),
        token: null,
      });
      expect([path, answer.status, answer.body?.code]).toEqual([path, 406, "NOT_ACCEPTABLE"]);
    }
    const kept = await send("DELETE", "/v2/sandbox/1", undefined, accepting("text/html"));
    expect(kept.status).toBe(406);
    expect((await send("GET", "/v2/sandbox/1")).status).toBe(200);
  });

  test("what is no JSON is not concerned: the page of the codes, health", async () => {
    for (const path of ["/v2/errors", "/healthz", "/readyz"]) {
      const { ok } = await fetch(`${api.url}${path}`, accepting("text/plain"));
      expect(ok).toBe(true);
    }
  });
});

describe("violations", () => {
  const create = (...items: object[]) => send("POST", "/v2/shipments", { shipments: items });
  const faulty = (count: number) =>
    create(...Array.from({ length: count }, (_, at) => item(`TN-${at}`, { shipDate: "soon" })));

  test("are counted all: 20 are listed all, of 21 and 50 the first 20", async () => {
    const reportedNow = async (count: number) => {
      const { body } = await faulty(count);
      expect(body.violations.length).toBe(Math.min(count, FAULTS_LISTED));
      return body.detail;
    };
    expect(await reportedNow(1)).toBe("The request has 1 violation.");
    expect(await reportedNow(20)).toBe("The request has 20 violations.");
    expect(await reportedNow(21)).toBe("The request has 21 violations; the first 20 are listed.");
    expect(await reportedNow(50)).toBe("The request has 50 violations; the first 20 are listed.");
  });

  test(`are counted up to ${FAULTS_COUNTED}`, async () => {
    const parcels = (count: number) => Array.from({ length: count }, () => ({ weight: 0 }));
    const detail = async (count: number) => {
      const full = Array.from({ length: 9 }, (_, at) => item(`P${at}`, { parcels: parcels(100) }));
      const { body } = await create(...full, item("P9", { parcels: parcels(count) }));
      return body.detail;
    };
    expect(await detail(99)).toBe("The request has 999 violations; the first 20 are listed.");
    const many = "The request has at least 1,000 violations; the first 20 are listed.";
    expect(await detail(100)).toBe(many);
  });

  test("name the rejected value, a text cut after 100 characters", async () => {
    const long = `${"🐘".repeat(100)}b`;
    const { body } = await create(
      item("A", { shipDate: "30/11/2026", isReturnable: "no", parcels: [{ weight: -1 }] }),
      item("B", { consignee: { country: long }, parcels: {} }),
    );
    const values = body.violations.map(({ path, value }: Shown) => [path, value]);
    expect(Object.fromEntries(values)).toEqual({
      "shipments[0].shipDate": "30/11/2026",
      "shipments[0].isReturnable": "no",
      "shipments[0].parcels[0].weight": -1,
      "shipments[1].consignee.country": `${"🐘".repeat(100)}…`,
      "shipments[1].parcels": undefined,
    });
    const searched = await send("GET", "/v2/shipments?limit=101&status=LOST");
    expect(searched.body.violations.map(({ value }: Shown) => value).sort()).toEqual([
      "101",
      "LOST",
    ]);
    for (const answer of [body, searched.body]) {
      expect([...Value.Errors(ProblemDocument, answer)]).toEqual([]);
    }
  });

  test("an infinite number is out of range, and its violation still follows the published schema", async () => {
    const text = JSON.stringify({ shipments: [item("A", { monetary: { totalValue: 0 } })] });
    const { status, body } = await send("POST", "/v2/shipments", text.replace(":0}", ":1e400}"));
    expect(status).toBe(422);
    expect(body.violations).toEqual([
      {
        path: "shipments[0].monetary.totalValue",
        code: "OUT_OF_RANGE",
        message: "The number is too large.",
      },
    ]);
    expect([...Value.Errors(ProblemDocument, body)]).toEqual([]);
  });

  test("say in words which type or value was expected, and count in singular and plural", async () => {
    const patched = await send("PATCH", "/v2/sandbox/1", { intValue: "9", boolValue: 1 });
    expect(patched.body.violations.map(({ message }: Shown) => message)).toEqual([
      "Expected a whole number or null.",
      "Expected true or false or null.",
    ]);
    const { body } = await create(
      item("", { monetary: { currency: "USD" }, tag: 1, parcels: "p", consignee: [] }),
    );
    expect(
      Object.fromEntries(body.violations.map(({ path, message }: Shown) => [path, message])),
    ).toEqual({
      "shipments[0].trackingNumber": "At least 1 character.",
      "shipments[0].monetary.currency": 'Expected "EUR".',
      "shipments[0].tag": "Expected a string.",
      "shipments[0].parcels": "Expected a list.",
      "shipments[0].consignee": "Expected an object.",
    });
    const asked = { destCap: "00184", detail: "all" };
    const lane = await send("POST", "/v2/couriers/delivery-times", asked);
    expect(lane.body.violations[0].message).toBe('Expected one of "summary", "full".');
  });

  test("repeat no secret and no address that may carry one", async () => {
    const tries = [
      () => send("POST", "/v2/auth/token", { apiKey: ["key_acme_main"] }),
      () => send("POST", "/v2/auth/token", { apiKey: "s3cret".repeat(50) }),
      () => send("POST", "/v2/auth/token", '"s3cret"'),
      () =>
        send("POST", "/v2/shipments/import", {
          shipments: [item("A")],
          webhookUrl: "ftp://me:s3cret@h",
        }),
      () =>
        send("POST", "/v2/shipments/1/notifications", { event: "ok", variables: { password: 1 } }),
    ];
    for (const ask of tries) {
      const { status, body } = await ask();
      expect(status).toBe(422);
      expect(JSON.stringify(body)).not.toMatch(/s3cret|key_acme_main|"value"/);
    }
    expect(rejectedValue({ a: { clientSecret: "s" } }, "a.clientSecret")).toBeUndefined();
    expect(rejectedValue("s", "")).toBeUndefined();
    expect(rejectedValue({}, "__proto__.x")).toBeUndefined();
  });

  test("show no regular expression: every pattern of a schema has its form in words", () => {
    const { components } = MERCHANT_API;
    const bodies = Object.values(components).filter((schema) => schema["type"] === "object");
    const schemas: TSchema[] = [...bodies, SetupFile, OrderInput, CourierEvent, Envelope];
    const patterns = schemas.flatMap((schema) => [...stringsWithPattern(schema)]);
    expect(patterns.length).toBeGreaterThan(20);
    for (const { pattern, description } of patterns) {
      expect([pattern, typeof description]).toEqual([pattern, "string"]);
    }
  });

  test("say in words what a text has to look like", async () => {
    const { body } = await create(item("A", { consignee: { country: "Italy" } }));
    const [{ code, message }] = body.violations;
    expect(code).toBe("BAD_FORMAT");
    expect(message).toBe(
      "Expected: a country by ISO 3166-1 alpha-2, two capital letters such as IT.",
    );
  });
});

interface Shown {
  readonly path: string;
  readonly message: string;
  readonly value?: unknown;
}

function* stringsWithPattern(schema: unknown): Generator<TSchema> {
  if (typeof schema !== "object" || schema === null) return;
  if ("pattern" in schema) yield schema as unknown as TSchema;
  for (const inner of Object.values(schema)) yield* stringsWithPattern(inner);
}

const ERROR_CODES = errorsOf("merchant");

describe("explanations", () => {
  test("the page has a place for every code, asks nobody for anything and runs no script", async () => {
    const answer = await fetch(`${api.url}/v2/errors`);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
    const page = await answer.text();
    for (const { code } of ERROR_CODES) expect(page).toContain(`<tr id="${code}">`);
    for (const code of Object.keys(FAULT_CODES)) expect(page).toContain(`<tr id="${code}">`);
    for (const code of Object.keys(ITEM_CODES)) expect(page).toContain(`<tr id="item-${code}">`);
    const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(page).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect(page).not.toContain("<script");
  });

  test("programs read the same list", async () => {
    const { status, body } = await send("GET", "/v2/errors.json");
    expect(status).toBe(200);
    expect(body.errors).toEqual(
      ERROR_CODES.map(({ status, code, meaning, remedy }) => ({ status, code, meaning, remedy })),
    );
    expect(body.violations.map(({ code }: { code: string }) => code)).toEqual(
      Object.keys(FAULT_CODES),
    );
  });
});

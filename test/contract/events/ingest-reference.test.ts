/** What a courier's engineer reads: OpenAPI, reference page, guide, test vectors, complete lists of codes. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { CourierEvent, checkEnvelope, checkEvent, Envelope } from "#core/events/rules/event.ts";
import { errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { registry } from "#core/platform/process/metrics.ts";
import { FAULT_CODES } from "#core/platform/schema/fault.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { sign, verifySignature } from "#core/webhooks/rules/signature.ts";
import { createIngestApp } from "#ingest/app.ts";
import { startIngest } from "#ingest/main.ts";
import { COURIER_API } from "#ingest/openapi.ts";
import { EXAMPLE_ANSWER, EXAMPLE_MESSAGE } from "#ingest/reference/example.ts";
import { fieldRows } from "#ingest/reference/field-rows.ts";
import { typesOf, UNKNOWN_TYPE } from "#test/client-types/generate.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { answerChecker } from "#test/support/clients/described-answers.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

let runtime: TestRuntime;
let ingest: Running;
let url: string;

/** Every character that a form or a URL takes for something else. */
const CLIENT_SECRET = "a+b/c=d%2B&e f:g?è";

beforeAll(async () => {
  const setup = testSetup();
  const oauth = { clientId: "push+gls", clientSecret: CLIENT_SECRET };
  setup.couriers?.push({ code: "OAUTH", tokens: ["tok_oauth"], oauth });
  runtime = await openTestRuntime(setup);
  ingest = await startIngest(runtime);
  url = ingest.url ?? "";
});

afterAll(async () => {
  await ingest.stop();
  await runtime.end();
});

const ROOT = new URL("../../../", import.meta.url).pathname;
const read = (path: string) => readFile(`${ROOT}${path}`);

const PROBLEM_CODES = errorsOf("courier");

describe("lists of codes are complete", () => {
  test("every fault code that the source can give is listed, and none besides", async () => {
    const names = [
      "platform/schema/fault",
      "platform/schema/ill-formed-text",
      "events/rules/event",
      "events/rules/check-time",
    ];
    const sources = names.map((name) => `core/${name}.ts`);
    const text = (await Promise.all(sources.map((path) => read(path)))).join("\n");
    const given = [...text.matchAll(/code: "([A-Z_]+)"/g)].map(([, code]) => code);
    expect(new Set(given)).toEqual(new Set(Object.keys(FAULT_CODES)));
  });
});

const isOfMetrics = (code: string) => ["UNAUTHORIZED", "METRICS_ELSEWHERE"].includes(code);

describe("OpenAPI", () => {
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into a JSON document
  const description = async (): Promise<any> => (await fetch(`${url}/v1/openapi.json`)).json();

  test("describes every path, every problem code, every fault code and every bound", async () => {
    const document = await description();
    expect(document.openapi).toBe("3.1.0");
    const text = JSON.stringify(document);
    for (const path of ["/v1/events", "/v1/events/validate", "/v1/ping", "/v1/oauth/token"]) {
      expect(document.paths[path]).toBeDefined();
    }
    for (const { code, meaning } of PROBLEM_CODES) {
      expect(document.components.schemas.Problem.properties.code.enum).toContain(code);
      const isOfCalls = !["NOT_FOUND", "METHOD_NOT_ALLOWED"].includes(code) && !isOfMetrics(code);
      if (isOfCalls) expect(text).toContain(JSON.stringify(meaning).slice(1, -1));
    }
    for (const code of Object.keys(FAULT_CODES)) expect(text).toContain(`| ${code} |`);
    const { properties } = document.components.schemas.Event;
    expect(properties.eventId.maxLength).toBe(128);
    expect(properties.location.properties.name.maxLength).toBe(200);
    expect(properties.attributes.maxProperties).toBe(20);
    expect(document.components.schemas.Envelope.properties.events.maxItems).toBe(500);
  });

  test("has no fault by Redocly's recommended rules, its examples included, and names its server", async () => {
    const document = await description();
    const rules = { "no-invalid-media-type-examples": "error" } as const;
    const config = await createConfig({ extends: ["recommended"], rules });
    const problems = await lintFromString({ source: JSON.stringify(document), config });
    expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
    expect(document.servers).toEqual([{ url: "/", description: expect.any(String) }]);
    for (const path of Object.values<Record<string, object>>(document.paths)) {
      for (const operation of Object.values(path)) {
        const contents = [...JSON.stringify(operation).matchAll(/"schema":\{"\$ref"/g)];
        const examples = [...JSON.stringify(operation).matchAll(/"example":/g)];
        expect(examples.length).toBe(contents.length);
      }
    }
  });

  test("types that are generated from it know every member", async () => {
    const types = await typesOf(await description());
    expect(types).not.toMatch(UNKNOWN_TYPE);
    expect(types).toContain("eventId: string;");
  });

  test("its example of a message is answered as its example of an answer says", async () => {
    const { events } = EXAMPLE_MESSAGE;
    const { status, body } = await push(url, events, {
      path: "/v1/events/validate",
      envelope: EXAMPLE_MESSAGE,
    });
    expect(status).toBe(200);
    const shown = (report: typeof EXAMPLE_ANSWER) => ({
      ...report,
      receivedAt: "",
      results: report.results.map((result) => ({
        ...result,
        ...("errors" in result && { errors: result.errors.map(({ path, code }) => [path, code]) }),
      })),
    });
    expect(shown(body)).toEqual(shown(EXAMPLE_ANSWER));
    const document = await description();
    const sent = document.paths["/v1/events"].post.requestBody.content["application/json"].example;
    expect(
      (await push(url, sent.events, { envelope: sent, path: "/v1/events/validate" })).body,
    ).toMatchObject({
      accepted: 2,
      invalid: 0,
    });
  });

  test("every reference in it leads somewhere", async () => {
    const document = await description();
    const references = [
      ...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g),
    ];
    expect(references.length).toBeGreaterThan(5);
    for (const [, name] of references) {
      expect(document.components.schemas[name ?? ""]).toBeDefined();
    }
  });

  test("document 2, Versioning: no answer's schema forbids a field that a minor version may add", async () => {
    const { Event, ...others } = (await description()).components.schemas;
    expect(Event.additionalProperties).toBe(false);
    expect(JSON.stringify(others)).not.toContain('"additionalProperties":false');
    expect(others.Result.properties.outcome.description).toContain("minor version");
  });

  test("answers have the described shapes, every status of every call that a sender can cause", async () => {
    const { check, seen } = answerChecker(createIngestApp(runtime).routes, COURIER_API);
    async function ask(method: string, path: string, init: RequestInit = {}) {
      const response = await fetch(`${url}${path}`, { method, ...init });
      const { status, headers } = response;
      check({ method, path, status, headers, body: await response.json() });
    }
    const authorization = "Bearer tok_gls_1";
    const message = (events: unknown[], members = {}) => ({
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ ...EXAMPLE_MESSAGE, events, ...members }),
    });
    for (const path of ["/v1/events", "/v1/events/validate"]) {
      await ask("POST", path, message([event(), {}, null]));
      await ask("POST", path, message([]));
      await ask("POST", path, message([event()], { courier: "BRT_ITA" }));
      await ask("POST", path, { body: "{}" });
      await ask("POST", path, { headers: { authorization }, body: "{}" });
    }
    await ask("GET", "/v1/ping", { headers: { authorization } });
    await ask("GET", "/v1/ping");
    const form = (secret: string) => ({
      grant_type: "client_credentials",
      client_id: "push+gls",
      client_secret: secret,
    });
    for (const asked of [form(CLIENT_SECRET), form("wrong"), {}]) {
      await ask("POST", "/v1/oauth/token", { body: new URLSearchParams(asked) });
    }
    const ofMessages = ["sendEvents", "validateEvents"].flatMap((id) =>
      [200, 400, 401, 403, 415].map((status) => `${id} ${status}`),
    );
    expect([...seen].sort()).toEqual(
      [
        ...ofMessages,
        ...["ping 200", "ping 401", "getToken 200", "getToken 400", "getToken 401"],
      ].sort(),
    );
  });

  test("a problem document leads to the explanation of its code, on this port", async () => {
    const { body } = await push(url, [], { token: null });
    expect(body.type).toBe("/v1/errors#UNKNOWN_TOKEN");
    const page = await (await fetch(`${url}/v1/errors`)).text();
    for (const { code } of PROBLEM_CODES) expect(page).toContain(`<tr id="${code}">`);
    const list = (await (await fetch(`${url}/v1/errors.json`)).json()) as { errors: unknown[] };
    expect(list.errors).toHaveLength(PROBLEM_CODES.length);
  });
});

describe("reference page", () => {
  test("lists every field, problem and fault, asks nobody for anything, and suits light and dark", async () => {
    const response = await fetch(`${url}/v1/docs`);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
    const page = await response.text();
    const rows = [...fieldRows(Envelope), ...fieldRows(CourierEvent)];
    expect(rows.length).toBeGreaterThan(40);
    for (const { path, rule } of rows) {
      expect(page).toContain(`<td>${path}</td>`);
      expect(rule).not.toContain("undefined");
    }
    for (const { code } of PROBLEM_CODES) expect(page).toContain(`<td>${code}</td>`);
    for (const code of Object.keys(FAULT_CODES)) expect(page).toContain(`<td>${code}</td>`);
    expect(page).toContain("color-scheme: light dark");
    expect(page).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect(page).not.toContain("<script");
  });

  test("shows a whole message with its answer, and links guide, vectors and doctor, which are there", async () => {
    const page = await (await fetch(`${url}/v1/docs`)).text();
    const [message, answer] = [...page.matchAll(/<pre>(\{[\s\S]*?)<\/pre>/g)].map(([, text = ""]) =>
      JSON.parse(text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&amp;", "&")),
    );
    expect(message).toEqual(EXAMPLE_MESSAGE);
    expect(answer).toEqual(EXAMPLE_ANSWER);
    const links = [...page.matchAll(/href="(\/[^"]+)"/g)].map(([, path]) => path);
    expect(new Set(links)).toEqual(
      new Set([
        ...["/v1/guide", "/v1/calls", "/v1/openapi.json", "/v1/vectors.json", "/v1/doctor.mjs"],
        ...["/v1/examples/courier.ts", "/v1/examples/courier.py"],
      ]),
    );
    for (const path of links) expect((await fetch(`${url}${path}`)).status).toBe(200);
  });

  test("shows no regular expression", async () => {
    const page = await (await fetch(`${url}/v1/docs`)).text();
    expect(page).not.toMatch(/\[A-Z|\\d|\^\(/);
  });
});

describe("guide", () => {
  test("its message is valid, and its vectors verify over the bytes as they stand", async () => {
    const guide = String(await read("docs/couriers.md"));
    const message = JSON.parse(/```json\n([\s\S]*?)```/.exec(guide)?.[1] ?? "");
    expect(checkEnvelope(message)).toEqual([]);
    for (const one of message.events) expect(checkEvent(one)).toEqual([]);
    const { t, vectors } = JSON.parse(String(await read("docs/vectors/signature.json")));
    expect(
      vectors.map(({ contentEncoding }: { contentEncoding: string }) => contentEncoding),
    ).toEqual([null, "gzip", null]);
    for (const { body, secrets, header } of vectors) {
      const bytes = await read(`docs/vectors/${body}`);
      expect(sign(secrets, bytes, t * 1000)).toBe(header);
      for (const secret of secrets) {
        expect(verifySignature(header, [secret], bytes, t * 1000)).toBe("valid");
      }
    }
    const [plain, zipped] = await Promise.all([
      read("docs/vectors/identity.body"),
      read("docs/vectors/gzip.body"),
    ]);
    expect(gunzipSync(zipped).equals(plain)).toBe(true);
  });
});

describe("what the service hands out", () => {
  test("the guide, without the part for operators", async () => {
    const answer = await fetch(`${url}/v1/guide`);
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    const text = await answer.text();
    expect(String(await read("docs/couriers.md"))).toStartWith(text);
    expect(text).toContain("## The doctor");
    expect(text).not.toContain("# For operators");
    expect(text).not.toContain("TRUSTED_PROXIES");
  });

  test("signature vectors that verify over their bytes", async () => {
    // biome-ignore lint/suspicious/noExplicitAny: a test looks into a JSON document
    const { t, vectors } = (await (await fetch(`${url}/v1/vectors.json`)).json()) as any;
    expect(vectors.length).toBe(3);
    for (const { bodyBase64, secrets, header } of vectors) {
      const bytes = Buffer.from(bodyBase64, "base64");
      expect(sign(secrets, bytes, t * 1000)).toBe(header);
    }
  });

  test.skipIf(["curl", "openssl", "gzip"].some((name) => Bun.which(name) === null))(
    "commands that work as printed, in the guide and on the reference page",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "waybill-guide-"));
      const guide = await (await fetch(`${url}/v1/guide`)).text();
      const page = await (await fetch(`${url}/v1/docs`)).text();
      await writeFile(
        join(folder, "message.json"),
        /```json\n([\s\S]*?)```/.exec(guide)?.[1] ?? "",
      );
      const blocks = [
        ...[...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = ""]) => text),
        ...[...page.matchAll(/<pre>([^{][\s\S]*?)<\/pre>/g)].map(([, text = ""]) => text),
      ];
      // Placeholders, a client certificate and a program of the reader's own are not here to be tried.
      const tried = blocks.filter((text) => !/^URL=|client\.pem|my-sender|oauth\/token/.test(text));
      expect(tried.length).toBe(7);
      const env = { URL: url, TOKEN: "tok_gls_1", SECRET: "sig_gls_1", COURIER: "GLS_ITA" };
      for (const text of tried) {
        const started = startCommand(["sh", "-ec", text], env, { cwd: folder });
        const { output, errors, status } = await outcomeOf(started);
        expect([text, errors, status]).toEqual([text, "", 0]);
        if (text.includes("doctor.mjs")) expect(output).toContain("1 of 1 valid");
        else if (text.includes("/v1/events")) expect(JSON.parse(output).results).toHaveLength(1);
      }
      await rm(folder, { recursive: true });
    },
  );

  test.skipIf(Bun.which("curl") === null)(
    "the guide's OAuth command gets a token, whatever characters the secret has",
    async () => {
      const text = await (await fetch(`${url}/v1/guide`)).text();
      const [, command = ""] = /```sh\n(curl [^`]*oauth\/token[^`]*)```/.exec(text) ?? [];
      const env = { URL: url, CLIENT_ID: "push+gls", CLIENT_SECRET };
      const { output, errors } = await outcomeOf(startCommand(["sh", "-c", command], env));
      expect([errors, JSON.parse(output)]).toMatchObject(["", { token_type: "Bearer" }]);
      const headers = { authorization: `Bearer ${JSON.parse(output).access_token}` };
      const ping = await (await fetch(`${url}/v1/ping`, { headers })).json();
      expect(ping).toMatchObject({ courier: "OAUTH" });
    },
  );
});

describe("HTTP", () => {
  test("CORS is off: a preflight is no route and no answer allows an origin", async () => {
    const headers = { origin: "https://a.example", "access-control-request-method": "POST" };
    const preflight = await fetch(`${url}/v1/events`, { method: "OPTIONS", headers });
    expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([
      405,
      null,
    ]);
    const answer = await push(url, [event()], { headers });
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
  });

  test("wrong paths and methods of the API carry the rate headers too", async () => {
    for (const path of ["/v1/nothing", "/v1/events"]) {
      const { headers } = await fetch(`${url}${path}`);
      expect(headers.get("x-ratelimit-limit")).toBe("100");
      expect(headers.get("x-ratelimit-remaining")).toMatch(/^\d+$/);
    }
  });

  test("answer times are counted by status class", async () => {
    await push(url, [event()]);
    await push(url, [event()], { token: null });
    await eventually(async () => {
      const text = await registry.metrics();
      return ["2xx", "4xx"].every((status) =>
        new RegExp(`_seconds_count\\{role="ingest",status="${status}"\\} [1-9]`).test(text),
      );
    }, "both classes are counted");
  });
});

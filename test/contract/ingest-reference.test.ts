/** What a carrier's engineer reads: OpenAPI, reference page, guide, test vectors, complete lists of codes. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Glob } from "bun";
import {
  CourierEvent,
  checkEnvelope,
  checkEvent,
  Envelope,
} from "#core/domain/courier-events/event.ts";
import { FAULT_CODES } from "#core/domain/schema/fault.ts";
import { sign, verifySignature } from "#core/domain/webhooks/signature.ts";
import { registry } from "#core/metrics.ts";
import type { Running } from "#core/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { Ping, ProblemDocument, Report } from "#ingest/reference/answers.ts";
import { EXAMPLE_ANSWER, EXAMPLE_MESSAGE } from "#ingest/reference/example.ts";
import { fieldRows } from "#ingest/reference/field-rows.ts";
import { PROBLEM_CODES } from "#ingest/reference/problem-codes.ts";
import { outcomeOf, startCommand } from "#test/support/command.ts";
import { event, push } from "#test/support/courier.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

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

const ROOT = new URL("../../", import.meta.url).pathname;
const read = (path: string) => readFile(`${ROOT}${path}`);

describe("lists of codes are complete", () => {
  test("every problem that ingest throws is listed, with its status, and none besides", async () => {
    const shared = ["errors", "no-route", "request-target"].map((name) => `core/http/${name}.ts`);
    const sources = [...new Glob("ingest/**/*.ts").scanSync(ROOT), ...shared];
    const texts = await Promise.all(sources.map((path) => read(path)));
    const thrown = texts.flatMap((text) =>
      [...String(text).matchAll(/new Problem\(\s*(\d{3}),\s*"([A-Z_]+)"/g)].map(
        ([, status, code]) => `${status} ${code}`,
      ),
    );
    const listed = PROBLEM_CODES.map(({ status, code }) => `${status} ${code}`);
    expect(new Set(listed)).toEqual(new Set(thrown));
    expect(new Set(listed).size).toBe(listed.length);
  });

  test("every fault code that the source can give is listed, and none besides", async () => {
    const names = ["schema/fault", "schema/ill-formed-text", "courier-events/event"];
    const sources = names.map((name) => `core/domain/${name}.ts`);
    const text = (await Promise.all(sources.map((path) => read(path)))).join("\n");
    const given = [...text.matchAll(/code: "([A-Z_]+)"/g)].map(([, code]) => code);
    expect(new Set(given)).toEqual(new Set(Object.keys(FAULT_CODES)));
  });
});

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
      expect(document.components.schemas.Problem.properties.code.anyOf).toContainEqual(
        expect.objectContaining({ const: code }),
      );
      expect(text).toContain(JSON.stringify(meaning).slice(1, -1));
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

  test("its example of a message is answered as its example of an answer says", async () => {
    const { events } = EXAMPLE_MESSAGE;
    const { status, body } = await push(url, events, {
      ...{ path: "/v1/events/validate", envelope: EXAMPLE_MESSAGE },
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
      ...{ accepted: 2, invalid: 0 },
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

  const fits = (schema: TSchema, value: unknown) =>
    expect([...Value.Errors(schema, value)]).toEqual([]);

  test("document 2, Versioning: no answer's schema forbids a field that a minor version may add", async () => {
    const { Event, ...others } = (await description()).components.schemas;
    expect(Event.additionalProperties).toBe(false);
    expect(JSON.stringify(others)).not.toContain('"additionalProperties":false');
    expect(others.Result.properties.outcome.description).toContain("minor version");
  });

  test("answers have the described shapes", async () => {
    const path = "/v1/events/validate";
    fits(Report, (await push(url, [event(), {}, null], { path })).body);
    fits(Report, (await push(url, [event()])).body);
    const headers = { authorization: "Bearer tok_gls_1" };
    fits(Ping, await (await fetch(`${url}/v1/ping`, { headers })).json());
    fits(ProblemDocument, (await push(url, [])).body);
    fits(ProblemDocument, (await push(url, [], { token: null })).body);
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
      new Set(["/v1/guide", "/v1/openapi.json", "/v1/vectors.json", "/v1/doctor.mjs"]),
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
        text.includes(`waybill_http_request_seconds_count{role="ingest",status="${status}"}`),
      );
    }, "both classes are counted");
  });
});

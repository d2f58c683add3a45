/** Document 2, "Errors" and "Limits", as HTTP: bodies too large, slow or cut short, rate headers, content types. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import pino from "pino";
import { BODY_LIMIT_BYTES } from "#core/events/rules/event.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { UNKNOWN_CALLER_RATE } from "#ingest/authenticate.ts";
import { startIngest } from "#ingest/main.ts";
import { isJsonType, MESSAGE_TIME_LIMIT_MS, timeLimitMs } from "#ingest/messages/read-body.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { openRawConnection, type RawAnswer, rawRequest } from "#test/support/clients/raw-http.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

let runtime: TestRuntime;
let ingest: Running;
let url: string;
/** Lines of the log, warnings and worse. */
const logged: string[] = [];

beforeAll(async () => {
  const setup = testSetup();
  setup.couriers?.push(
    { code: "SIGNED", tokens: ["tok_signed"], signingSecrets: ["s1"], signatureRequired: true },
    { code: "LISTED", tokens: ["tok_listed"], allowedIps: ["10.0.0.0/8"] },
    { code: "CLOSED", tokens: ["tok_closed"], acceptingEvents: false },
    { code: "STRICT", tokens: ["tok_strict"], rateLimit: { perSecond: 0.001, burst: 1 } },
  );
  runtime = await openTestRuntime(setup);
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(line) });
  ingest = await startIngest({ ...runtime, log });
  url = ingest.url ?? "";
});

afterAll(async () => {
  await ingest.stop();
  await runtime.end();
});

const HEAD = [
  "Host: x.example",
  "Authorization: Bearer tok_gls_1",
  "Content-Type: application/json",
];

async function ask(
  method: string,
  path: string,
  headers: readonly string[] = HEAD,
): Promise<RawAnswer> {
  const connection = openRawConnection(url);
  try {
    return await connection.ask(rawRequest(method, path, headers));
  } finally {
    connection.close();
  }
}

function expectProblem({ headers, body }: RawAnswer, status: number, code: string): void {
  expect(headers.get("content-type")).toBe("application/problem+json");
  expect(JSON.parse(body)).toMatchObject({ status, code });
  expectRateHeaders(headers);
}

function expectRateHeaders(headers: Pick<Headers, "get"> | ReadonlyMap<string, string>): void {
  const limit = Number(headers.get("x-ratelimit-limit"));
  expect(limit).toBeGreaterThan(0);
  expect(headers.get("x-ratelimit-remaining")).toMatch(/^\d+$/);
  expect(Number(headers.get("x-ratelimit-remaining"))).toBeLessThanOrEqual(limit);
}

describe("413 by Content-Length", () => {
  test.each([BODY_LIMIT_BYTES + 1, 84_000_000, 100_000_000, 10_000_000_000])(
    "%i bytes announced: a problem document, before any of them is sent",
    async (bytes) => {
      const answer = await ask("POST", "/v1/events", [...HEAD, `Content-Length: ${bytes}`]);
      expectProblem(answer, 413, "BODY_TOO_LARGE");
    },
  );
});

describe("rate headers", () => {
  test("stand on every answer of the API, whatever its status", async () => {
    const events = [event()];
    const answers = [
      [200, await push(url, events)],
      [400, await push(url, [])],
      [401, await push(url, events, { token: null })],
      [403, await push(url, events, { courier: "BRT_ITA" })],
      [403, await push(url, events, { token: "tok_listed", courier: "LISTED" })],
      [403, await push(url, events, { token: "tok_signed", courier: "SIGNED" })],
      [404, await push(url, events, { token: "tok_closed", courier: "CLOSED" })],
      [404, await push(url, events, { path: "/v1/nothing" })],
      [405, await push(url, events, { path: "/v1/ping" })],
      [415, await push(url, events, { headers: { "content-type": "text/plain" } })],
      [400, await push(url, events, { path: "/v1/oauth/token" })],
    ] as const;
    for (const [status, answer] of answers) {
      expect(answer.status).toBe(status);
      expectRateHeaders(answer.headers);
    }
    const strict = { token: "tok_strict", courier: "STRICT" };
    await push(url, events, strict);
    const limited = await push(url, events, strict);
    expect(limited.status).toBe(429);
    expectRateHeaders(limited.headers);
  });

  test("before a courier is known they tell the rate of its address, and all of it where nothing is counted", async () => {
    const { burst } = UNKNOWN_CALLER_RATE;
    const unknown = await push(url, [event()], { token: "nobody's" });
    expect(unknown.headers.get("x-ratelimit-limit")).toBe(String(burst));
    expect(Number(unknown.headers.get("x-ratelimit-remaining"))).toBeLessThan(burst);
    for (const path of ["/v1/docs", "/v1/openapi.json"]) {
      const { headers } = await fetch(`${url}${path}`);
      expect(headers.get("x-ratelimit-limit")).toBe(String(burst));
      expect(headers.get("x-ratelimit-remaining")).toBe(String(burst));
    }
    const malformed = await ask("GET", "/v1/%zz");
    expectProblem(malformed, 400, "BAD_REQUEST_TARGET");
    expect(malformed.headers.get("x-ratelimit-remaining")).toBe(String(burst));
  });
});

describe("Content-Type", () => {
  test("application/json is JSON with a semicolon behind it and with UTF-8 however it is written", () => {
    for (const type of [
      "application/json",
      "application/json;",
      "application/json; ",
      "application/json;charset=utf8",
      "application/json; charset=UTF-8",
      'application/json; charset="utf-8";',
      "Application/JSON ; Charset=utf8",
    ]) {
      expect([type, isJsonType(type)]).toEqual([type, true]);
    }
    for (const type of [
      "",
      "text/plain",
      "application/jsonx",
      "application/json; charset=latin1",
      "application/json; charset=utf-16",
      "application/json, application/json",
      "application/problem+json",
    ]) {
      expect([type, isJsonType(type)]).toEqual([type, false]);
    }
  });

  test("the server takes them", async () => {
    for (const type of ["application/json;", "application/json; charset=utf8"]) {
      const { status } = await push(url, [event()], { headers: { "content-type": type } });
      expect(status).toBe(200);
    }
  });
});

/** Sends the beginning of a body and no more. @returns what is answered, and after how long */
function stall(
  headers: readonly string[],
  begin: string,
): Promise<{ text: string; tookMs: number }> {
  const { hostname, port } = new URL(url);
  const startedMs = performance.now();
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `POST /v1/events HTTP/1.1\r\n${[...HEAD, ...headers].join("\r\n")}\r\n\r\n${begin}`,
      );
    });
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve({ text, tookMs: performance.now() - startedMs }));
  });
}

test("query parameters are ignored", async () => {
  const { status, body } = await push(url, [event()], { path: "/v1/events?dryRun=1&dryRun=2" });
  expect([status, body.results]).toMatchObject([200, [{ outcome: "UNKNOWN_TRACKING" }]]);
  expect(await ask("GET", "/v1/ping?a=b")).toMatchObject({ status: 200 });
});

describe("bodies that do not arrive", () => {
  test("one that is not there in time is answered 503, which is retried, and the connection is closed", async () => {
    const large = 300_000;
    const stalled = await Promise.all([
      stall(["Content-Length: 1000"], "{"),
      stall(["Transfer-Encoding: chunked"], "1\r\n{\r\n"),
      stall([`Content-Length: ${large}`], "{"),
    ]);
    const limits = [timeLimitMs(1_000), MESSAGE_TIME_LIMIT_MS, timeLimitMs(large)];
    for (const [at, { text, tookMs }] of stalled.entries()) {
      expect(text).toStartWith("HTTP/1.1 503 ");
      expect(text.toLowerCase()).toContain("retry-after: 1\r\n");
      expect(text.toLowerCase()).toContain("x-ratelimit-remaining: ");
      expect(text).toContain('"code":"BODY_TOO_SLOW"');
      expect(tookMs).toBeGreaterThanOrEqual((limits[at] ?? 0) - 50);
    }
  }, 300_000);

  test("a body has 10 s, and one more for each 100 KiB", () => {
    expect([timeLimitMs(0), timeLimitMs(102_400), timeLimitMs(BODY_LIMIT_BYTES)]).toEqual([
      10_000, 11_000, 61_200,
    ]);
  });

  test("an aborted upload is no error of ours: the log stays empty and the next message is processed", async () => {
    const { hostname, port } = new URL(url);
    for (const [headers, begin] of [
      ["Content-Length: 1000", "{"],
      ["Transfer-Encoding: chunked", "1\r\n{\r\n"],
    ] as const) {
      await new Promise<void>((resolve) => {
        const socket = connect(Number(port), hostname, () => {
          const head = [...HEAD, headers].join("\r\n");
          socket.write(`POST /v1/events HTTP/1.1\r\n${head}\r\n\r\n${begin}`, () =>
            socket.resetAndDestroy(),
          );
        });
        socket.on("error", () => {});
        socket.on("close", () => resolve());
      });
    }
    // By then the server has heard of both.
    for (let turn = 0; turn < 20; turn += 1) {
      expect((await push(url, [event()])).status).toBe(200);
    }
    expect(logged).toEqual([]);
  });
});

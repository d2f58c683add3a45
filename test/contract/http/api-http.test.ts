/** Document 1, "Errors", and the life of the api role: over a real socket. */
import { beforeAll, describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { BenchmarksUnavailable } from "#api/couriers/lane-request.ts";
import { CREATE_BODY_BYTES } from "#api/http/body-limits.ts";
import { startApi } from "#api/main.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { NO_CLICKHOUSE, openTestRuntime } from "#test/support/product/runtime.ts";

let token: string;

const runtime = forAll(() =>
  openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  }),
);
const api = forAll(() => startApi(runtime));
beforeAll(async () => {
  const answer = await send("POST", "/v2/auth/token", JSON.stringify({ apiKey: "key_acme_main" }));
  ({ token } = (await answer.json()) as { token: string });
});

function send(
  method: string,
  path: string,
  body: string | Uint8Array | ReadableStream | null = null,
): Promise<Response> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return fetch(`${api.url}${path}`, { method, headers, body });
}

async function expectError(answer: Response, status: number, code: string): Promise<void> {
  const body = (await answer.json()) as { message: string };
  expect(answer.status).toBe(status);
  const text = expect.any(String);
  expect(body).toEqual({ status, code, message: text, requestId: text } as never);
  expect(answer.headers.get("x-error-message")).toBe(body.message);
  expect(answer.headers.get("content-type")).toStartWith("application/json");
}

describe("errors", () => {
  test("404 for a path that does not exist", async () => {
    for (const path of ["/v2", "/v1/shipments", "/v2/shipments/1/2", "/v2/nothing"]) {
      await expectError(await send("GET", path), 404, "NOT_FOUND");
    }
  });

  test("405 for another method on a path that exists, with Allow", async () => {
    const cases = [
      ["DELETE", "/v2/shipments", "GET, HEAD, POST"],
      ["PUT", "/v2/shipments/17", "GET, HEAD, PATCH"],
      ["PUT", "/v2/shipments/17/", "GET, HEAD, PATCH"],
      ["GET", "/v2/shipments/import", "POST"],
      ["GET", "/v2/shipments/import/", "POST"],
      ["HEAD", "/v2/shipments/import", "POST"],
      ["OPTIONS", "/v2/shipments/import", "POST"],
      ["OPTIONS", "/v2/sandbox/1", "DELETE, GET, HEAD, PATCH, PUT"],
      ["GET", "/v2/auth/token", "POST"],
      ["PATCH", "/v2/couriers/delivery-times", "POST"],
    ] as const;
    for (const [method, path, allowed] of cases) {
      const answer = await send(method, path);
      expect([path, answer.headers.get("allow")]).toEqual([path, allowed]);
      if (method === "HEAD") expect(answer.status).toBe(405);
      else await expectError(answer, 405, "METHOD_NOT_ALLOWED");
    }
  });

  test("HEAD is answered wherever Allow names it", async () => {
    for (const path of ["/v2/shipments", "/v2/orders", "/v2/openapi.json"]) {
      const { status, headers } = await send("HEAD", path);
      expect([path, status]).toEqual([path, 200]);
      expect(headers.get("content-type")).toStartWith("application/json");
    }
  });

  test("400 for a body that is not UTF-8", async () => {
    const latin1 = Uint8Array.from([0x22, 0xe9, 0x22]);
    await expectError(await send("POST", "/v2/shipments", latin1), 400, "MALFORMED_BODY");
  });

  test("413 for a body over the limit, announced or counted while it arrives", async () => {
    const size = CREATE_BODY_BYTES + 1;
    const large = new Uint8Array(size).fill(32);
    await expectError(await send("POST", "/v2/shipments", large), 413, "BODY_TOO_LARGE");
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(large);
        controller.close();
      },
    });
    await expectError(await send("POST", "/v2/shipments", stream), 413, "BODY_TOO_LARGE");
  });

  test("401 comes before a fault of the body", async () => {
    const answer = await fetch(`${api.url}/v2/shipments`, { method: "POST", body: "{" });
    await expectError(answer, 401, "INVALID_TOKEN");
  });

  test("503 for benchmarks while ClickHouse is unavailable, a problem document with the members of the error body; the rest keeps serving", async () => {
    for (const path of ["delivery-times", "efficiency-index", "promise"]) {
      const detail = path === "promise" ? {} : { detail: "full" };
      const body = JSON.stringify({ destCap: "00118", ...detail });
      const answer = await send("POST", `/v2/couriers/${path}`, body);
      const reported = (await answer.json()) as { message: string };
      expect(answer.status).toBe(503);
      expect(answer.headers.get("content-type")).toBe("application/problem+json");
      expect(answer.headers.get("retry-after")).toBe("5");
      expect(answer.headers.get("x-error-message")).toBe(reported.message);
      expect(reported).toEqual({
        type: "/v2/errors#BENCHMARKS_UNAVAILABLE",
        title: "Service Unavailable",
        status: 503,
        code: "BENCHMARKS_UNAVAILABLE",
        detail: reported.message,
        message: expect.stringMatching(/./),
        requestId: answer.headers.get("x-request-id"),
      } as never);
      expect(Value.Check(BenchmarksUnavailable, reported)).toBe(true);
    }
    expect((await send("GET", "/readyz")).status).toBe(200);
    expect((await send("GET", "/v2/shipments")).status).toBe(200);
  });
});

describe("operation", () => {
  test("healthz, readyz and metrics answer on the same port, with the answer times by status class", async () => {
    expect((await send("GET", "/healthz")).status).toBe(200);
    await send("GET", "/v2/shipments?page=0");
    await eventually(async () => {
      const text = await (await send("GET", "/metrics")).text();
      return ["2xx", "4xx", "5xx"].every((status) =>
        new RegExp(`_seconds_count\\{role="api",status="${status}"\\} [1-9]`).test(text),
      );
    }, "the answers are counted");
  });
});

/** Document 3, "Delivery"; design, "One attempt is one POST": success is the status line, however odd the rest of an answer is. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type AddressInfo, createServer, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { parseCidr } from "#core/platform/network/cidr.ts";
import { V1_HEADERS, webhookHeaders } from "#core/webhooks/rules/webhook-request.ts";
import { v1MeaningOf } from "#core/webhooks/rules/webhook-v1.ts";
import {
  createTransport,
  HEADER_LIMIT_BYTES,
  type Transport,
} from "#core/webhooks/store/transport/transport.ts";
import { AUTHORITY } from "#test/support/servers/receiver.ts";

const allowed = ["127.0.0.0/8"].map(parseCidr).filter((cidr) => cidr !== null);
const LIMIT_MS = 500;

let transport: Transport;
const servers: Server[] = [];

beforeAll(async () => {
  transport = createTransport({ allowed, ca: AUTHORITY.pem });
});
afterAll(async () => {
  transport.close();
  for (const server of servers) server.close();
});

interface Raw {
  readonly url: string;
  /** Requests received, head and body. */
  readonly requests: string[];
}

/** Answers each request with the bytes given, in pieces that arrive one by one. */
async function answering(
  pieces: readonly (string | Buffer)[],
  { secure = true, ends = true } = {},
): Promise<Raw> {
  const requests: string[] = [];
  const serve = async (socket: import("node:net").Socket) => {
    socket.setNoDelay(true).on("error", () => {});
    for await (const request of socket) {
      requests.push(String(request));
      for (const piece of pieces) await new Promise((done) => socket.write(piece, done));
      if (ends) socket.end();
    }
  };
  const keys = secure ? await AUTHORITY.issue(["localhost"]) : null;
  const server = keys
    ? createTlsServer({ key: keys.private, cert: keys.cert }, serve)
    : createServer(serve);
  servers.push(server);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address() as AddressInfo;
  return { url: `${secure ? "https" : "http"}://localhost:${port}/`, requests };
}

const post = (url: string, own: Transport = transport) =>
  own.post(url, { "Content-Type": "application/json" }, "{}", { allowHttp: true });

const OK = "HTTP/1.1 200 OK\r\n";
const lines = (count: number, bytes: number) =>
  Array.from({ length: count }, (_, n) => `X-H${n}: ${"a".repeat(bytes)}\r\n`).join("");

for (const secure of [true, false]) {
  describe(secure ? "over TLS" : "without TLS, as webhooks v1 may be", () => {
    test.each([
      ["20 KB of header lines", `${OK}${lines(20, 1_000)}Content-Length: 2\r\n\r\nok`, "ok"],
      ["two equal Content-Length", `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`, "ok"],
      ["Content-Length: 2, 2", `${OK}Content-Length: 2, 2\r\n\r\nok`, "ok"],
      ["a folded header line", `${OK}X-A: one\r\n two\r\nContent-Length: 2\r\n\r\nok`, "ok"],
      ["a header name with a space", `${OK}Bad Header: x\r\nContent-Length: 2\r\n\r\nok`, "ok"],
      ["an empty Content-Length", `${OK}Content-Length: \r\n\r\nok`, "ok"],
      ["line ends of LF alone", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "ok"],
      ["no reason phrase", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "ok"],
      ["HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nok", "ok"],
      [
        "an interim answer before it",
        `HTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`,
        "ok",
      ],
      ["a body shorter than its Content-Length", `${OK}Content-Length: 20\r\n\r\nok`, "ok"],
      [
        "a body that is not chunked as it says",
        `${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n`,
        null,
      ],
      ["a body with 204", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", null],
      ["a head that is cut off", `${OK}Content-Le`, null],
    ])("a 2xx with %s is a success, and is posted once", async (_, text, body) => {
      const { url, requests } = await answering([text], { secure });
      const sent = await post(url);
      expect(sent).toMatchObject({
        kind: "answered",
        httpStatus: text.includes(" 204 ") ? 204 : 200,
      });
      expect(sent.responseBody).toBe(body);
      expect(requests).toHaveLength(1);
    });
  });
}

test("the status line counts wherever the head is cut in pieces", async () => {
  const text = `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`;
  for (const at of [3, 12, 20, 30, 50]) {
    const { url } = await answering([text.slice(0, at), text.slice(at)]);
    expect(await post(url)).toMatchObject({ kind: "answered", httpStatus: 200 });
  }
});

test("a status line that nothing follows until the time is over is the answer; half of one is none", async () => {
  const short = createTransport({ allowed, ca: AUTHORITY.pem, limitMs: LIMIT_MS });
  const whole = await answering([OK], { ends: false });
  expect(await post(whole.url, short)).toMatchObject({ kind: "answered", httpStatus: 200 });
  const half = await answering(["HTTP/1.1 20"], { ends: false });
  expect(await post(half.url, short)).toMatchObject({ kind: "unreachable", error: "timeout" });
  short.close();
});

test("256 KiB of header lines are read, such as Retry-After at their end; of longer ones the status line", async () => {
  for (const [bytes, expected] of [
    [HEADER_LIMIT_BYTES - 1_024, "120"],
    [HEADER_LIMIT_BYTES + 1_024, undefined],
  ] as const) {
    const head = `HTTP/1.1 503 No\r\nX-A: ${"a".repeat(bytes)}\r\n`;
    const { url } = await answering([`${head}Retry-After: 120\r\nContent-Length: 0\r\n\r\n`]);
    const sent = await post(url);
    expect(sent).toMatchObject({ kind: "answered", httpStatus: 503 });
    expect("retryAfter" in sent ? sent.retryAfter : undefined).toBe(expected);
  }
});

test("an odd answer that is no success keeps its status", async () => {
  const text = "HTTP/1.1 410 Gone\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nno";
  const { url } = await answering([text]);
  expect(await post(url)).toMatchObject({ kind: "answered", httpStatus: 410 });
});

test("what is no HTTP is no answer", async () => {
  const { url, requests } = await answering(["SSH-2.0-OpenSSH\r\n"]);
  expect(await post(url)).toMatchObject({ kind: "unreachable" });
  expect(requests).toHaveLength(1);
});

test("what one answer leaves on a connection is not the answer to the next request", async () => {
  const poison = `${OK}Content-Length: 2\r\n\r\nokHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n`;
  const { url } = await answering([poison], { ends: false });
  expect(await post(url)).toMatchObject({ httpStatus: 200 });
  expect(await post(url)).toMatchObject({ httpStatus: 200, responseBody: "ok" });
});

describe("a body is asked for uncompressed", () => {
  test("with Accept-Encoding: identity", async () => {
    const { url, requests } = await answering([`${OK}Content-Length: 2\r\n\r\nok`]);
    const facts = { eventId: "evt_1", type: "shipment.updated", attempt: 1, sentAtMs: 0 };
    for (const headers of [webhookHeaders(facts, { standardWebhooks: false }), V1_HEADERS]) {
      await transport.post(url, headers, "{}");
      expect(requests.pop()).toMatch(/\r\naccept-encoding: identity\r\n/i);
    }
  });

  const compressed = (coding: string, body: Buffer, length = body.length) =>
    Buffer.concat([
      Buffer.from(`${OK}Content-Encoding: ${coding}\r\nContent-Length: ${length}\r\n\r\n`),
      body,
    ]);
  const ACKNOWLEDGEMENT = '{"received": true}';
  test.each([
    ["gzip", gzipSync(ACKNOWLEDGEMENT)],
    ["x-gzip", gzipSync(ACKNOWLEDGEMENT)],
    ["deflate", deflateSync(ACKNOWLEDGEMENT)],
    ["deflate", deflateRawSync(ACKNOWLEDGEMENT)],
    ["br", brotliCompressSync(ACKNOWLEDGEMENT)],
    ["GZIP", gzipSync(ACKNOWLEDGEMENT)],
  ])("and is inflated where it comes in %s: webhooks v1 compare the text", async (coding, body) => {
    const { url } = await answering([compressed(coding, body)]);
    const sent = await post(url);
    expect(sent.responseBody).toBe(ACKNOWLEDGEMENT);
    expect(v1MeaningOf(sent, sent.responseBody, '{"received":true}')).toBe("delivered");
  });

  test("up to 16 KiB of text, of which 1 KiB is kept", async () => {
    for (const size of [16_384, 16_385, 10_000_000]) {
      const { url } = await answering([compressed("gzip", gzipSync("a".repeat(size)))]);
      const sent = await post(url);
      expect([sent.responseBody?.length, sent.responseSnippet?.length]).toEqual([16_384, 1_024]);
    }
  });

  test("as far as it came, and as it came where it is not of that coding", async () => {
    const text = Array.from({ length: 400 }, (_, n) => `line ${n}`).join("\n");
    const whole = gzipSync(text);
    const cut = await answering([
      compressed("gzip", whole.subarray(0, whole.length - 20), whole.length),
    ]);
    const sent = await post(cut.url);
    expect(sent).toMatchObject({ httpStatus: 200 });
    expect(text).toStartWith(sent.responseBody ?? "nothing");
    const plain = await answering([compressed("gzip", Buffer.from("plain"))]);
    expect((await post(plain.url)).responseBody).toBe("plain");
    const other = await answering([compressed("zstd", Buffer.from("as it came"))]);
    expect((await post(other.url)).responseBody).toBe("as it came");
  });
});

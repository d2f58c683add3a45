/**
 * What Bun's HTTP server does not take, which nothing can tell it to: `docs/couriers.md` ("Details worth knowing"),
 * `docs/merchants.md` ("When something is refused") and the limits of `/v1/docs` say so. If a test fails with a new Bun, it takes
 * more: change these pages.
 */
import { beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { startIngest } from "#ingest/main.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { rawRequest } from "#test/support/clients/raw-http.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

let url: string;

const runtime = forAll(() => openTestRuntime(testSetup()));
const ingest = forAll(() => startIngest(runtime));
beforeAll(async () => {
  url = ingest.url ?? "";
});

const HEAD = [
  "Host: x.example",
  "Authorization: Bearer tok_gls_1",
  "Content-Type: application/json",
];

/** All that comes back until the server closes the connection. */
function send(text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const { promise, resolve } = Promise.withResolvers<string>();
  let received = "";
  const socket = connect(Number(port), hostname, () => socket.write(text));
  socket.on("data", (chunk) => {
    received += chunk;
  });
  socket.on("error", () => {});
  socket.on("close", () => resolve(received));
  return promise;
}

function message() {
  const one = event({ trackingNumber: "NOBODYS" });
  const sentAt = new Date().toISOString();
  const envelope = { schemaVersion: "1.0", messageId: "one", sentAt, courier: "GLS_ITA" };
  return { one, text: JSON.stringify({ ...envelope, events: [one] }) };
}

test("a request that is sent before the answer to the one before it closes the connection; both can be repeated", async () => {
  const [first, second] = [message(), message()];
  const both = [first, second].map(({ text }) =>
    rawRequest("POST", "/v1/events", HEAD, { body: text }),
  );
  expect(await send(both.join(""))).toBe("");
  for (const { one } of [first, second]) expect((await push(url, [one])).status).toBe(200);
});

test("a chunked body with a trailer is answered 400 with an empty body; without one it is read", async () => {
  const { text } = message();
  const chunked = (trailer: string, ...more: string[]) =>
    rawRequest("POST", "/v1/events", [...HEAD, "Transfer-Encoding: chunked", ...more]).concat(
      `${text.length.toString(16)}\r\n${text}\r\n0\r\n${trailer}\r\n`,
    );
  expect(await send(chunked("X-Checksum: 1\r\n"))).toMatch(
    /^HTTP\/1\.1 400 [^\n]*\r\nConnection: close\r\n\r\n$/,
  );
  expect(await send(chunked("", "Connection: close"))).toStartWith("HTTP/1.1 200 ");
});

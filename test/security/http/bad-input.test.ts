/**
 * The running product against whoever speaks HTTP badly on purpose: fuzzed paths and headers in bulk, requests that two
 * servers read differently, headers without end, headers that never end, and bodies that grow when they are opened.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { event } from "#test/support/clients/courier.ts";
import { createShipments } from "#test/support/clients/event-stream.ts";
import { request, signIn } from "#test/support/clients/merchant.ts";
import { openRawConnection, statusesOf } from "#test/support/clients/raw-http.ts";
import { type Dice, dice } from "#test/support/data/schema-draws.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { INPUTS_DUE, RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { PANEL_TOKEN, type Product, startProduct } from "#test/support/product/product.ts";
import { NO_CLICKHOUSE } from "#test/support/product/runtime.ts";
import { freePort } from "#test/support/servers/free-port.ts";

/** A new one every run; put a printed one here to repeat its run. */
const SEED = Date.now() & 0x7fffffff;
/** Of the short form. */
const LEAST_INPUTS = 6_000;
/** Each has one request under way. */
const CONNECTIONS = 48;
const MIB = 1024 * 1024;
/** Over all ports. */
const SLOW_CONNECTIONS = 1_000;
/** What an answer may take while the slow ones hold their connections. */
const ANSWER_LIMIT_MS = 5_000;
/** Of memory, for bodies that would be some GiB when opened. */
const GROWTH_LIMIT_MIB = 400;

let product: Product;
let token: string;
let paths: readonly Described[];
/** Every port. */
let ports: readonly string[];

/** A port of the product and the calls that its description lists. */
interface Described {
  readonly url: string;
  readonly calls: ReadonlyArray<{ readonly method: string; readonly path: string }>;
  readonly bearer: string;
}

beforeAll(async () => {
  const [processors, analytics] = await Promise.all([freePort(), freePort()]);
  product = await startProduct(testSetup(), {
    PROCESSORS_PORT: String(processors),
    ANALYTICS_PORT: String(analytics),
    // Each request comes from an address of its own, so that no limit by address refuses it first.
    TRUSTED_PROXIES: "127.0.0.1",
    // Nothing listens there: what asks it is answered the documented 503 at once.
    CLICKHOUSE_URL: NO_CLICKHOUSE,
    CLICKHOUSE_READ_URL: NO_CLICKHOUSE,
  });
  const inside = [processors, analytics].map((port) => `http://127.0.0.1:${port}`);
  ports = [product.api, product.ingest, product.panel, ...inside];
  await createShipments(product, "BAD", 3);
  const body = { apiKey: "key_acme_main" };
  ({ token } = (await request("POST", `${product.api}/v2/auth/token`, body)).body);
  paths = await Promise.all([
    describedBy(product.api, "/v2/openapi.json", `Bearer ${token}`),
    describedBy(product.ingest, "/v1/openapi.json", "Bearer tok_gls_1"),
    describedBy(product.panel, "/panel/api/openapi.json", `Bearer ${PANEL_TOKEN}`),
  ]);
}, 300_000);

afterAll(() => product.end(), 300_000);

async function describedBy(url: string, document: string, bearer: string): Promise<Described> {
  const { body } = await request("GET", `${url}${document}`);
  const calls = Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
  );
  expect(calls.length).toBeGreaterThan(1);
  // Streams never end by themselves.
  const ending = calls.filter(({ path }) => !path.endsWith("/stream"));
  return { url, calls: ending, bearer };
}

const PIECES = [
  ...["..", "%2e%2e", "%00", "%ff", "%c0%ae", "%ed%a0%80", "%", "%2", "%u0041", "//", ";", "\\"],
  ...["__proto__", "constructor", "toString", "é".normalize("NFD"), "😀", "'", '"', "<", "{{7*7}}"],
  ...["-1", "0", "9007199254740993", "1e400", "NaN", "null", "a".repeat(300), "%0d%0aSet-Cookie:x"],
];
const NAMES = [
  ...["limit", "page", "cursor", "status", "from", "to", "sortBy", "sort", "q", "preview"],
  ...["__proto__", "constructor[prototype]", "limit[]", "", "%00"],
];
const HEADERS = [
  ...["Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "Content-Encoding", "Cookie"],
  ...["If-None-Match", "If-Modified-Since", "Range", "Origin", "Referer", "X-Request-Id", "Prefer"],
  ...[
    "traceparent",
    "Idempotency-Key",
    "X-Service-Signature",
    "X-Forwarded-Proto",
    "X-HTTP-Method",
  ],
];
const VALUES = [
  ...[
    "",
    " ",
    "\t",
    ",",
    ";",
    ";q=",
    "*/*;q=1.1",
    "gzip;q=-1",
    "bytes=0-0,1-1,-0",
    "W/",
    '"',
    "\\",
  ],
  ...["x".repeat(1_000), ",".repeat(500), "é", "\u0080ÿ", "a=b; ".repeat(100), "null", "__proto__"],
  ...["application/json; charset=utf-7", "00-0-0-0", `00-${"f".repeat(32)}-${"f".repeat(16)}-zz`],
];
const BODIES = [
  ...["", "{", "[]", "null", '"x"', "0", "{}", '{"__proto__":{"x":1}}', '{"a":1,"a":2}', "\u0000"],
  ...['{"x":"\\ud800"}', "[".repeat(600), `{"constructor":{"prototype":{"x":1}}}`, "ÿþ", "1e999"],
];

let address = 0;

/** A request that HTTP allows, and nobody sends. */
function strangeRequest({ calls, bearer }: Described, g: Dice): string {
  const { method, path } = g.pick(calls);
  // An operator's changes would take the keys away that the others call with.
  const isHarmless = method === "GET" || !bearer.endsWith(PANEL_TOKEN);
  const authorization = g.pick([
    "",
    "Bearer x",
    isHarmless ? bearer : "Bearer",
    bearer.slice(0, 7),
  ]);
  const piece = () => encodeURI(g.pick(PIECES)).replaceAll("%25", "%");
  const named = path.replaceAll(/\{\w+\}/g, () => (g.below(2) === 0 ? "1" : piece()));
  const cut = g.below(4) === 0 ? `${named.slice(0, g.below(named.length) + 1)}${piece()}` : named;
  const query = Array.from({ length: g.below(4) }, () => `${g.pick(NAMES)}=${piece()}`).join("&");
  const body = method === "GET" ? "" : g.pick(BODIES);
  address = (address + 1) & 0xffffff;
  const lines = Array.from({ length: g.below(5) }, () => `${g.pick(HEADERS)}: ${g.pick(VALUES)}`);
  return [
    `${method} ${cut}${query && `?${query}`} HTTP/1.1`,
    "Host: localhost",
    `Authorization: ${authorization}`,
    `X-Forwarded-For: 10.${address >> 16}.${(address >> 8) & 255}.${address & 255}`,
    ...lines,
    `Content-Length: ${Buffer.byteLength(body, "latin1")}`,
    "",
    body,
  ].join("\r\n");
}

async function expectAlive(): Promise<void> {
  for (const url of [product.api, product.ingest, product.panel]) {
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  }
  expect(process.kill(product.pid(), 0)).toBe(true);
  expect(product.output()).not.toContain("unexpected error");
}

async function residentMiB(): Promise<number> {
  const text = await Bun.file(`/proc/${product.pid()}/status`).text();
  return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) / 1_024;
}

test("strange paths, queries, headers and bodies in bulk are answered, never by a 5xx but a documented 503", async () => {
  const measuring = startMeasuring("Bad input", "fuzzed paths, queries, headers and bodies");
  const due = Math.max(LEAST_INPUTS, INPUTS_DUE);
  const until = performance.now() + RUN_MS;
  const statuses = new Map<number, number>();
  const odd: string[] = [];
  let asked = 0;
  const work = async (worker: number) => {
    const g = dice(SEED + worker);
    const port = paths[worker % paths.length] as Described;
    const connection = openRawConnection(port.url);
    while (asked < due || performance.now() < until) {
      const text = strangeRequest(port, g);
      const { status } = await connection.ask(text);
      asked += 1;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 0 || (status >= 500 && status !== 503)) {
        odd.push(`${status} ${JSON.stringify(text)}`);
      }
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, worker) => work(worker)));
  process.stderr.write(`bad input: seed ${SEED}, ${asked} requests\n`);
  expect(odd.slice(0, 5)).toEqual([]);
  // Not all of it is turned away at the first look.
  expect([...statuses.keys()].toSorted()).toEqual(expect.arrayContaining([200, 400, 401, 404]));
  await expectAlive();
  const count = (status: number) => statuses.get(status) ?? 0;
  await measuring.done({
    inputs: asked,
    further: {
      "answers of 5xx but 503, or none": odd.length,
      "answers of 503": count(503),
      "answers of 200": count(200),
      "processes ended": 0,
    },
  });
}, 3_600_000);

/** A second request, hidden in what one of two readers takes for the body of the first. */
const HIDDEN = "GET /v2/no-such-page-that-was-smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
const chunked = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

/** Header lines and body of requests whose length is not one and the same for every reader (RFC 9112, 6.3). */
const AMBIGUOUS: ReadonlyArray<readonly [what: string, lines: readonly string[], body: string]> = [
  ["both lengths", ["Content-Length: 5", "Transfer-Encoding: chunked"], `0\r\n\r\n${HIDDEN}`],
  [
    "both, chunked first",
    ["Transfer-Encoding: chunked", "Content-Length: 5"],
    `0\r\n\r\n${HIDDEN}`,
  ],
  ["two lengths", ["Content-Length: 0", `Content-Length: ${HIDDEN.length}`], HIDDEN],
  ["two lengths in one", [`Content-Length: 0, ${HIDDEN.length}`], HIDDEN],
  ["a length with a sign", [`Content-Length: +${HIDDEN.length}`], HIDDEN],
  ["a negative length", ["Content-Length: -1"], HIDDEN],
  ["a hexadecimal length", ["Content-Length: 0x10"], HIDDEN],
  ["a length past 2^64", ["Content-Length: 18446744073709551617"], HIDDEN],
  ["an unknown coding", ["Transfer-Encoding: xchunked"], chunked(HIDDEN)],
  ["chunked not last", ["Transfer-Encoding: chunked, identity"], chunked(HIDDEN)],
  ["chunked twice", ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "0\r\n\r\n"],
  ["a blank before the colon", ["Transfer-Encoding : chunked"], chunked(HIDDEN)],
  ["a folded coding", ["Transfer-Encoding:\r\n chunked"], chunked(HIDDEN)],
  [
    "a chunk size past 2^64",
    ["Transfer-Encoding: chunked"],
    `1${"0".repeat(16)}\r\nx\r\n0\r\n\r\n`,
  ],
  ["a negative chunk size", ["Transfer-Encoding: chunked"], "-1\r\nx\r\n0\r\n\r\n"],
  [
    "a chunk longer than its size",
    ["Transfer-Encoding: chunked"],
    `1\r\nxyz\r\n0\r\n\r\n${HIDDEN}`,
  ],
];

test("a request whose length two readers could read differently is refused, and hides no second one", async () => {
  const measuring = startMeasuring("Bad input", "requests with an ambiguous length (smuggling)");
  const found: string[] = [];
  let asked = 0;
  const addresses = [
    [product.api, "/v2/auth/token"],
    [product.ingest, "/v1/oauth/token"],
    [product.panel, "/panel/api/session"],
  ] as const;
  for (const [url, path] of addresses) {
    for (const [what, lines, body] of AMBIGUOUS) {
      const head = [`POST ${path} HTTP/1.1`, "Host: localhost", ...lines].join("\r\n");
      const answers = await statusesOf(url, `${head}\r\n\r\n${body}`);
      asked += 1;
      const isRefused = answers.length === 0 || (answers.length === 1 && answers[0] === 400);
      if (!isRefused) found.push(`${what}: ${answers.join(", ")}`);
    }
  }
  expect(found).toEqual([]);
  await expectAlive();
  await measuring.done({ inputs: asked, further: { "answers of 5xx": 0, "processes ended": 0 } });
}, 300_000);

test("headers of 1 KiB to 4 MiB, one or many, end at most their connection", async () => {
  const measuring = startMeasuring("Bad input", "oversized request lines and headers");
  const forms = (size: number) => [
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(size)}\r\n\r\n`,
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\n${"X-A: b\r\n".repeat(size / 8)}\r\n`,
    `GET /${"x".repeat(size)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\n${"x".repeat(size)}: b\r\n\r\n`,
    `${"G".repeat(size)} /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  ];
  const odd: string[] = [];
  let asked = 0;
  for (const url of [product.api, product.ingest, product.panel]) {
    for (const size of [1_024, 8_192, 16_384, 65_536, 4 * MIB]) {
      for (const [form, text] of forms(size).entries()) {
        const answers = await statusesOf(url, text);
        asked += 1;
        // 505: the runtime's own word for a first line that is none.
        const isOdd = answers.some((status) => status >= 500 && status !== 505);
        if (isOdd) odd.push(`${size} form ${form}: ${answers.join(", ")}`);
      }
    }
  }
  expect(odd).toEqual([]);
  await expectAlive();
  await measuring.done({ inputs: asked, further: { "processes ended": 0 } });
}, 300_000);

test("a thousand connections that send a byte now and then keep nobody else waiting, at any port", async () => {
  const measuring = startMeasuring(
    "Bad input",
    "connections that send a byte a second (slowloris)",
  );
  const before = await residentMiB();
  let open = 0;
  let opened = 0;
  const slow = Array.from({ length: SLOW_CONNECTIONS }, (_, at) => {
    const { hostname, port } = new URL(ports[at % ports.length] as string);
    const socket = connect(Number(port), hostname, () => {
      open += 1;
      opened += 1;
      socket.write("POST /v2/shipments HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      open -= 1;
    });
    return socket;
  });
  await eventually(() => opened === SLOW_CONNECTIONS, "all of them are connected");
  const dripping = setInterval(() => {
    for (const socket of slow) if (socket.writable) socket.write("x");
  }, 1_000);
  const merchant = await signIn(product.api, "key_acme_main");
  const longest = { ms: 0 };
  for (let calls = 0; calls < 50; calls += 1) {
    const fromMs = performance.now();
    expect((await merchant.call("GET", "/v2/shipments?limit=1")).status).toBe(200);
    expect((await fetch(`${ports[calls % ports.length]}/healthz`)).status).toBe(200);
    longest.ms = Math.max(longest.ms, performance.now() - fromMs);
  }
  expect(longest.ms).toBeLessThan(ANSWER_LIMIT_MS);
  const stillOpen = open;
  const grown = (await residentMiB()) - before;
  expect(grown).toBeLessThan(GROWTH_LIMIT_MIB);
  clearInterval(dripping);
  for (const socket of slow) socket.destroy();
  await expectAlive();
  const further = {
    "open beside 50 calls": stillOpen,
    "longest of the calls in ms": Math.round(longest.ms),
    "MiB of memory more": Math.round(grown),
    "processes ended": 0,
  };
  await measuring.done({ inputs: SLOW_CONNECTIONS, further });
}, 300_000);

test("bodies that grow a thousandfold when opened, or nest without end, are refused in little memory", async () => {
  const measuring = startMeasuring("Bad input", "gzip and JSON bombs");
  const before = await residentMiB();
  const envelope = (events: string) =>
    `{"schemaVersion":"1.0","messageId":"m","sentAt":"2026-11-20T10:00:00+01:00","courier":"GLS_ITA","events":[${events}]}`;
  const bombs: ReadonlyArray<readonly [what: string, body: string | Uint8Array, zipped: boolean]> =
    [
      ["200 MiB of zeros", gzipSync(new Uint8Array(200 * MIB)), true],
      ["gzip in gzip", gzipSync(gzipSync(new Uint8Array(100 * MIB))), true],
      [
        "members without end",
        Buffer.concat(Array(5_000).fill(gzipSync(new Uint8Array(65_536)))),
        true,
      ],
      ["half a member", gzipSync(envelope(JSON.stringify(event()))).subarray(0, 40), true],
      ["no gzip at all", "x", true],
      ["two million brackets", "[".repeat(2 * MIB), false],
      ["two million braces", '{"a":'.repeat(400_000), false],
      [
        "nested in an event",
        envelope(`{"attributes":${"[".repeat(100_000)}${"]".repeat(100_000)}}`),
        false,
      ],
      ["a number of a million digits", envelope(`{"x":${"9".repeat(MIB)}}`), false],
      ["a key of a million characters", envelope(`{"${"k".repeat(MIB)}":1}`), false],
    ];
  const wrong: string[] = [];
  for (const [what, body, zipped] of bombs) {
    const answer = await fetch(`${product.ingest}/v1/events`, {
      method: "POST",
      body,
      headers: {
        authorization: "Bearer tok_gls_1",
        "content-type": "application/json",
        ...(zipped && { "content-encoding": "gzip" }),
      },
    });
    const text = await answer.text();
    const isRefused = answer.status >= 400 && answer.status < 500;
    const isInvalid = answer.status === 200 && text.includes('"INVALID"');
    if (!isRefused && !isInvalid) wrong.push(`${what}: ${answer.status} ${text.slice(0, 200)}`);
  }
  expect(wrong).toEqual([]);
  await expectAlive();
  const grown = (await residentMiB()) - before;
  expect(grown).toBeLessThan(GROWTH_LIMIT_MIB);
  const further = { "answers of 5xx": 0, "MiB of memory more": Math.round(grown) };
  await measuring.done({ inputs: bombs.length, further });
}, 300_000);

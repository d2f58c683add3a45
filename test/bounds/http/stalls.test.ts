/** No single request holds the event loop for long, whatever its body, and bodies over a limit cost no memory. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApi } from "#api/main.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { BODY_TERMS, readBody } from "#core/platform/http/body/read-body.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { startPanel } from "#panel/main.ts";
import { startJobs } from "#processors/jobs/start.ts";
import { event } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { type LoopWatch, watchLoop } from "#test/support/loop-holds.ts";
import { item } from "#test/support/product/api.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const MIB = 1024 * 1024;
const HOLD_LIMIT_MS = 50;
/** A first one warms code up, and collecting the garbage of a test before may fall into any of them. */
const TRIES = 4;
/** All under way together, of 30 MB each: 286 MiB for whoever keeps them. */
const LARGE_BODIES = 10;
/** For those bodies; what the test process itself takes meanwhile, and has not given back, is about 30 MiB. */
const MEMORY_LIMIT_BYTES = 120 * MIB;

/** In a process of its own: what it does must not count. */
const SENDER = `
const [, method, url, token, path, form, type, encoding, atOnce] = process.argv;
const bytes = await Bun.file(path).bytes();
const stream = () => new ReadableStream({
  start(controller) {
    for (let at = 0; at < bytes.length; at += 65536) controller.enqueue(bytes.subarray(at, at + 65536));
    controller.close();
  },
});
const body = () => (method === "GET" ? undefined : form === "chunked" ? stream() : bytes);
const headers = { authorization: "Bearer " + token, "content-type": type, ...(encoding && { "content-encoding": encoding }) };
const statuses = Array.from({ length: Number(atOnce) }, async () => {
  const answer = await fetch(url, { method, body: body(), headers });
  await answer.arrayBuffer();
  return answer.status;
});
console.log([...new Set(await Promise.all(statuses))].join());
`;

let runtime: TestRuntime;
let api: Running;
let panel: Running;
let ingest: Running;
let jobs: Running;
let token: string;
let folder: string;
let watch: LoopWatch;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  });
  api = await startApi(runtime);
  panel = await startPanel(runtime);
  ingest = await startIngest(runtime);
  jobs = await startJobs(runtime);
  folder = await mkdtemp(join(tmpdir(), "waybill-stalls-"));
  const body = JSON.stringify({ apiKey: "key_acme_main" });
  const answer = await fetch(`${api.url}/v2/auth/token`, { method: "POST", body });
  ({ token } = (await answer.json()) as { token: string });
  watch = watchLoop();
});
afterAll(async () => {
  watch.stop();
  for (const role of [api, panel, ingest, jobs]) await role.stop();
  await rm(folder, { recursive: true, force: true });
  await runtime.end();
});

interface Call {
  readonly method?: string;
  readonly url: string;
  readonly bearer?: string;
  readonly body: string | Uint8Array;
  readonly form?: "chunked";
  readonly type?: string;
  readonly encoding?: "gzip";
  /** How often, all together. */
  readonly atOnce?: number;
}

/** @returns the path of a file with it */
async function written(body: string | Uint8Array): Promise<string> {
  const path = join(folder, "body");
  await writeFile(path, body);
  return path;
}

/** @returns its status; none when the answers differ */
async function send(call: Call): Promise<number> {
  return sendFile(call, await written(call.body));
}

/** @param path of its body */
async function sendFile(call: Call, path: string): Promise<number> {
  const { method = "POST", url, bearer = token, form = "" } = call;
  const { type = "application/json", encoding = "", atOnce = 1 } = call;
  const args = ["-e", SENDER, method, url, bearer, path, form, type, encoding, `${atOnce}`];
  const sender = Bun.spawn([process.execPath, ...args], { stdout: "pipe", stderr: "inherit" });
  return Number(await new Response(sender.stdout).text());
}

/** The same call again and again, until one has not held the loop too long; a call that always does never gets there. */
async function expectNoStall(
  call: Call,
  status: number | readonly number[],
  after = async (): Promise<void> => {},
): Promise<void> {
  // Writing the body holds this process too, and is not what is measured.
  const path = await written(call.body);
  const heldMs: number[] = [];
  for (let tries = 0; tries < TRIES && !heldMs.some((ms) => ms < HOLD_LIMIT_MS); tries += 1) {
    watch.longestMs();
    expect([status].flat()).toContain(await sendFile(call, path));
    await after();
    heldMs.push(watch.longestMs());
  }
  const { method = "POST", url, body } = call;
  const what = `${method} ${url} held the loop for ${heldMs.join(", ")} ms, try by try`;
  expect(Math.min(...heldMs), `${what}: ${body.slice(0, 300)}`).toBeLessThan(HOLD_LIMIT_MS);
}

const line = (at: number) => ({
  sku: `SKU-${at}`,
  name: "T-shirt blu, taglia L, cotone biologico",
  quantity: 2,
  price: 19.9,
  url: `https://shop.example/products/${at}?${"x".repeat(120)}`,
  notes: "to be wrapped ".repeat(5),
});
const lines = (count: number) => Array.from({ length: count }, (_, at) => line(at));
const shipments = (count: number, members: (at: number) => object) =>
  JSON.stringify({
    shipments: Array.from({ length: count }, (_, at) => item(`STALL-${at}`, { ...members(at) })),
  });
const filled = (size: number) => new Uint8Array(size).fill(0x20);

/**
 * Blocks that describe a code of their own and hold no data (RFC 1951, 3.2.7): each costs the making of its tables, and all of
 * them become nothing.
 */
function gzipOfEmptyBlocks(size: number): Buffer {
  const bits: number[] = [];
  const put = (value: number, width: number) => {
    for (let at = 0; at < width; at += 1) bits.push((value >> at) & 1);
  };
  const [repeatZero, one] = [18, 1];
  const codeLengthOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1];
  // Four of them end with a whole byte.
  for (let blocks = 0; blocks < 4; blocks += 1) {
    put(0, 1);
    put(2, 2);
    for (const [count, width] of [[0, 5] as const, [0, 5] as const, [14, 4] as const])
      put(count, width);
    for (const symbol of codeLengthOrder) put([repeatZero, one].includes(symbol) ? 1 : 0, 3);
    // 138 and 118 zeros: of the 257 literals only the end of the block has a code.
    for (const zeros of [138, 118]) {
      put(1, 1);
      put(zeros - 11, 7);
    }
    put(0, 3);
  }
  const blocks = Buffer.alloc(bits.length / 8);
  for (const [at, bit] of bits.entries())
    blocks[at >> 3] = (blocks[at >> 3] ?? 0) | (bit << (at & 7));
  const head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
  const tail = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  const many = Array(Math.floor((size - head.length - tail.length) / blocks.length)).fill(blocks);
  return Buffer.concat([head, ...many, tail]);
}

/** Until no import is under way. */
async function importsEnded(): Promise<void> {
  await eventually(
    async () => {
      const keys = await runtime.redis.keys("*");
      return !keys.some((key) => key.includes(":jobi:"));
    },
    "the imports have ended",
    60_000,
  );
}

describe("the merchant API", () => {
  const importUrl = () => `${api.url}/v2/shipments/import`;

  test("creates 100 shipments in 7 MiB, shows a page of them, and refuses 100 with hundreds of faults", async () => {
    const url = `${api.url}/v2/shipments`;
    const full = { orderItems: lines(230) };
    await expectNoStall({ url, body: shipments(100, () => full) }, [201, 207]);
    await expectNoStall({ method: "GET", url: `${url}?limit=100`, body: "" }, 200);
    const faulty = { orderItems: lines(200), parcels: Array(100).fill({ weight: -1 }), note: 1 };
    await expectNoStall({ url, body: shipments(100, () => faulty) }, 422);
  }, 300_000);

  test("takes 5,000 shipments in 30 MiB, processes them and returns the result", async () => {
    const body = shipments(5_000, () => ({ orderItems: lines(18) }));
    expect(body.length).toBeGreaterThan(28 * MIB);
    await expectNoStall({ url: importUrl(), body }, 202, importsEnded);
  }, 300_000);

  test("takes 5,000 shipments full of faults and lists all of them", async () => {
    const parcels = Array(20).fill({ weight: -1 });
    const body = shipments(5_000, () => ({ orderDate: 1, note: 1, parcels }));
    await expectNoStall({ url: importUrl(), body }, 202, importsEnded);
    const answer = await fetch(importUrl(), {
      method: "POST",
      body,
      headers: { authorization: `Bearer ${token}` },
    });
    const { jobId } = (await answer.json()) as { jobId: string };
    await importsEnded();
    const url = `${api.url}/v2/jobs/${jobId}`;
    await expectNoStall({ method: "GET", url, body: "" }, 200);
  }, 300_000);

  test.each([
    ["a list of ten million objects", `{"shipments":[],"x":[${"{},".repeat(10 * MIB)}0]}`, 400],
    ["one text of 8 MiB of escapes", `{"shipments":[],"x":"${"\\u00e9".repeat(1_390_000)}"}`, 400],
    ["shipments that are eight million zeros", `{"shipments":[${"0,".repeat(8 * MIB)}0]}`, 422],
    [
      "an object of two million keys",
      `{"shipments":[],${Array.from({ length: 2_000_000 }, (_, at) => `"k${at}":0`).join(",")}}`,
      400,
    ],
    ["30 MiB of white space", `{"shipments":[]${" ".repeat(30 * MIB)}}`, 400],
  ])(
    "refuses an import with %s",
    (_, body, status) => expectNoStall({ url: importUrl(), body }, status),
    120_000,
  );

  test("a page of 90 orders with 1,500 parcels and items each", async () => {
    const parcels = Array(1_000).fill({ weight: 1, content: "c".repeat(100) });
    const orders = Array.from({ length: 90 }, (_, at) =>
      JSON.stringify({ source: "shopify", reference: `O-${at}`, parcels, items: lines(500) }),
    );
    const url = `${panel.url}/panel/api/channels/acme-it/orders`;
    const bearer = runtime.secrets.panelToken;
    await expectNoStall({ url, bearer, body: orders.join("\n") }, 200);
    const page = `${api.url}/v2/orders?limit=100`;
    await expectNoStall({ method: "GET", url: page, body: "" }, 200);
  }, 300_000);
});

describe("the panel", () => {
  test("refuses a line of orders of 30 MiB of white space", async () => {
    const url = `${panel.url}/panel/api/channels/acme-it/orders`;
    const bearer = runtime.secrets.panelToken;
    await expectNoStall({ url, bearer, body: filled(30 * MIB) }, 200);
  }, 120_000);

  test("refuses 10,000 orders with hundreds of faults, line by line", async () => {
    const parcels = Array(100).fill({ weight: -1 });
    const text = JSON.stringify({ source: "nope", reference: 1, parcels });
    const url = `${panel.url}/panel/api/channels/acme-it/orders`;
    const bearer = runtime.secrets.panelToken;
    const body = Array(10_000).fill(text).join("\n");
    await expectNoStall({ url, bearer, body }, 200);
  }, 300_000);
});

describe("ingest", () => {
  const bearer = "tok_gls_1";
  const url = () => `${ingest.url}/v1/events`;
  const message = (events: readonly unknown[]) =>
    JSON.stringify({
      schemaVersion: "1.0",
      messageId: "stall",
      sentAt: "2026-11-20T10:00:00+01:00",
      courier: "GLS_ITA",
      events,
    });

  test("judges messages of nearly 5 MiB, full of attributes, of faults and of half surrogates", async () => {
    const members = <T>(value: T, count: number): Record<string, T> =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${at}`, value]));
    const attributes = (value: unknown, count: number) => ({
      ...event(),
      attributes: members(value, count),
    });
    for (const events of [
      Array.from({ length: 500 }, () => attributes("v".repeat(400), 20)),
      Array.from({ length: 500 }, () => ({ ...event(), ...members(1, 700) })),
      Array.from({ length: 500 }, () => ({ ...event(), ...members("\ud800", 400) })),
      [attributes("v".repeat(450), 10_000)],
      [attributes("v", 90_000)],
      [attributes(1, 19_000)],
    ]) {
      await expectNoStall({ url: url(), bearer, body: message(events) }, 200);
    }
    const tooMany = `{"events":[${"{},".repeat(99_998)}{}]}`;
    await expectNoStall({ url: url(), bearer, body: tooMany }, 400);
    const unknown = `{"x":[${"{},".repeat(1.5 * MIB)}0]}`;
    await expectNoStall({ url: url(), bearer, body: unknown }, 400);
  }, 300_000);

  test("reads messages of nearly 5 MiB event by event, whatever is wrong with them", async () => {
    const size = 4.9 * MIB;
    const good = message([event()]);
    const withEvents = (events: string) =>
      good.replace(/"events":.*$/, () => `"events":[${events}]}`);
    const withField = (field: string) => good.replace("{", () => `{${field},`);
    const twice = '"a":1,"a":1';
    const many = (text: string) => text.repeat(Math.floor(size / text.length));
    for (const [body, status] of [
      [
        withEvents(
          Array.from({ length: 500 }, () => `{"x":"${"y".repeat(9_900)}",${twice}}`).join(","),
        ),
        200,
      ],
      [withEvents(`{"attributes":{${many('"k":1,')}${twice}}}`), 200],
      [withEvents(`{${many('"":1,')}${twice}}`), 200],
      [withEvents(`{${many('"\\u0061":1,')}${twice}}`), 200],
      [withEvents(`{"x":"${many("\\n")}",${twice}}`), 200],
      [withEvents(`{"x":${"[".repeat(size / 2)}${"]".repeat(size / 2)}}`), 200],
      [
        withEvents(
          `{${Array.from({ length: 99 }, (_, at) => `"k${at}":[${"{},".repeat(16_000)}0]`)},${twice}}`,
        ),
        200,
      ],
      [withEvents(`${many("0,")}{${twice}}`), 400],
      [withEvents(`{${twice}}${" ".repeat(size)}`), 200],
      [withField(`${many('"":1,')}${twice}`), 200],
      [withField(`${many('"coorier":1,')}${twice}`), 200],
      [withField(`${many('"\\u0063":1,')}${twice}`), 200],
      [withField(`"x":${"[".repeat(size / 2)}${"]".repeat(size / 2)}`), 200],
      [withField(`"x":${"[".repeat(size)}`), 400],
      [withField(many('"')), 400],
    ] as const) {
      await expectNoStall({ url: url(), bearer, body }, status);
    }
  }, 300_000);

  test("inflates 5 MiB of blocks that hold nothing aside", async () => {
    const body = gzipOfEmptyBlocks(5 * MIB);
    await expectNoStall({ url: url(), bearer, body, encoding: "gzip" }, 400);
  }, 300_000);

  test("refuses a Content-Type of 15,000 blanks", async () => {
    const type = `application/json${" ".repeat(15_000)}x`;
    await expectNoStall({ url: url(), bearer, body: "{}", type }, 415);
  }, 300_000);
});

describe("bodies over the limit", () => {
  test("30 MB at the token route are 413 without credentials, announced or not, and leave no memory behind", async () => {
    const url = `${api.url}/v2/auth/token`;
    const body = filled(30_000_000);
    await send({ url, body: filled(5_000) });
    Bun.gc(true);
    const before = process.memoryUsage().rss;
    for (const form of [undefined, "chunked", undefined] as const) {
      const call = { url, body, ...(form && { form }) };
      await expectNoStall(call, 413);
      expect(await send({ ...call, atOnce: LARGE_BODIES })).toBe(413);
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(MEMORY_LIMIT_BYTES);
  }, 300_000);

  test.each([
    ["/v2/auth/token", "POST", 4_096],
    ["/v2/shipments/17/notifications", "POST", 65_536],
    ["/v2/shipments/17/stock-release", "POST", 65_536],
    ["/v2/couriers/delivery-times", "POST", 65_536],
    ["/v2/couriers/efficiency-index", "POST", 65_536],
    ["/v2/couriers/promise", "POST", 65_536],
    ["/v2/labels/confirm", "POST", 65_536],
    ["/v2/sandbox/1", "PUT", 131_072],
    ["/v2/sandbox/1", "PATCH", 131_072],
    ["/v2/labels", "POST", 1_048_576],
    ["/v2/shipments", "POST", 8_388_608],
    ["/v2/shipments/import", "POST", 33_554_432],
  ] as const)(
    "%s takes a %s of %d bytes, and one byte more is 413, announced or not",
    async (path, method, limit) => {
      const url = `${api.url}${path}`;
      expect(await send({ method, url, body: filled(limit) })).toBe(400);
      for (const form of [undefined, "chunked"] as const) {
        expect(await send({ method, url, body: filled(limit + 1), ...(form && { form }) })).toBe(
          413,
        );
      }
    },
    120_000,
  );

  test("a body of the panel takes 256 KiB, and one byte more is 413", async () => {
    const url = `${panel.url}/panel/api/clock`;
    const bearer = runtime.secrets.panelToken;
    expect(await send({ url, bearer, body: filled(262_144) })).toBe(400);
    expect(await send({ url, bearer, body: filled(262_145) })).toBe(413);
  });

  test("a shipment of an import has at most 512 KiB; with one byte more the import is 413", async () => {
    const url = `${api.url}/v2/shipments/import`;
    const padded = (size: number) => {
      const text = JSON.stringify(item("PADDED", { x: "" }));
      return text.replace('"x":""', `"x":"${"y".repeat(size - text.length)}"`);
    };
    expect(await send({ url, body: `{"shipments":[${padded(524_288)}]}` })).toBe(202);
    expect(await send({ url, body: `{"shipments":[${padded(524_289)}]}` })).toBe(413);
  });

  test("a caller without a token is refused before any of the body is read", async () => {
    for (const path of ["/v2/shipments", "/v2/shipments/import", "/v2/labels"]) {
      const status = await send({
        url: `${api.url}${path}`,
        bearer: "x",
        body: filled(20_000_000),
      });
      expect(status).toBe(401);
    }
    const url = `${panel.url}/panel/api/channels/acme-it/orders`;
    expect(await send({ url, bearer: "x", body: filled(20_000_000) })).toBe(401);
  });
});

describe("bodies that do not arrive", () => {
  /** A request over a connection of its own, which announces more than it sends. */
  function dripping(): Promise<{ request: Request; end: () => void }> {
    return new Promise((resolve) => {
      const server = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch(request) {
          const end = () => {
            socket.destroy();
            void server.stop(true);
          };
          resolve({ request, end });
          return new Promise<Response>(() => {});
        },
      });
      const socket = connect(server.port ?? 0, "127.0.0.1", () => {
        socket.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{");
      });
      socket.on("error", () => {});
    });
  }

  test("one that is not there in time is 408", async () => {
    const { request, end } = await dripping();
    const problem = await readBody(request, 1_000, { ...BODY_TERMS, timeLimitMs: () => 200 }).catch(
      (error) => error,
    );
    end();
    expect(problem).toBeInstanceOf(Problem);
    expect([problem.status, problem.code]).toEqual([408, "BODY_TOO_SLOW"]);
  });

  test("one that is cut short is 400", async () => {
    const { request, end } = await dripping();
    const reading = readBody(request, 1_000).catch((error) => error);
    end();
    const problem = await reading;
    expect([problem.status, problem.code]).toEqual([400, "MALFORMED_BODY"]);
  });
});

/** Document 2: authentication, body, envelope and limits of a message. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { advanceClock } from "#core/configuration/store/live.ts";
import { BODY_LIMIT_BYTES } from "#core/events/rules/event.ts";
import { applySetupFile, type Running } from "#core/runtime/runtime.ts";
import { applySetup } from "#core/setup/store/apply-setup.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import { startIngest } from "#ingest/main.ts";
import { event, push, pushBytes } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

let runtime: TestRuntime;
let ingest: Running;
let url: string;

beforeAll(async () => {
  const setup = testSetup();
  const roomy = { perSecond: 10_000, burst: 10_000 };
  setup.couriers?.push(
    {
      code: "SIGNED",
      tokens: ["tok_signed"],
      signingSecrets: ["s1", "s2"],
      signatureRequired: true,
    },
    { code: "LISTED", tokens: ["tok_listed"], allowedIps: ["10.0.0.0/8", "2001:db8::1"] },
    { code: "LOCAL", tokens: ["tok_local"], allowedIps: ["127.0.0.0/8"] },
    { code: "CLOSED", tokens: ["tok_closed"], acceptingEvents: false },
    { code: "SLOW", tokens: ["tok_slow"], rateLimit: { perSecond: 0.05, burst: 3 } },
    { code: "STRICT", tokens: ["tok_strict"], rateLimit: { perSecond: 0.05, burst: 1 } },
    { code: "BURSTY", tokens: ["tok_bursty"], rateLimit: { perSecond: 0.001, burst: 5 } },
    { code: "TWO_TOKENS", tokens: ["tok_old", "tok_new"], rateLimit: roomy },
  );
  runtime = await openTestRuntime(setup);
  ingest = await startIngest(runtime);
  url = ingest.url ?? "";
});

afterAll(async () => {
  await ingest.stop();
  await runtime.end();
});

const utf8 = (text: string) => new TextEncoder().encode(text);

describe("authentication (document 2, Authentication)", () => {
  test("1: a missing or unknown token is 401", async () => {
    expect((await push(url, [event()], { token: null })).status).toBe(401);
    expect((await push(url, [event()], { token: "nobody" })).status).toBe(401);
  });

  test("1: during a rotation both tokens work", async () => {
    for (const token of ["tok_old", "tok_new"]) {
      expect((await push(url, [event()], { token, courier: "TWO_TOKENS" })).status).toBe(200);
    }
  });

  test("1: a token that the setup no longer names stops working at once", async () => {
    const couriers = [{ code: "BRIEF", tokens: ["tok_brief"] }];
    await applySetupFile(runtime, { couriers });
    expect((await push(url, [event()], { token: "tok_brief", courier: "BRIEF" })).status).toBe(200);
    await applySetupFile(runtime, { couriers: [{ code: "BRIEF", tokens: ["tok_other"] }] });
    expect((await push(url, [event()], { token: "tok_brief", courier: "BRIEF" })).status).toBe(401);
  });

  test("1, 2: a message begun for a courier as it was is judged for the courier as it is", async () => {
    const to = { token: "tok_turning", courier: "TURNING" };
    const known = { code: "TURNING", tokens: ["tok_turning"], allowedIps: [] };
    await applySetupFile(runtime, { couriers: [{ ...known, signingSecrets: ["before"] }] });
    expect((await push(url, [event()], { ...to, secrets: ["before"] })).status).toBe(200);
    // As another process applies it: this one learns of it from the store, with its next request.
    const apply = (courier: object) =>
      applySetup(
        runtime.redis,
        runtime.secrets.vault,
        { couriers: [{ ...known, ...courier }] },
        runtime.live.now(),
      );
    await apply({ signingSecrets: ["after"] });
    expect((await push(url, [event()], { ...to, secrets: ["after"] })).status).toBe(200);
    expect((await push(url, [event()], { ...to, secrets: ["before"] })).status).toBe(403);
    await apply({ signingSecrets: ["after"], allowedIps: ["10.0.0.0/8"] });
    const refused = await push(url, [event()], { ...to, secrets: ["after"] });
    expect([refused.status, refused.body.code]).toEqual([403, "ADDRESS_NOT_ALLOWED"]);
  });

  test("2: a signature of either secret is accepted, with several v1 values too", async () => {
    const to = { token: "tok_signed", courier: "SIGNED" };
    for (const secrets of [["s1"], ["s2"], ["wrong", "s2"]]) {
      expect((await push(url, [event()], { ...to, secrets })).status).toBe(200);
    }
  });

  test("2: a signature that is present is verified, even where it is not required", async () => {
    expect((await push(url, [event()], { secrets: ["sig_gls_1"] })).status).toBe(200);
    const answer = await push(url, [event()], { secrets: ["wrong"] });
    expect([answer.status, answer.body.code]).toEqual([403, "BAD_SIGNATURE"]);
    expect(answer.body["detail"]).toMatch(
      /mismatch\. Sign t, a full stop and the bytes as .*t=\d{10}\.$/,
    );
    const packed = await push(url, [event()], { secrets: ["wrong"], gzip: true });
    expect(packed.body["detail"]).toInclude("the compressed bytes as transmitted");
  });

  test("2: a signature of any size of body is verified before the body is read", async () => {
    const headOf = (padding: string) =>
      JSON.stringify({ schemaVersion: "1.0", messageId: "sized", events: [], padding });
    for (const bytes of [64 * 1024, 64 * 1024 + 1, 300_000]) {
      const body = headOf("p".repeat(bytes - headOf("").length));
      expect(body.length).toBe(bytes);
      for (const [secret, code] of [
        ["wrong", "BAD_SIGNATURE"],
        ["sig_gls_1", "INVALID_ENVELOPE"],
      ] as const) {
        const answer = await fetch(`${url}/v1/events`, {
          method: "POST",
          headers: {
            authorization: "Bearer tok_gls_1",
            "content-type": "application/json",
            "x-service-signature": sign([secret], body, runtime.live.now()),
          },
          body,
        });
        expect(((await answer.json()) as { code: string }).code).toBe(code);
      }
    }
  });

  test("2: mandatory signing refuses an unsigned message", async () => {
    const answer = await push(url, [event()], { token: "tok_signed", courier: "SIGNED" });
    expect([answer.status, answer.body.code]).toEqual([403, "SIGNATURE_REQUIRED"]);
  });

  test("2: t may differ from the service clock by 5 minutes both ways and no more", async () => {
    for (const [offsetMs, status] of [
      [-290_000, 200],
      [290_000, 200],
      [-310_000, 403],
      [310_000, 403],
    ] as const) {
      const options = { secrets: ["sig_gls_1"], nowMs: Date.now() + offsetMs };
      expect((await push(url, [event()], options)).status).toBe(status);
    }
  });

  test("3: under gzip the signature is over the compressed bytes", async () => {
    expect((await push(url, [event()], { gzip: true, secrets: ["sig_gls_1"] })).status).toBe(200);
  });

  test("4: a source address off the allowlist is 403, one on it passes", async () => {
    const refused = await push(url, [event()], { token: "tok_listed", courier: "LISTED" });
    expect([refused.status, refused.body.code]).toEqual([403, "ADDRESS_NOT_ALLOWED"]);
    expect((await push(url, [event()], { token: "tok_local", courier: "LOCAL" })).status).toBe(200);
  });

  test("6: the courier field must match the token, else 403", async () => {
    const answer = await push(url, [event()], { courier: "BRT_ITA" });
    expect([answer.status, answer.body.code]).toEqual([403, "COURIER_MISMATCH"]);
  });
});

describe("activation (document 2, What the service does)", () => {
  test("events answers 404 until activated, validate and ping are live", async () => {
    const to = { token: "tok_closed", courier: "CLOSED" };
    expect((await push(url, [event()], to)).status).toBe(404);
    expect((await push(url, [event()], { ...to, path: "/v1/events/validate" })).status).toBe(200);
    const ping = await fetch(`${url}/v1/ping`, { headers: { authorization: "Bearer tok_closed" } });
    expect(await ping.json()).toEqual({
      courier: "CLOSED",
      environment: "production",
      schemaVersions: ["1.0"],
    });
  });
});

describe("body (document 2, Errors and Limits)", () => {
  test("415: another content type or encoding", async () => {
    const headers = { "content-type": "text/plain" };
    expect((await push(url, [event()], { headers })).status).toBe(415);
    const brotli = { "content-encoding": "br" };
    expect((await push(url, [event()], { headers: brotli })).status).toBe(415);
  });

  test("400: what is not gzip, not UTF-8, not JSON, or nested without end", async () => {
    const broken: [Uint8Array, Record<string, string>][] = [
      [utf8("{}"), { "content-encoding": "gzip" }],
      [new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), {}],
      [utf8("{"), {}],
      [utf8(""), {}],
      [utf8(`${"[".repeat(200_000)}${"]".repeat(200_000)}`), {}],
    ];
    for (const [bytes, headers] of broken) {
      expect((await pushBytes(url, bytes, { headers })).status).toBe(400);
    }
  });

  test("gzip members in a row are one text; behind the last, zero bytes are ignored and others are 400", async () => {
    const text = utf8(JSON.stringify(envelopeOf([event()], "")));
    const members = [gzipSync(text.subarray(0, 40)), gzipSync(text.subarray(40))];
    const send = async (...behind: Uint8Array[]) => {
      const headers = { "content-encoding": "gzip" };
      return (await pushBytes(url, Buffer.concat([...members, ...behind]), { headers })).status;
    };
    expect(await send()).toBe(200);
    expect(await send(new Uint8Array(512))).toBe(200);
    expect(await send(utf8("\n"))).toBe(400);
    expect(await send(utf8("{}"))).toBe(400);
    const page = await (await fetch(`${url}/v1/docs`)).text();
    expect(page).toContain("zero bytes after the end of the gzip stream");
    expect(page).not.toContain("text after the end of the gzip stream");
  });

  test("413: a body of 5 MiB passes, one byte more does not", async () => {
    const shell = JSON.stringify(envelopeOf([event()], ""));
    const padded = (size: number) =>
      utf8(JSON.stringify(envelopeOf([event()], "x".repeat(size - utf8(shell).length))));
    const full = padded(BODY_LIMIT_BYTES);
    const excess = padded(BODY_LIMIT_BYTES + 100);
    const grown = utf8(
      `${new TextDecoder().decode(full)}${" ".repeat(BODY_LIMIT_BYTES - full.length)}`,
    );
    expect(grown.length).toBe(BODY_LIMIT_BYTES);
    expect((await pushBytes(url, grown)).status).toBe(200);
    expect((await pushBytes(url, grown, { gzip: true })).status).toBe(200);
    expect((await pushBytes(url, excess)).status).toBe(413);
    const oneMore = utf8(`${new TextDecoder().decode(grown)} `);
    expect((await pushBytes(url, oneMore)).status).toBe(413);
    expect((await pushBytes(url, oneMore, { gzip: true })).status).toBe(413);
  });

  test("413: a bomb is stopped at the limit while it inflates", async () => {
    const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024, 0x20));
    const before = process.memoryUsage().rss;
    const answer = await pushBytes(url, bomb, { headers: { "content-encoding": "gzip" } });
    expect(answer.status).toBe(413);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  });

  test("413: a chunked body is counted while it arrives", async () => {
    const chunk = new Uint8Array(1024 * 1024).fill(0x20);
    const body = new ReadableStream({
      start(controller) {
        for (let sent = 0; sent < 6; sent += 1) controller.enqueue(chunk);
        controller.close();
      },
    });
    const response = await fetch(`${url}/v1/events`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", authorization: "Bearer tok_gls_1" },
    });
    expect(response.status).toBe(413);
  });
});

function envelopeOf(events: readonly unknown[], filler: string) {
  return {
    schemaVersion: "1.0",
    messageId: "m",
    sentAt: "2026-11-20T10:00:00+01:00",
    courier: "GLS_ITA",
    events,
    filler,
  };
}

describe("envelope (document 2, Envelope)", () => {
  const bad: [string, Record<string, unknown>][] = [
    ["no messageId", { messageId: undefined }],
    ["a messageId of 129 characters", { messageId: "m".repeat(129) }],
    ["sentAt without offset", { sentAt: "2026-11-20T10:00:00" }],
    ["no events", { events: [] }],
    ["events that are no list", { events: {} }],
    ["501 events", { events: Array.from({ length: 501 }, () => event()) }],
    ["no schemaVersion", { schemaVersion: undefined }],
  ];
  test.each(bad)("400: %s", async (_, envelope) => {
    const answer = await push(url, [event()], { envelope });
    expect([answer.status, answer.body.code]).toEqual([400, "INVALID_ENVELOPE"]);
    expect(answer.body.errors.length).toBeGreaterThan(0);
  });

  test("400: another major version names the supported ones", async () => {
    const answer = await push(url, [event()], { envelope: { schemaVersion: "2.0" } });
    expect([answer.status, answer.body.code]).toEqual([400, "UNSUPPORTED_SCHEMA_VERSION"]);
    expect(answer.body.detail).toContain("1.0");
  });

  test("a later minor version, unknown fields, 500 events and 128 characters are accepted", async () => {
    const envelope = { schemaVersion: "1.7", unknown: true, messageId: "m".repeat(128) };
    const events = Array.from({ length: 500 }, () => event());
    const answer = await push(url, events, { envelope });
    expect(answer.status).toBe(200);
    expect(answer.body.messageId).toBe(envelope.messageId);
    expect(answer.body.results.length).toBe(500);
  });
});

describe("rate (document 2, Limits)", () => {
  test("the burst passes, one more is 429 with Retry-After, and the rate refills", async () => {
    const to = { token: "tok_slow", courier: "SLOW" };
    const answers = [];
    for (let sent = 0; sent < 4; sent += 1) answers.push(await push(url, [event()], to));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    const [first, , , last] = answers;
    expect(first?.headers.get("x-ratelimit-limit")).toBe("3");
    expect(first?.headers.get("x-ratelimit-remaining")).toBe("2");
    expect(last?.headers.get("x-ratelimit-remaining")).toBe("0");
    expect(Number(last?.headers.get("retry-after"))).toBeWithin(10, 21);
    await advanceClock(runtime.redis, 40);
    const later = [await push(url, [event()], to), await push(url, [event()], to)];
    expect(later.map(({ status }) => status)).toEqual([200, 200]);
    expect((await push(url, [event()], to)).status).toBe(429);
  });

  test("a message over the rate is 429 whatever it holds", async () => {
    const to = { token: "tok_strict", courier: "STRICT" };
    const statusOf = async (answer: ReturnType<typeof push>) => (await answer).status;
    expect(await statusOf(push(url, [event()], to))).toBe(200);
    // The first one over the rate has been begun, since the one before it was admitted; the others have not.
    expect(await statusOf(push(url, [event()], { ...to, secrets: ["wrong"] }))).toBe(429);
    expect(await statusOf(push(url, [event()], { ...to, secrets: ["wrong"] }))).toBe(429);
    await advanceClock(runtime.redis, 20);
    expect(await statusOf(push(url, [event()], to))).toBe(200);
    expect(await statusOf(pushBytes(url, utf8("no JSON"), to))).toBe(429);
    expect(await statusOf(push(url, [event()], to))).toBe(429);
  });

  test("of requests that come together the burst passes and tells 4 to 0 left, the others are 429", async () => {
    const to = { token: "tok_bursty", courier: "BURSTY" };
    const answers = await Promise.all(Array.from({ length: 12 }, () => push(url, [event()], to)));
    const [passed, refused] = [200, 429].map((status) =>
      answers.filter((answer) => answer.status === status),
    );
    const left = passed?.map(({ headers }) => Number(headers.get("x-ratelimit-remaining")));
    expect(left?.sort()).toEqual([0, 1, 2, 3, 4]);
    expect(refused?.length).toBe(7);
  });

  test("the rate headers stand on every response, also on errors", async () => {
    const answers = [
      await push(url, [event()]),
      await push(url, [event()], { token: null }),
      await push(url, [event()], { courier: "BRT_ITA" }),
      await pushBytes(url, utf8("{")),
      await push(url, [event()], { token: "tok_closed", courier: "CLOSED" }),
    ];
    for (const { headers } of answers) {
      expect(headers.get("x-ratelimit-limit")).toMatch(/^\d+$/);
      expect(headers.get("x-ratelimit-remaining")).toMatch(/^\d+$/);
    }
  });
});

describe("errors (document 2, Errors)", () => {
  test("every 4xx body is a problem document", async () => {
    const answers = [
      await push(url, [event()], { token: null }),
      await pushBytes(url, utf8("{")),
      await push(url, [event()], { path: "/v1/nothing" }),
    ];
    for (const { headers, status, body } of answers) {
      expect(headers.get("content-type")).toBe("application/problem+json");
      expect(body.status).toBe(status);
      expect(body.code).toMatch(/^[A-Z_]+$/);
    }
  });

  test("an unknown path is 404, a wrong method 405 with Allow", async () => {
    expect((await fetch(`${url}/v1/other`)).status).toBe(404);
    const wrong = await fetch(`${url}/v1/events`);
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"]);
  });
});

/** Document 1, "Authentication": tokens, and what is checked at every call. */
import { describe, expect, test } from "bun:test";
import { createTokens } from "#api/auth/tokens.ts";
import { applySetupFile } from "#core/runtime/runtime.ts";
import type { SetupApiKey, SetupFile } from "#core/setup/rules/setup.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestApi } from "#test/support/product/api.ts";

const api = forAll(() =>
  openTestApi(withKeys([{ code: "reader", key: "key_reader", scopes: ["jobs:read"] }])),
);

/** The setup of the tests with further keys on the channel acme-it. */
function withKeys(keys: SetupApiKey[]): SetupFile {
  const setup = testSetup();
  setup.companies?.[0]?.channels?.[0]?.apiKeys?.push(...keys);
  return setup;
}

function exchange(apiKey: unknown) {
  return api.call("POST", "/v2/auth/token", { body: { apiKey } });
}

describe("POST /v2/auth/token", () => {
  test("200 with token, scopes, type, life, rate limit and cache", async () => {
    const { status, headers, body } = await exchange("key_acme_main");
    expect(status).toBe(200);
    expect(body).toEqual({
      token: expect.any(String),
      scopes: expect.arrayContaining(["shipments:read", "shipments:write"]),
      token_type: "Bearer",
      expires_in: 86_400,
      rate_limit: { refill_rate: 100_000, bucket_size: 100_000 },
      cache: false,
    });
    expect(headers.get("x-auth-cache")).toBe("MISS");
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test("the second exchange is served from the cache and says so, with a token of its own 24 h", async () => {
    await exchange("key_beta_main");
    const { headers, body } = await exchange("key_beta_main");
    expect(headers.get("x-auth-cache")).toBe("HIT");
    expect(body.cache).toBe(true);
    expect(body.expires_in).toBe(86_400);
  });

  test("a cached key is verified again once the configuration has changed", async () => {
    await exchange("key_acme_outlet");
    const setup = testSetup();
    setup.platforms?.push("prestashop");
    await applySetupFile(api.runtime, setup);
    expect((await exchange("key_acme_outlet")).headers.get("x-auth-cache")).toBe("MISS");
    expect((await exchange("key_acme_outlet")).headers.get("x-auth-cache")).toBe("HIT");
  });

  test("the cache forgets a key after minutes", async () => {
    await exchange("key_acme_outlet");
    await api.advance(301);
    expect((await exchange("key_acme_outlet")).headers.get("x-auth-cache")).toBe("MISS");
  });

  test("400 when the body is missing or is not JSON", async () => {
    for (const text of [undefined, "", "{", "apiKey=key_acme_main"]) {
      const answer = await api.call("POST", "/v2/auth/token", text === undefined ? {} : { text });
      expect(answer.status).toBe(400);
      expect(answer.body).toEqual({
        status: 400,
        code: "MALFORMED_BODY",
        message: expect.any(String),
        requestId: expect.any(String),
      });
      expect(answer.headers.get("x-error-message")).toBe(answer.body.message);
    }
  });

  test("422 when apiKey is missing or is no text", async () => {
    const missing = await api.call("POST", "/v2/auth/token", { body: {} });
    expect(missing.status).toBe(422);
    expect(missing.body.violations).toEqual([
      { path: "apiKey", code: "REQUIRED", message: expect.any(String) },
    ]);
    expect((await exchange(7)).body.violations[0].code).toBe("WRONG_TYPE");
  });

  test("401 for an unknown key", async () => {
    const { status, body } = await exchange("key_of_nobody");
    expect([status, body.code]).toEqual([401, "INVALID_API_KEY"]);
  });

  test("401 for an inactive key, also when it was cached before", async () => {
    await applySetupFile(api.runtime, withKeys([{ code: "leaver", key: "key_leaver" }]));
    expect((await exchange("key_leaver")).status).toBe(200);
    await applySetupFile(
      api.runtime,
      withKeys([{ code: "leaver", key: "key_leaver", active: false }]),
    );
    expect((await exchange("key_leaver")).status).toBe(401);
  });

  test("several keys of one channel work side by side, each with its own scopes", async () => {
    const { body } = await exchange("key_reader");
    expect(body.scopes).toEqual(["jobs:read"]);
    expect((await exchange("key_acme_main")).body.scopes.length).toBeGreaterThan(1);
  });
});

describe("every other call", () => {
  const search = (token?: string) =>
    api.call("GET", "/v2/shipments", token === undefined ? {} : { token });

  /** @param why what the answer says of the token, and its challenge where one was sent (RFC 6750, 3.1) */
  async function expectRefused(token: string | undefined, why: string): Promise<void> {
    const { status, body, headers } = await search(token);
    expect([status, body.code]).toEqual([401, "INVALID_TOKEN"]);
    expect(body.message).toStartWith(why);
    expect(body.message).toInclude("Get a token with POST /v2/auth/token");
    const challenge = `Bearer error="invalid_token", error_description="${why}`;
    const expected = token === undefined ? "Bearer" : challenge;
    expect(headers.get("www-authenticate")).toStartWith(expected);
    expect(headers.get("x-error-message")).toBe(body.message);
    expect(headers.get("x-ratelimit-limit")).toBeNull();
  }

  test("401 without a token, with a text that is none, and with a changed one", async () => {
    const token = await api.token("key_acme_main");
    const [head, payload = "", signature] = token.split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString());
    const forged = Buffer.from(JSON.stringify({ ...claims, channelId: 2 })).toString("base64url");
    await expectRefused(undefined, "The access token is missing");
    await expectRefused("not-a-token", "The access token is malformed: it is not a JWT");
    await expectRefused(
      "key_acme_main",
      "The access token is malformed: an API key is not a token",
    );
    await expectRefused("two words", "The header Authorization is malformed");
    await expectRefused(`${head}.${forged}.${signature}`, "The access token is wrong");
    const none = Buffer.from(JSON.stringify({ alg: "none" })).toString("base64url");
    await expectRefused(`${none}.${forged}.x`, "The access token is wrong");
  });

  test("401 for a token that another secret signed", async () => {
    const claims = { keyId: 1, channelId: 1, companyId: 1, scopes: ["shipments:read"] };
    const other = createTokens("another-secret-0123456789");
    const minted = await other.mint(claims, api.runtime.live.now());
    await expectRefused(minted, "The access token is wrong");
  });

  test("a token is good for exactly 24 hours of the service clock", async () => {
    const { body } = await exchange("key_acme_main");
    await api.advance(86_400 - 30);
    expect((await search(body.token)).status).toBe(200);
    await api.advance(31);
    await expectRefused(body.token, "The access token expired at 20");
  });

  test("403 for a token without channel context", async () => {
    const claims = { keyId: 1, channelId: null, companyId: null, scopes: ["shipments:read"] };
    const tokens = createTokens(api.runtime.secrets.jwtSecret);
    const { status, body } = await search(await tokens.mint(claims, api.runtime.live.now()));
    expect([status, body.code]).toEqual([403, "NO_CHANNEL_CONTEXT"]);
  });

  test("403 for a token without the scope of the endpoint", async () => {
    const { body: answer } = await exchange("key_reader");
    const { token } = answer;
    for (const [method, path] of [
      ["GET", "/v2/shipments"],
      ["GET", "/v2/shipments/17"],
      ["POST", "/v2/shipments"],
      ["POST", "/v2/couriers/delivery-times"],
    ] as const) {
      const { status, body, headers } = await api.call(method, path, { token });
      expect([status, body.code]).toEqual([403, "MISSING_SCOPE"]);
      expect(headers.get("x-ratelimit-limit")).toBe("100000");
    }
  });

  test("shipments:read reads and does not write; shipments:write writes and does not read", async () => {
    await applySetupFile(
      api.runtime,
      withKeys([
        { code: "r", key: "key_read_only", scopes: ["shipments:read"] },
        { code: "w", key: "key_write_only", scopes: ["shipments:write"] },
      ]),
    );
    const reader = (await exchange("key_read_only")).body.token;
    const writer = (await exchange("key_write_only")).body.token;
    const create = (token: string) =>
      api.call("POST", "/v2/shipments", { token, body: { shipments: [] } });
    expect((await search(reader)).status).toBe(200);
    expect((await create(reader)).status).toBe(403);
    expect((await search(writer)).status).toBe(403);
    expect((await create(writer)).status).toBe(422);
  });

  test("a scope taken from the key stops working at once, a new one needs a new token", async () => {
    const key = { code: "moving", key: "key_moving" };
    await applySetupFile(api.runtime, withKeys([{ ...key, scopes: ["shipments:read"] }]));
    const { token } = (await exchange("key_moving")).body;
    expect((await search(token)).status).toBe(200);
    await applySetupFile(api.runtime, withKeys([{ ...key, scopes: ["shipments:write"] }]));
    expect((await search(token)).status).toBe(403);
    const body = { shipments: [] };
    expect((await api.call("POST", "/v2/shipments", { token, body })).status).toBe(403);
  });

  test("a revoked key stops working at once, in every process", async () => {
    const another = await api.another();
    const key = { code: "revoked", key: "key_revoked" };
    await applySetupFile(api.runtime, withKeys([key]));
    const { token } = (await exchange("key_revoked")).body;
    expect((await another("GET", "/v2/shipments", { token })).status).toBe(200);
    await applySetupFile(api.runtime, withKeys([{ ...key, active: false }]));
    expect((await another("GET", "/v2/shipments", { token })).status).toBe(401);
    await expectRefused(token, "The API key of the access token is not active");
  });

  test("an inactive channel stops working at once: 401 with its tokens and for its keys", async () => {
    const token = (await exchange("key_acme_outlet")).body.token;
    const setup = testSetup();
    Object.assign(setup.companies?.[0]?.channels?.[1] ?? {}, { active: false });
    await applySetupFile(api.runtime, setup);
    await expectRefused(token, "The channel of the access token is not active");
    expect((await exchange("key_acme_outlet")).status).toBe(401);
    Object.assign(setup.companies?.[0]?.channels?.[1] ?? {}, { active: true });
    await applySetupFile(api.runtime, setup);
    expect((await search(token)).status).toBe(200);
  });
});

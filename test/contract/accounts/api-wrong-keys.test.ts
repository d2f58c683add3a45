/** Guessing of API keys and client secrets, limited by address (document 1, "Authentication": 401, 429). */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { startApi } from "#api/main.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { WRONG_SECRETS } from "#core/platform/secrets/wrong-secrets.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { untilRefused } from "#test/support/clients/until-refused.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const CLIENT = { id: "gls-client", secret: "gls-client-secret-0123456789" };

let runtime: TestRuntime;
let api: Running;
let ingest: Running;

beforeAll(async () => {
  const setup = testSetup();
  Object.assign(setup.couriers?.find(({ code }) => code === "GLS_ITA") ?? {}, {
    oauth: { clientId: CLIENT.id, clientSecret: CLIENT.secret },
  });
  runtime = await openTestRuntime(setup, {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
    TRUSTED_PROXIES: "127.0.0.0/8,::1/128",
  });
  api = await startApi(runtime);
  ingest = await startIngest(runtime);
});
afterEach(() => advance(24 * 3_600));
afterAll(async () => {
  await api.stop();
  await ingest.stop();
  await runtime.end();
});

async function advance(seconds: number): Promise<void> {
  await advanceClock(runtime.redis, seconds);
  await runtime.live.refresh();
}

/** @param from the address that our proxy has seen */
function exchange(apiKey: string, from: string): Promise<Response> {
  return fetch(`${api.url}/v2/auth/token`, {
    method: "POST",
    headers: { "x-forwarded-for": from, "x-request-id": "test-request" },
    body: JSON.stringify({ apiKey }),
  });
}

/** Wrong keys up to the limit, then one more. @returns its answer */
function exhaust(from: (at: number) => string): Promise<Response> {
  return untilRefused(WRONG_SECRETS, 401, (at) => exchange(`key_guess_${at}`, from(at)));
}

describe("wrong API keys", () => {
  test(`${WRONG_SECRETS.burst} from one address are 401, the next is 429 with Retry-After, and another one after that time`, async () => {
    const answer = await exhaust(() => "203.0.113.1");
    expect(answer.status).toBe(429);
    expect(Number(answer.headers.get("retry-after"))).toBeWithin(1, 4);
    expect(answer.headers.get("x-ratelimit-limit")).toBe(String(WRONG_SECRETS.burst));
    expect(answer.headers.get("x-ratelimit-remaining")).toBe("0");
    expect(await answer.json()).toMatchObject({ status: 429, code: "RATE_LIMITED" });
    await advance(3);
    await untilRefused({ ...WRONG_SECRETS, burst: 1 }, 401, () =>
      exchange("key_guess_late", "203.0.113.1"),
    );
  });

  test("another address is not limited by them, and a claimed address does not help", async () => {
    expect((await exhaust((at) => `198.51.100.${at}, 203.0.113.2`)).status).toBe(429);
    expect((await exchange("key_guess", "203.0.113.3")).status).toBe(401);
  });

  test("addresses of one IPv6 network of 64 bits count together", async () => {
    expect((await exhaust((at) => `2001:db8:0:1::${at + 1}`)).status).toBe(429);
    expect((await exchange("key_guess", "2001:db8:0:2::1")).status).toBe(401);
  });

  test("a key that was accepted from the address before still works while its neighbours guess", async () => {
    expect((await exchange("key_acme_main", "203.0.113.4")).status).toBe(200);
    expect((await exhaust(() => "203.0.113.4")).status).toBe(429);
    expect((await exchange("key_acme_main", "203.0.113.4")).status).toBe(200);
  });

  test("a guess reveals nothing: a correct key that is new there is answered like a wrong one", async () => {
    expect((await exhaust(() => "203.0.113.5")).status).toBe(429);
    const right = await exchange("key_acme_main", "203.0.113.5");
    const wrong = await exchange("key_guess", "203.0.113.5");
    expect([right.status, await right.text()]).toEqual([wrong.status, await wrong.text()]);
    expect(right.status).toBe(429);
    await advance(3);
    expect((await exchange("key_acme_main", "203.0.113.5")).status).toBe(200);
  });

  test("right keys do not count", async () => {
    for (let at = 0; at <= WRONG_SECRETS.burst; at += 1) {
      expect((await exchange("key_acme_main", "203.0.113.6")).status).toBe(200);
    }
    expect((await exhaust(() => "203.0.113.6")).status).toBe(429);
  });
});

describe("wrong client secrets of couriers", () => {
  function ask(secret: string, from: string): Promise<Response> {
    const form = { grant_type: "client_credentials", client_id: CLIENT.id, client_secret: secret };
    return fetch(`${ingest.url}/v1/oauth/token`, {
      method: "POST",
      headers: { "x-forwarded-for": from },
      body: new URLSearchParams(form),
    });
  }

  test("the same limit, with the rate headers; a client that was accepted from there still works", async () => {
    expect((await ask(CLIENT.secret, "203.0.113.7")).status).toBe(200);
    const guess = (at: number) => ask(`wrong-${at}`, "203.0.113.7");
    const answer = await untilRefused(WRONG_SECRETS, 401, guess);
    expect(Number(answer.headers.get("retry-after"))).toBeWithin(1, 4);
    expect(answer.headers.has("x-ratelimit-limit")).toBe(true);
    expect((await ask(CLIENT.secret, "203.0.113.7")).status).toBe(200);
  });
});

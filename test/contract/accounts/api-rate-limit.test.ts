/** Document 1, "Limits": the request budget of a channel and the suspension of abusive keys. */
import { beforeEach, expect, test } from "bun:test";
import { applySetupFile } from "#core/runtime/runtime.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { type Answer, openTestApi } from "#test/support/product/api.ts";

const CAPACITY = 12;
const REFILL = 5;

function limitedSetup(rateLimit = { bucketSize: CAPACITY, refillRate: REFILL }) {
  const setup = testSetup();
  const [first] = setup.companies?.[0]?.channels ?? [];
  Object.assign(first ?? {}, { rateLimit });
  first?.apiKeys?.push({ code: "second", key: "key_acme_second" });
  return setup;
}

const api = forAll(() => openTestApi(limitedSetup()));
// Far enough for a full bucket, no rejections and no suspension; not for the end of the tokens.
beforeEach(() => api.advance(4_000));

async function search(key = "key_acme_main"): Promise<Answer> {
  return api.call("GET", "/v2/shipments", { token: await api.token(key) });
}

function exchange(): Promise<Answer> {
  return api.call("POST", "/v2/auth/token", { body: { apiKey: "key_acme_main" } });
}

async function statuses(count: number, key?: string): Promise<number[]> {
  const found: number[] = [];
  for (let at = 0; at < count; at += 1) found.push((await search(key)).status);
  return found;
}

const times = (count: number, status: number) => Array.from({ length: count }, () => status);

test("the capacity answers and the next request is 429", async () => {
  expect(await statuses(CAPACITY)).toEqual(times(CAPACITY, 200));
  expect((await search()).status).toBe(429);
});

test("every authenticated answer carries limit, remaining and the time of the refill", async () => {
  const nowSeconds = api.runtime.live.now() / 1000;
  const first = await search();
  const token = await api.token("key_acme_main");
  const missing = await api.call("GET", "/v2/shipments/1", { token });
  const faulty = await api.call("GET", "/v2/shipments?page=0", { token });
  const all = [first, missing, faulty];
  expect(all.map(({ status }) => status)).toEqual([200, 404, 422]);
  expect(all.map(({ headers }) => headers.get("x-ratelimit-limit"))).toEqual(["12", "12", "12"]);
  expect(all.map(({ headers }) => headers.get("x-ratelimit-remaining"))).toEqual(["11", "10", "9"]);
  // The IETF's draft, where document 1 says nothing of errors.
  expect(first.headers.get("ratelimit-policy")).toMatch(/^"bucket";q=12, "refill";q=\d+;w=60$/);
  expect(first.headers.get("ratelimit")).toMatch(/^"bucket";r=11;t=(59|6[0-5])$/);
  expect(missing.headers.get("ratelimit")).toBeNull();
  for (const { headers } of all) {
    const reset = Number(headers.get("x-ratelimit-reset"));
    expect(reset).toBeGreaterThanOrEqual(nowSeconds + 59);
    expect(reset).toBeLessThanOrEqual(nowSeconds + 65);
  }
});

test("a 429 answer tells Retry-After, the bucket size, 0 remaining and the time of the refill", async () => {
  await statuses(CAPACITY);
  const nowSeconds = api.runtime.live.now() / 1000;
  const { status, headers, body } = await search();
  expect([status, body.code]).toEqual([429, "RATE_LIMITED"]);
  expect(headers.get("x-error-message")).toBe(body.message);
  expect(headers.get("x-ratelimit-limit")).toBe("12");
  expect(headers.get("x-ratelimit-remaining")).toBe("0");
  const retryAfter = Number(headers.get("retry-after"));
  expect(retryAfter).toBeInteger();
  expect(retryAfter).toBeGreaterThan(50);
  expect(retryAfter).toBeLessThanOrEqual(60);
  const reset = Number(headers.get("x-ratelimit-reset"));
  expect(Math.abs(reset - (nowSeconds + retryAfter))).toBeLessThanOrEqual(2);
});

test("the whole per-minute amount is added at once at the next cycle, and nothing before", async () => {
  await statuses(CAPACITY);
  await api.advance(50);
  expect((await search()).status).toBe(429);
  await api.advance(10);
  expect(await statuses(REFILL + 1)).toEqual([...times(REFILL, 200), 429]);
});

test("cycles that pass unused add up, never over the capacity", async () => {
  await statuses(CAPACITY);
  await api.advance(120);
  expect((await search()).headers.get("x-ratelimit-remaining")).toBe(String(2 * REFILL - 1));
  await api.advance(3_000);
  expect((await search()).headers.get("x-ratelimit-remaining")).toBe(String(CAPACITY - 1));
});

test("the budget is the channel's: its keys share it, another channel has its own", async () => {
  await statuses(CAPACITY);
  expect((await search("key_acme_second")).status).toBe(429);
  expect((await search("key_acme_outlet")).status).toBe(200);
});

test("a request costs one token whatever its body, also one that is refused for its scope or its body", async () => {
  const token = await api.token("key_acme_main");
  await api.call("POST", "/v2/shipments", { token, text: "{" });
  await api.call("POST", "/v2/shipments", { token, body: { shipments: [] } });
  const { headers } = await search();
  expect(headers.get("x-ratelimit-remaining")).toBe(String(CAPACITY - 3));
});

test("the token endpoint costs nothing", async () => {
  for (let at = 0; at < 3; at += 1) {
    await exchange();
  }
  expect((await search()).headers.get("x-ratelimit-remaining")).toBe(String(CAPACITY - 1));
});

test("two processes with concurrent callers grant exactly the capacity", async () => {
  const another = await api.another();
  const token = await api.token("key_acme_main");
  const answers = await Promise.all(
    Array.from({ length: CAPACITY + 8 }, (_, at) =>
      (at % 2 === 0 ? api.call : another)("GET", "/v2/shipments", { token }),
    ),
  );
  const granted = answers.filter(({ status }) => status === 200);
  expect(granted).toHaveLength(CAPACITY);
  const remaining = granted.map(({ headers }) => Number(headers.get("x-ratelimit-remaining")));
  expect(remaining.sort((one, other) => one - other)).toEqual([...Array(CAPACITY).keys()]);
});

test("a channel's own allowance counts from its next request and is reported in the token answer", async () => {
  await applySetupFile(api.runtime, limitedSetup({ bucketSize: 3, refillRate: 2 }));
  const { body } = await exchange();
  expect(body.rate_limit).toEqual({ refill_rate: 2, bucket_size: 3 });
  expect(await statuses(4)).toEqual([200, 200, 200, 429]);
  await applySetupFile(api.runtime, limitedSetup());
});

test("the tenth 429 within 5 minutes suspends the key for 1 hour: 403, then it works again", async () => {
  await statuses(CAPACITY);
  expect(await statuses(10)).toEqual(times(10, 429));
  const { status, body, headers } = await search();
  expect([status, body.code]).toEqual([403, "KEY_SUSPENDED"]);
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(3_590);
  expect(body.message).toMatch(/until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\.$/);
  await api.advance(3_590);
  expect((await search()).status).toBe(403);
  await api.advance(10);
  expect((await search()).status).toBe(200);
});

test("a suspended key gets no new token and its old ones stop: 403", async () => {
  const token = await api.token("key_acme_main");
  await statuses(CAPACITY + 10);
  const { status, body } = await exchange();
  expect([status, body.code]).toEqual([403, "KEY_SUSPENDED"]);
  expect((await api.call("GET", "/v2/shipments", { token })).status).toBe(403);
});

test("nine 429 suspend nothing, and a tenth more than 5 minutes after the first neither", async () => {
  await statuses(CAPACITY);
  expect(await statuses(9)).toEqual(times(9, 429));
  await api.advance(301);
  await statuses(CAPACITY);
  expect(await statuses(2)).toEqual([429, 429]);
});

test("the key is suspended and not the channel: its other key goes on", async () => {
  await statuses(CAPACITY + 10);
  await api.advance(60);
  expect((await search()).status).toBe(403);
  expect((await search("key_acme_second")).status).toBe(200);
});

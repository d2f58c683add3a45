/** Log-in and log-out of operators (setup-file.md, "The panel's HTTP API"): the session, its cookie and its limits. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { SESSION_MS } from "#core/accounts/store/sessions.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { sessionKey } from "#core/platform/redis/keys.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import { WRONG_SECRETS } from "#core/platform/secrets/wrong-secrets.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startPanel } from "#panel/main.ts";
import { LOGIN_RATE } from "#panel/server/accounts/log-in.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { untilRefused } from "#test/support/clients/until-refused.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const LOGIN_LIMIT_BYTES = 4_096;

let runtime: TestRuntime;
/** Behind a proxy on this machine. */
let proxied: Running;
let direct: Running;
/** Behind HTTPS. */
let secure: Running;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
    TRUSTED_PROXIES: "127.0.0.1",
  });
  const { config } = runtime;
  proxied = await startPanel(runtime);
  direct = await startPanel({ ...runtime, config: { ...config, trustedProxies: [] } });
  const publicUrl = "https://waybill.example";
  secure = await startPanel({ ...runtime, config: { ...config, publicUrl } });
});
afterAll(async () => {
  for (const panel of [secure, direct, proxied]) await panel.stop();
  await runtime.end();
});

/** The same for all, so that answers that must not differ are equal. */
const TEST_REQUEST_ID = "test-request";

let addresses = 0;
const newAddress = () => {
  addresses += 1;
  return `198.51.100.${addresses}`;
};

interface Ask {
  readonly panel?: Running;
  readonly address?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function logIn(credentials: unknown, { panel = proxied, address, headers }: Ask = {}) {
  const text = typeof credentials === "string" ? credentials : JSON.stringify(credentials);
  return fetch(`${panel.url}/panel/api/session`, {
    method: "POST",
    body: text,
    headers: {
      "content-type": "application/json",
      "x-request-id": TEST_REQUEST_ID,
      "x-forwarded-for": address ?? newAddress(),
      ...headers,
    },
  });
}

function logOut(cookie: string, headers: Readonly<Record<string, string>> = {}) {
  const all = { cookie, ...headers };
  return fetch(`${proxied.url}/panel/api/session`, { method: "DELETE", headers: all });
}

async function cookieFrom(answer: Promise<Response>): Promise<string> {
  return (await answer).headers.get("set-cookie")?.split(";")[0] ?? "";
}

const operator = () => ({ token: runtime.secrets.panelToken });
const newSession = (ask: Ask = {}) => cookieFrom(logIn(operator(), ask));
const idOf = (cookie: string) => cookie.slice(cookie.indexOf("=") + 1);

async function statusWith(cookie: string, panel = proxied): Promise<number> {
  return (await fetch(`${panel.url}/panel/api/channels`, { headers: { cookie } })).status;
}

describe("POST /panel/api/session", () => {
  test("204 and the cookie for the operator's token", async () => {
    const answer = await logIn(operator());
    expect([answer.status, await answer.text()]).toEqual([204, ""]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(await statusWith(answer.headers.get("set-cookie")?.split(";")[0] ?? "")).toBe(200);
  });

  test("a wrong token and an e-mail address are answered alike: 401 and no cookie", async () => {
    const wrong = await logIn({ token: "guess" });
    const account = await logIn({ email: "ops@acme.test", password: "secret" });
    expect([wrong.status, account.status]).toEqual([401, 401]);
    expect([wrong, account].map(({ headers }) => headers.get("set-cookie"))).toEqual([null, null]);
    expect(await wrong.text()).toBe(await account.text());
  });

  test("400 for no JSON, 422 for neither kind of credentials", async () => {
    expect((await logIn("{")).status).toBe(400);
    for (const body of [{}, { email: "a@b.test" }, [], "null", { token: 1 }]) {
      expect((await logIn(body)).status).toBe(422);
    }
  });

  test(`a body of ${LOGIN_LIMIT_BYTES} bytes is read, one more is 413`, async () => {
    const sized = (bytes: number) => {
      const empty = JSON.stringify({ ...operator(), filler: "" }).length;
      return logIn({ ...operator(), filler: "x".repeat(bytes - empty) });
    };
    expect((await sized(LOGIN_LIMIT_BYTES)).status).toBe(204);
    expect((await sized(LOGIN_LIMIT_BYTES + 1)).status).toBe(413);
  });
});

describe("the login page", () => {
  test("reads its form as every other body: one that is cut short is 400", async () => {
    const benchmarks = await openBenchmarks(runtime.config);
    const app = createPanelApp(runtime, benchmarks);
    const body = new ReadableStream({
      pull: (controller) => controller.error(new Error("the connection is gone")),
    });
    const request = new Request("http://localhost/panel/login", { method: "POST", body });
    expect((await app.handle(request)).status).toBe(400);
    await benchmarks.close();
  });
});

describe("a session", () => {
  test("logging out ends it for every copy of its cookie, and no other session", async () => {
    for (const path of ["/panel/api/session", "/panel/logout"]) {
      const [mine, others] = [await newSession(), await newSession()];
      expect([await statusWith(mine), await statusWith(others)]).toEqual([200, 200]);
      const method = path === "/panel/logout" ? "POST" : "DELETE";
      const init = { method, headers: { cookie: mine }, redirect: "manual" } as const;
      const out = await fetch(`${proxied.url}${path}`, init);
      expect(out.status).toBe(method === "POST" ? 303 : 204);
      expect(out.headers.get("set-cookie")).toStartWith("waybill_session=; Max-Age=0; Path=/");
      expect([await statusWith(mine), await statusWith(others)]).toEqual([401, 200]);
    }
  });

  test("logging out twice, or without a session, is 204", async () => {
    const cookie = await newSession();
    for (const value of [cookie, cookie, "waybill_session=x", "other=1"]) {
      expect((await logOut(value)).status).toBe(204);
    }
  });

  test("is one of every process of the same token, and a new token ends it", async () => {
    const cookie = await newSession();
    expect(await statusWith(cookie, direct)).toBe(200);
    const secrets = { ...runtime.secrets, panelToken: "the-next-token-of-the-tests" };
    const renewed = await startPanel({ ...runtime, secrets });
    expect(await statusWith(cookie, renewed)).toBe(401);
    await renewed.stop();
  });

  test("lasts for 12 hours and not longer", async () => {
    const cookie = await newSession();
    await advanceClock(runtime.redis, SESSION_MS / 1000 - 60);
    expect(await statusWith(cookie)).toBe(200);
    await advanceClock(runtime.redis, 61);
    expect(await statusWith(cookie)).toBe(401);
  });

  test("is kept in Redis under a hash, without what its cookie or the token says, and expires there", async () => {
    const { redis, secrets } = runtime;
    const id = idOf(await newSession());
    const key = sessionKey(hashToken(id));
    const [record, ttlMs] = [await redis.get(key), await redis.pTTL(key)];
    expect(record).not.toContain(id);
    expect(record).not.toContain(secrets.panelToken);
    expect(ttlMs).toBeGreaterThan(SESSION_MS - 60_000);
    expect(ttlMs).toBeLessThanOrEqual(SESSION_MS);
  });

  test("can be ended while the memory of Redis is full", async () => {
    const { redis } = runtime;
    const cookie = await newSession();
    await redis.configSet("maxmemory", "1");
    try {
      expect((await logOut(cookie)).status).toBe(204);
    } finally {
      await redis.configSet("maxmemory", "0");
    }
    expect(await statusWith(cookie)).toBe(401);
  });

  test("behind HTTPS its cookie is bound to the host and to HTTPS", async () => {
    const answer = await logIn(operator(), { panel: secure });
    const cookie = answer.headers.get("set-cookie") ?? "";
    const attributes = cookie.split("; ").slice(1);
    expect(cookie).toStartWith("__Host-waybill_session=");
    expect(attributes.sort()).toEqual(
      ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict", "Secure"].sort(),
    );
    const [pair = ""] = cookie.split(";");
    expect(await statusWith(pair, secure)).toBe(200);
    expect(await statusWith(pair.replace("__Host-", ""), secure)).toBe(401);
  });
});

describe("other sites", () => {
  const other = [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site", origin: "https://waybill.example" },
    { origin: "https://evil.example" },
    { origin: "null" },
  ];

  test("neither log a visitor in nor out", async () => {
    for (const headers of other) {
      expect((await logIn(operator(), { panel: secure, headers })).status).toBe(403);
      const form = { method: "POST", headers, body: new URLSearchParams(operator()) };
      expect((await fetch(`${secure.url}/panel/login`, form)).status).toBe(403);
      const cookie = await newSession();
      expect((await logOut(cookie, headers)).status).toBe(403);
      expect(await statusWith(cookie)).toBe(200);
    }
  });

  test("a page of ours is known by the browser's word, by its Origin, and by the public address", async () => {
    const cookie = await newSession({ panel: secure });
    const own = [
      { "sec-fetch-site": "same-origin" },
      { origin: "https://waybill.example" },
      { origin: secure.url ?? "" },
    ];
    const change = (headers: object) =>
      fetch(`${secure.url}/panel/api/channels/acme-it/activate`, {
        method: "POST",
        headers: { cookie, ...headers },
      });
    for (const headers of own) expect((await change(headers)).status).toBe(200);
    for (const headers of [...other, {}]) expect((await change(headers)).status).toBe(403);
  });
});

describe("log-ins from one address", () => {
  /** Guesses up to the limit, then one more. @returns its answer */
  function exhaust(ask: () => Ask): Promise<Response> {
    return untilRefused(LOGIN_RATE, 401, () => logIn({ token: "guess" }, ask()));
  }

  /** Is refused, but for what the time since it was exhausted allows. */
  const staysRefused = (status: number, ask: () => Promise<Response>) =>
    untilRefused({ ...LOGIN_RATE, burst: 0 }, status, ask);

  test(`${LOGIN_RATE.burst} are judged, the next is 429 with Retry-After, the right token too`, async () => {
    const address = newAddress();
    const refused = await exhaust(() => ({ address }));
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    await staysRefused(204, () => logIn(operator(), { address }));
  });

  test("behind a trusted proxy each visitor has an address of their own", async () => {
    const guessing = newAddress();
    await exhaust(() => ({ address: guessing }));
    expect((await logIn(operator(), { address: newAddress() })).status).toBe(204);
    const pretended = { "x-forwarded-for": `203.0.113.9, ${guessing}` };
    await staysRefused(204, () => logIn(operator(), { headers: pretended }));
  });

  test("the addresses of one IPv6 network of 64 bits count as one, those of the next do not", async () => {
    let host = 0;
    const next = () => {
      host += 1;
      return { address: `2001:db8:0:1::${host.toString(16)}` };
    };
    await exhaust(next);
    expect((await logIn(operator(), { address: "2001:db8:0:2::1" })).status).toBe(204);
    expect((await logIn(operator(), { address: "::ffff:198.51.100.250" })).status).toBe(204);
  });

  test("from anybody else X-Forwarded-For does not make another address", async () => {
    await exhaust(() => ({ panel: direct }));
  });

  test("the login page and the call share the limit", async () => {
    const address = newAddress();
    await exhaust(() => ({ address }));
    await staysRefused(303, () =>
      fetch(`${proxied.url}/panel/login`, {
        method: "POST",
        body: new URLSearchParams(operator()),
        headers: { "x-forwarded-for": address },
        redirect: "manual",
      }),
    );
  });
});

describe("bearer tokens from one address", () => {
  function ask(token: string, from: string, panel = proxied): Promise<Response> {
    const headers = {
      authorization: `Bearer ${token}`,
      "x-forwarded-for": from,
      "x-request-id": TEST_REQUEST_ID,
    };
    return fetch(`${panel.url}/panel/api/channels`, { headers });
  }

  /** Wrong ones up to the limit, then one more. @returns its answer */
  function exhaust(from: () => string, panel = proxied): Promise<Response> {
    return untilRefused(WRONG_SECRETS, 401, (at) => ask(`guess-${at}`, from(), panel));
  }

  async function advance(seconds: number): Promise<void> {
    await advanceClock(runtime.redis, seconds);
    await runtime.live.refresh();
  }

  test(`${WRONG_SECRETS.burst} wrong ones are 401, the next is 429 with Retry-After, and another one after that time`, async () => {
    const address = newAddress();
    const answer = await exhaust(() => address);
    expect(Number(answer.headers.get("retry-after"))).toBeWithin(1, 4);
    expect(await answer.json()).toMatchObject({ status: 429, code: "RATE_LIMITED" });
    await advance(3);
    await untilRefused({ ...WRONG_SECRETS, burst: 1 }, 401, () => ask("guess", address));
  });

  test("every call shares the limit", async () => {
    const address = newAddress();
    expect((await exhaust(() => address)).status).toBe(429);
    const headers = { authorization: "Bearer guess", "x-forwarded-for": address };
    for (const path of ["/panel/api/overview", "/panel/api/jobs", "/panel/api/dead-letters"]) {
      expect((await fetch(`${proxied.url}${path}`, { headers, redirect: "manual" })).status).toBe(
        429,
      );
    }
  });

  test("PANEL_TOKEN never counts, and goes on where it was right before", async () => {
    const address = newAddress();
    for (let at = 0; at <= WRONG_SECRETS.burst; at += 1) {
      expect((await ask(runtime.secrets.panelToken, address)).status).toBe(200);
    }
    expect((await exhaust(() => address)).status).toBe(429);
    expect((await ask(runtime.secrets.panelToken, address)).status).toBe(200);
    expect((await ask("guess", address)).status).toBe(429);
  });

  test("a guess learns nothing: PANEL_TOKEN that is new there is answered like a wrong one, and works elsewhere", async () => {
    const address = newAddress();
    expect((await exhaust(() => address)).status).toBe(429);
    const right = await ask(runtime.secrets.panelToken, address);
    const wrong = await ask("guess", address);
    expect([right.status, await right.text()]).toEqual([wrong.status, await wrong.text()]);
    expect((await ask(runtime.secrets.panelToken, newAddress())).status).toBe(200);
    await advance(3);
    expect((await ask(runtime.secrets.panelToken, address)).status).toBe(200);
  });

  test("what a caller claims of its address does not help", async () => {
    const address = newAddress();
    expect((await exhaust(() => `${newAddress()}, ${address}`)).status).toBe(429);
    expect((await exhaust(newAddress, direct)).status).toBe(429);
    await advance(WRONG_SECRETS.burst / WRONG_SECRETS.perSecond);
  });

  test("a session is not held up by guesses of its neighbours", async () => {
    const address = newAddress();
    const cookie = await newSession({ address });
    expect((await exhaust(() => address)).status).toBe(429);
    const headers = { cookie, "x-forwarded-for": address };
    expect((await fetch(`${proxied.url}/panel/api/channels`, { headers })).status).toBe(200);
  });

  test("PANEL_TOKEN works while the store's memory is full", async () => {
    const { redis } = runtime;
    await redis.configSet("maxmemory", "1");
    try {
      expect((await ask(runtime.secrets.panelToken, newAddress())).status).toBe(200);
      expect((await ask("guess", newAddress())).status).toBe(503);
    } finally {
      await redis.configSet("maxmemory", "0");
    }
  });
});

describe("what a browser may keep or frame", () => {
  test("no answer to an operator is kept, secrets that are shown once among them", async () => {
    const headers = { authorization: `Bearer ${runtime.secrets.panelToken}` };
    const webhooks = "/panel/api/channels/acme-it/webhooks";
    const body = JSON.stringify({ url: "https://m.invalid/", alertEmail: "o@m.test" });
    const made = await fetch(`${proxied.url}${webhooks}`, { method: "POST", headers, body });
    const { endpointId, secret } = (await made.json()) as { endpointId: string; secret: string };
    expect(secret).toStartWith("whsec_");
    expect(made.headers.get("cache-control")).toBe("no-store");
    const cases = [
      ["POST", `/panel/api/webhooks/${endpointId}/rotate-secret`, 200],
      ["POST", `/panel/api/webhooks/${endpointId}/rotate-secret`, 409],
      ["GET", `/panel/api/webhooks/${endpointId}`, 200],
      ["POST", "/panel/api/couriers/GLS_ITA/tokens", 201],
      ["POST", "/panel/api/couriers/GLS_ITA/signing-secrets", 201],
      ["POST", "/panel/api/channels/acme-it/api-keys", 201],
      ["GET", "/panel/api/couriers", 200],
      ["GET", "/panel/api/couriers/NOBODY", 404],
    ] as const;
    for (const [method, path, status] of cases) {
      const answer = await fetch(`${proxied.url}${path}`, { method, headers });
      expect([path, answer.status, answer.headers.get("cache-control")]).toEqual([
        path,
        status,
        "no-store",
      ]);
    }
  });

  test("neither way to log in or out leaves a cookie in a cache", async () => {
    const form = new URLSearchParams(operator());
    const post = { method: "POST", redirect: "manual", body: form } as const;
    const header = { headers: { "x-forwarded-for": newAddress() } };
    const byForm = await fetch(`${proxied.url}/panel/login`, { ...post, ...header });
    const byCall = await logIn(operator());
    const outByForm = await fetch(`${proxied.url}/panel/logout`, post);
    const outByCall = await logOut("");
    for (const answer of [byForm, byCall, outByForm, outByCall]) {
      expect(answer.headers.get("set-cookie")).not.toBeNull();
      expect(answer.headers.get("cache-control")).toBe("no-store");
    }
  });

  test("the pages are in no frame, run nothing and are not kept", async () => {
    for (const path of ["/panel/login", "/t/nothing"]) {
      const { headers } = await fetch(`${proxied.url}${path}`);
      expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(headers.get("cache-control")).toContain("no-store");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
  });
});

/** Links to share a courier's quality report (issue 18): who makes them, what is kept, and how they end. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { type Insights, openInsights } from "#analytics/insights.ts";
import { QUALITY_LINKS_KEY } from "#core/platform/redis/keys.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { PANEL_API } from "#panel/server/openapi.ts";
import { type AnswerChecker, answerChecker } from "#test/support/clients/described-answers.ts";
import { untilRefused } from "#test/support/clients/until-refused.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const LINKS = "/panel/api/couriers/GLS_ITA/quality-links";
const DAY_SECONDS = 86_400;

let runtime: TestRuntime;
let benchmarks: Benchmarks;
let insights: Insights;
let app: ReturnType<typeof createPanelApp>;
let checker: AnswerChecker;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), {
    // Who has a good link is answered 503 here, everybody else 404.
    CLICKHOUSE_URL: "http://nobody:nothing@127.0.0.1:1/none",
    TEST_CLOCK: "1",
  });
  benchmarks = await openBenchmarks(runtime.config);
  insights = openInsights(runtime.config);
  app = createPanelApp(runtime, benchmarks, insights);
  checker = answerChecker(app.routes, PANEL_API);
});

afterAll(async () => {
  await Promise.all([benchmarks.close(), insights.close()]);
  await runtime.end();
});

async function call(method: string, path: string, body?: object, cookie?: string) {
  const credentials: Readonly<Record<string, string>> =
    cookie === undefined
      ? { authorization: `Bearer ${runtime.secrets.panelToken}` }
      : { cookie, "sec-fetch-site": "same-origin" };
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { ...credentials, "content-type": "application/json" },
    body: body ? JSON.stringify(body) : null,
  });
  const { status, headers, ...answer } = await answerTo(request);
  checker.check({ method, path, status, headers, body: answer.body });
  return { status, headers, body: answer.body };
}

async function answerTo(request: Request) {
  const response = await app.handle(request);
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, body: text === "" ? null : JSON.parse(text) };
}

/** As somebody with the link alone. */
const visit = (token: string) =>
  answerTo(new Request(`http://localhost/panel/api/quality/${token}`));
const forget = async () => {
  const keys = await runtime.redis.keys("*quality *");
  if (keys.length > 0) await runtime.redis.del(keys);
};
const make = async (body: object = {}) => {
  const made = await call("POST", LINKS, body);
  expect(made.status).toBe(201);
  return { ...made.body, token: new URL(made.body.url).pathname.split("/").at(-1) ?? "" };
};
const NEVER = `quality_${"0".repeat(64)}`;

describe("a link to the quality report", () => {
  test("is shown once, is listed without its token, and the store has a hash alone", async () => {
    const { url, token, id } = await make({ expiresInDays: 7 });
    expect(token).toMatch(/^quality_[0-9a-f]{64}$/);
    const { body } = await call("GET", LINKS);
    expect(body.items[0]).toMatchObject({ id, createdBy: "PANEL_TOKEN" });
    const kept = JSON.stringify([body, await runtime.redis.hGetAll(QUALITY_LINKS_KEY)]);
    const audit = await call("GET", "/panel/api/audit?target=/couriers/GLS_ITA");
    expect(audit.body.items[0].after.id).toBe(id);
    for (const text of [url, token]) {
      expect(kept).not.toContain(text);
      expect(JSON.stringify(audit.body)).not.toContain(text);
    }
  });

  test("revoked or over, it is answered exactly like one that never was", async () => {
    const [revoked, expired] = [await make(), await make({ expiresInDays: 1 })];
    for (const { token } of [revoked, expired]) expect((await visit(token)).status).toBe(503);
    expect((await call("DELETE", `${LINKS}/${revoked.id}`)).status).toBe(204);
    expect((await call("DELETE", `${LINKS}/${revoked.id}`)).status).toBe(404);
    await call("POST", "/panel/api/clock", { advanceSeconds: DAY_SECONDS - 600 });
    expect((await visit(expired.token)).status).toBe(503);
    await call("POST", "/panel/api/clock", { advanceSeconds: 600 });
    const answers = await Promise.all(
      [revoked.token, expired.token, NEVER, "x"].map(async (token) => {
        const { status, headers, body } = await visit(token);
        const { requestId, ...rest } = body;
        const shown = [...headers].filter(([name]) => name !== "x-request-id");
        return JSON.stringify([status, shown, rest]);
      }),
    );
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toContain("QUALITY_LINK_NOT_FOUND");
    const { items } = (await call("GET", LINKS)).body;
    const ids = items.map(({ id }: { id: string }) => id);
    expect(ids).not.toContain(revoked.id);
    expect(ids).not.toContain(expired.id);
  });

  test("is kept by no cache and search engine, and named to no other site: page, answer and refusal", async () => {
    const { token } = await make();
    const page = await app.handle(new Request(`http://localhost/quality/${token}`));
    const answers = [page.headers, (await visit(token)).headers, (await visit(NEVER)).headers];
    for (const headers of answers) {
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("x-robots-tag")).toBe("noindex");
    }
  });

  test("is made by the courier's own owner, and not by a reader or for another courier", async () => {
    const owner = await makeAccount(runtime, "courier", "owner", { courierCode: "GLS_ITA" });
    const reader = await makeAccount(runtime, "courier", "read-only", { courierCode: "GLS_ITA" });
    const other = await makeAccount(runtime, "courier", "owner", { courierCode: "BRT_ITA" });
    const made = await call("POST", LINKS, {}, owner.cookie);
    expect([made.status, made.body.createdBy]).toEqual([201, "owner@gls_ita.test"]);
    expect((await call("POST", LINKS, {}, reader.cookie)).status).toBe(403);
    const missing = await call("POST", LINKS.replace("GLS_ITA", "NONE"), {}, other.cookie);
    const theirs = await call("POST", LINKS, {}, other.cookie);
    expect([theirs.status, theirs.body.code]).toEqual([missing.status, missing.body.code]);
    expect((await call("DELETE", `${LINKS}/${made.body.id}`, undefined, other.cookie)).status).toBe(
      404,
    );
    expect((await call("GET", LINKS, undefined, other.cookie)).status).toBe(404);
  });

  test("lives at most 366 days, and a courier has at most 20", async () => {
    expect((await call("POST", LINKS, { expiresInDays: 366 })).status).toBe(201);
    expect((await call("POST", LINKS, { expiresInDays: 367 })).status).toBe(422);
    expect((await call("POST", LINKS, { expiresInDays: 0 })).status).toBe(422);
    const { items } = (await call("GET", LINKS)).body;
    for (let n = items.length; n < 20; n += 1) await make();
    const full = await call("POST", LINKS, {});
    expect([full.status, full.body.code]).toEqual([409, "TOO_MANY_LINKS"]);
    expect((await call("POST", LINKS.replace("GLS", "BRT"), {})).status).toBe(201);
  });

  test("one network reads 30 reports in a row, and then waits", async () => {
    await forget();
    const refused = await untilRefused({ perSecond: 1, burst: 30 }, 404, () => visit(NEVER));
    expect(refused.body.code).toBe("RATE_LIMITED");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  });
});

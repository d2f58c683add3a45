/** `Idempotency-Key` in the panel's API: one answer for each key of a caller, for 24 hours, and no secret of it in clear. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { openInsights } from "#analytics/insights.ts";
import { readWaitingAudit } from "#core/accounts/store/audit-log.ts";
import { lookAgain } from "#core/alarms/rules/incident.ts";
import { saveLook } from "#core/alarms/store/incidents.ts";
import { createReceiver } from "#core/alarms/store/receivers.ts";
import { newReceiverId } from "#core/configuration/store/receiver-entity.ts";
import { beginRequest, endRequest, KEYS_PER_CALLER } from "#core/merchants/store/idempotency.ts";
import { route } from "#core/platform/http/access.ts";
import { openApiDocument } from "#core/platform/openapi/document.ts";
import { changeLogs, deadLetterKey, panelRequestKeys } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { PANEL_API } from "#panel/server/openapi.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { startWebhooks } from "#processors/webhooks/start.ts";
import { answerChecker } from "#test/support/clients/described-answers.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { applyEvents, STATUS } from "#test/support/product/webhooks.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

let receiver: Receiver;
let mails: MailServer;
let runtime: TestRuntime;
let webhooks: Running;
let benchmarks: Benchmarks;
let insights: ReturnType<typeof openInsights>;
let app: ReturnType<typeof createPanelApp>;
let checker: ReturnType<typeof answerChecker>;
let admin: TestAccount;
let counter = 0;

beforeAll(async () => {
  receiver = await startReceiver();
  mails = await startMailServer();
  const setup = testSetup();
  const emails = { managed: true, from: "shop@acme.test" };
  Object.assign(setup.companies?.[0]?.channels?.[0] ?? {}, { emails });
  const env = { SMTP_URL: mails.url, CLICKHOUSE_URL: NO_CLICKHOUSE };
  runtime = await openTestRuntime(setup, { ...env, WEBHOOK_CA_FILE: AUTHORITY.file });
  benchmarks = await openBenchmarks(runtime.config);
  insights = openInsights(runtime.config);
  app = createPanelApp(runtime, benchmarks, insights).listen({ port: 0, hostname: "127.0.0.1" });
  checker = answerChecker(app.routes, PANEL_API);
  webhooks = await startWebhooks(runtime);
  admin = await makeAccount(runtime, "operator", "admin");
});
afterAll(async () => {
  await webhooks.stop();
  await app.stop(true);
  await Promise.all([benchmarks.close(), insights.close()]);
  await runtime.end();
  await Promise.all([mails.stop(), receiver.stop()]);
});

interface Repeat {
  readonly status: number;
  readonly replayed: boolean;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the API answered
  readonly body: any;
}

const asOperator = () => ({ authorization: `Bearer ${runtime.secrets.panelToken}` });
const asAdmin = () => ({ cookie: admin.cookie, "sec-fetch-site": "same-origin" });

/** @param body a text is sent as it is; undefined = none */
async function post(
  path: string,
  body: unknown,
  key: string | null,
  who: Readonly<Record<string, string>> = asOperator(),
): Promise<Repeat> {
  const response = await fetch(`${app.server?.url.origin}/panel/api${path}`, {
    method: "POST",
    headers: { ...who, ...(key !== null && { "idempotency-key": key }) },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const { status, headers } = response;
  const text = await response.text();
  const told = text === "" ? null : JSON.parse(text);
  const at = `/panel/api${path}`;
  checker.check({ method: "POST", path: at, status, headers, body: told });
  return { status, replayed: headers.get("idempotency-replayed") === "true", headers, body: told };
}

function newName(prefix = "idem"): string {
  counter += 1;
  return `${prefix}-${counter}`;
}

const endpointInput = (members: object = {}) => ({
  url: receiver.url,
  alertEmail: "ops@acme.test",
  ...members,
});

let endpointId: string | undefined;

/** A new one, instead of the one before: a channel has few. */
async function newEndpoint(): Promise<string> {
  const before = `${app.server?.url.origin}/panel/api/webhooks/${endpointId}`;
  if (endpointId) await fetch(before, { method: "DELETE", headers: asOperator() });
  const { body } = await post("/channels/acme-outlet/webhooks", endpointInput(), null);
  endpointId = body.endpointId;
  return body.endpointId;
}

/** Entries of the audit log about a target. */
async function changesOf(target: string): Promise<number> {
  const all = {
    tenant: null,
    actor: null,
    fromMs: 0,
    toMs: Number.MAX_SAFE_INTEGER,
    cursor: null,
    limit: 100,
  };
  return (await readWaitingAudit(runtime.redis, { ...all, target })).items.filter(
    (one) => one.target === target && one.action.startsWith("POST"),
  ).length;
}

/** A request that changes or sends something, and another body for its key. */
interface Pair {
  readonly path: string;
  readonly body?: unknown;
  readonly other?: unknown;
  readonly who?: () => Readonly<Record<string, string>>;
}

const bare = (path: string) => async (): Promise<Pair> => ({ path });
const ofEndpoint = (rest: string) => async (): Promise<Pair> => ({
  path: `/webhooks/${await newEndpoint()}/${rest}`,
});

/** By path below `/panel/api`, as the OpenAPI document has it. */
const PAIRS: Readonly<Record<string, () => Promise<Pair>>> = {
  "/channels/{channelCode}/webhooks": async () => ({
    path: "/channels/acme-it/webhooks",
    body: endpointInput(),
    other: endpointInput({ include: ["consignee"] }),
  }),
  "/webhooks/{endpointId}/rotate-secret": ofEndpoint("rotate-secret"),
  "/webhooks/{endpointId}/disable": ofEndpoint("disable"),
  "/webhooks/{endpointId}/enable": ofEndpoint("enable"),
  "/webhooks/{endpointId}/test": ofEndpoint("test"),
  "/webhooks/{endpointId}/replay": async () => ({
    path: `/webhooks/${await newEndpoint()}/replay`,
    body: { ...lastHour(), mode: "each" },
    other: { ...lastHour(), mode: "latest_per_shipment" },
  }),
  "/deliveries/{deliveryId}/replay": async () => ({
    path: `/deliveries/${await newDelivery()}/replay`,
  }),
  "/remaps/{id}/revert": async () => ({ path: `/remaps/${await newRemap()}/revert` }),
  "/couriers/{code}/catalogue/import": async () => ({
    path: "/couriers/GLS_ITA/catalogue/import",
    body: `code,status,statusDetail\nN${newName()},DELAY,0\n`,
    other: `code,status,statusDetail\nM${newName()},DELAY,0\n`,
  }),
  "/couriers": async () => newEntry("/couriers"),
  "/companies": async () => newEntry("/companies"),
  "/companies/{code}/channels": async () => newEntry("/companies/acme/channels"),
  "/couriers/{code}/reopen": bare("/couriers/GLS_ITA/reopen"),
  "/companies/{code}/reopen": bare("/companies/acme/reopen"),
  "/channels/{channelCode}/reopen": bare("/channels/acme-it/reopen"),
  "/couriers/{code}/activate": bare("/couriers/GLS_ITA/activate"),
  "/couriers/{code}/deactivate": bare("/couriers/BRT_ITA/deactivate"),
  "/couriers/{code}/tokens": bare("/couriers/GLS_ITA/tokens"),
  "/couriers/{code}/signing-secrets": bare("/couriers/GLS_ITA/signing-secrets"),
  "/couriers/{code}/quality-links": async () => ({
    path: "/couriers/GLS_ITA/quality-links",
    body: { expiresInDays: 3 },
    other: { expiresInDays: 4 },
  }),
  "/alarm-receivers": async () => ({
    path: "/alarm-receivers",
    body: { email: "one@waybill.test" },
    other: { email: "other@waybill.test" },
  }),
  "/alarm-receivers/{id}/test": async () => ({
    path: `/alarm-receivers/${await newReceiver()}/test`,
  }),
  "/incidents/{id}/acknowledge": async () => ({
    path: `/incidents/${await newIncident()}/acknowledge`,
  }),
  "/dead-letters/redrive": bare("/dead-letters/redrive"),
  "/dead-letters/{id}/redrive": async () => ({
    path: `/dead-letters/${await newDeadLetter()}/redrive`,
  }),
  "/clock": async () => ({
    path: "/clock",
    body: { advanceSeconds: 1 },
    other: { advanceSeconds: 2 },
  }),
  "/channels/{channelCode}/activate": bare("/channels/acme-it/activate"),
  "/channels/{channelCode}/deactivate": bare("/channels/beta-it/deactivate"),
  "/channels/{channelCode}/sandbox/reset": bare("/channels/acme-it/sandbox/reset"),
  "/channels/{channelCode}/api-keys": async () => ({
    path: "/channels/acme-it/api-keys",
    body: { mode: "test" },
    other: { mode: "live" },
  }),
  "/channels/{channelCode}/couriers": async () => ({
    path: "/channels/acme-outlet/couriers",
    body: { code: "BRT_ITA" },
    other: { code: "BRT_ITA", transcodings: ["BRT"] },
  }),
  "/channels/{channelCode}/templates/test": async () => {
    const draft = { event: "review", language: "it", to: "me@acme.test", subject: "Ciao" };
    const path = "/channels/acme-it/templates/test";
    return { path, body: { ...draft, body: "a" }, other: { ...draft, body: "b" } };
  },
  "/channels/{channelCode}/orders": async () => ({
    path: "/channels/acme-it/orders",
    body: orderLine(),
    other: orderLine(),
  }),
  "/invitations": async () => {
    const account = { name: "Ada", kind: "company", role: "member", companyCode: "acme" };
    const [body, other] = [1, 2].map(() => ({ ...account, email: `${newName()}@acme.test` }));
    return { path: "/invitations", body, other };
  },
};
/** They change and send nothing; of a comparison the time of the last one is noted. */
const READING = [
  "/channels/{channelCode}/templates/preview",
  "/couriers/{code}/comparison",
  "/sql",
];
/** A key would keep a digest of it. */
const WITH_PASSWORD = ["/me/totp"];
/** Nobody is known there yet whose key it could be: a log-in, a link that is used up, and a mail that is rare by itself. */
const BEFORE_LOG_IN = ["/session", "/invitations/{token}", "/password-reset"];

function lastHour() {
  const [from, to] = [runtime.live.now() - 3_600_000, runtime.live.now()];
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
}

function newEntry(path: string) {
  const [code, other] = [newName("E"), newName("E")];
  return { path, body: { code }, other: { code: other } };
}

function orderLine(): string {
  const createdAt = "2026-11-20T10:00:00+01:00";
  return JSON.stringify({ source: "shopify", reference: newName("R"), createdAt });
}

/** One that has been delivered. */
async function newDelivery(): Promise<string> {
  const list = `/panel/api/webhooks/${await newEndpoint()}/deliveries`;
  const id = await addShipment(runtime, newName("PANEL"), { channel: "acme-outlet" });
  await applyEvents(runtime, id, [{ status: STATUS.inTransit }]);
  let found = "";
  await eventually(async () => {
    const answer = await fetch(`${app.server?.url.origin}${list}`, { headers: asOperator() });
    const { items } = (await answer.json()) as { items: { deliveryId: string; state: string }[] };
    found = items.find(({ state }) => state === "delivered")?.deliveryId ?? "";
    return found !== "";
  }, "the webhook is delivered");
  return found;
}

async function newRemap(): Promise<string> {
  const path = `${app.server?.url.origin}/panel/api/couriers/GLS_ITA/catalogue/XYZ`;
  const body = JSON.stringify({ status: "DELAY", statusDetail: 0, terminal: false });
  const answer = await fetch(path, { method: "PUT", headers: asOperator(), body });
  return ((await answer.json()) as { remap: { id: string } }).remap.id;
}

async function newDeadLetter(): Promise<string> {
  const [log = ""] = changeLogs();
  const entry = JSON.stringify({ s: "1", change: "{}" });
  const fields = { log, group: "notify", id: "7-1", reason: "x", entry };
  const id = await runtime.redis.xAdd(deadLetterKey(log), "*", fields);
  return `k0-${id}`;
}

async function newReceiver(): Promise<string> {
  const id = newReceiverId();
  const { live } = runtime;
  const mailbox = { description: "", email: `${newName()}@waybill.test`, url: "", active: true };
  const words = { language: "en", severity: "warning" } as const;
  const stored = { code: id, owner: newName("company "), createdAtMs: live.now(), fileEntry: "" };
  await createReceiver(runtime.redis, { id, ...mailbox, ...words, ...stored });
  return id;
}

async function newIncident(): Promise<string> {
  const nowMs = runtime.live.now();
  const id = newName("inc");
  const about = { kind: "COURIER_SILENT", subject: id, severity: "warning", page: "/" } as const;
  const finding = { ...about, owner: "operators", facts: {} };
  const look = { known: [], findings: [finding], isUnknown: () => false, nowMs, newId: () => id };
  await saveLook(runtime.redis, [], lookAgain(look), []);
  return id;
}

describe("every POST of the panel's API", () => {
  const posts = () =>
    Object.entries(openApiDocument(app.routes, PANEL_API).paths)
      .flatMap(([path, methods]) => ("post" in methods ? [[path, methods["post"]] as const] : []))
      .map(([path, operation]) => ({ path: path.replace("/panel/api", ""), operation }));

  test("takes a key, or changes nothing, or has a password, or is where callers show who they are", () => {
    const withKey = posts().filter(({ operation }) =>
      JSON.stringify(operation).includes('"name":"Idempotency-Key"'),
    );
    const paths = (list: ReturnType<typeof posts>) => list.map(({ path }) => path).sort();
    expect(paths(withKey)).toEqual(Object.keys(PAIRS).sort());
    const all = [...Object.keys(PAIRS), ...READING, ...WITH_PASSWORD, ...BEFORE_LOG_IN];
    expect(paths(posts())).toEqual(all.sort());
  });

  test.each(Object.entries(PAIRS))(
    "%s is carried out once under a key, however many come at once, and another body is 409",
    async (_, pairOf) => {
      const { path, body, other = { other: true }, who = asOperator } = await pairOf();
      const key = newName("key");
      const send = () => post(path, body, key, who());
      const before = await changesOf(path);
      const all = await Promise.all([send(), send(), send()]);
      const busy = all.filter(({ body: told }) => told?.code === "IDEMPOTENCY_KEY_IN_USE");
      const [first, ...others] = all.filter(({ replayed, status }) => !replayed && status < 300);
      expect([first?.status, others]).toEqual([expect.any(Number), []]);
      const repeats = [...all.filter(({ replayed }) => replayed), await send()];
      expect(repeats.length + busy.length).toBe(3);
      for (const { status, replayed, body: told } of repeats) {
        expect([status, replayed, told]).toEqual([first?.status ?? 0, true, first?.body]);
      }
      expect((await changesOf(path)) - before).toBeLessThanOrEqual(1);
      const bent = await post(path, other, key, who());
      expect([bent.status, bent.body.code]).toEqual([409, "IDEMPOTENCY_KEY_REUSED"]);
      for (const { headers } of busy) expect(headers.get("retry-after")).toBe("1");
    },
  );

  test("without a key is carried out each time", async () => {
    const path = "/couriers/BRT_ITA/tokens";
    const ids = [await post(path, undefined, null), await post(path, undefined, null)];
    expect(ids[0]?.body.id).not.toBe(ids[1]?.body.id);
  });
});

describe("a key", () => {
  const path = "/couriers/BRT_ITA/signing-secrets";

  test("of a secret that is shown once shows it again, and the store has it only sealed", async () => {
    const key = newName("key");
    const { body } = await post(path, undefined, key);
    expect((await post(path, undefined, key)).body).toEqual(body);
    const keys = await runtime.redis.keys("{panel-requests:operator}:*");
    const records = keys.filter((one) => !one.endsWith(":keys"));
    const stored = await Promise.all(records.map((one) => runtime.redis.hGetAll(one)));
    expect(records.length).toBeGreaterThan(0);
    expect(JSON.stringify(stored)).not.toContain(body.secret);
    expect(JSON.stringify([records, stored])).not.toContain(key);
    const plain = Buffer.from(stored.map(({ answer = "" }) => answer).join(""), "base64url");
    expect(plain.includes(body.secret)).toBeFalse();
  });

  test("is of its caller alone: an account, and the operator of PANEL_TOKEN by token and by session", async () => {
    const key = newName("key");
    const url = `${app.server?.url.origin}/panel/api/session`;
    const login = JSON.stringify({ token: runtime.secrets.panelToken });
    const cookie = (await fetch(url, { method: "POST", body: login })).headers.get("set-cookie");
    const asSession = { cookie: cookie?.split(";")[0] ?? "", "sec-fetch-site": "same-origin" };
    const first = await post(path, undefined, key);
    const other = await post(path, undefined, key, asAdmin());
    expect([other.status, other.replayed]).toEqual([201, false]);
    const again = await post(path, undefined, key, asSession);
    expect([again.replayed, again.body]).toEqual([true, first.body]);
  });

  test("opens nothing: who may not call any more gets no kept answer", async () => {
    const company = { companyCode: "acme" };
    const { account, cookie } = await makeAccount(runtime, "company", "member", company);
    const who = { cookie, "sec-fetch-site": "same-origin" };
    const [key, at] = [newName("key"), "/channels/acme-it/api-keys"];
    expect((await post(at, { mode: "test" }, key, who)).status).toBe(201);
    const change = { method: "PATCH", headers: asOperator(), body: '{"role":"read-only"}' };
    await fetch(`${app.server?.url.origin}/panel/api/accounts/${account.id}`, change);
    expect((await post(at, { mode: "test" }, key, who)).status).toBe(403);
  });

  test("of a request that failed is free again", async () => {
    const key = newName("key");
    expect((await post("/channels/acme-it/api-keys", { mode: "x" }, key)).status).toBe(422);
    expect((await post("/channels/acme-it/api-keys", { mode: "live" }, key)).status).toBe(201);
  });

  test("of another query is another request", async () => {
    const key = newName("key");
    const file = `code,status,statusDetail\nQ${newName()},DELAY,0\n`;
    const at = "/couriers/GLS_ITA/catalogue/import";
    expect((await post(`${at}?preview=true`, file, key)).status).toBe(200);
    expect((await post(at, file, key)).body.code).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  test.each([
    ["of 255 characters is taken", "k".repeat(255), 201],
    ["of 256 characters is 422", "k".repeat(256), 422],
    ["with a blank inside is 422", "a b", 422],
  ])("%s", async (_, key, status) => {
    const answer = await post("/channels/acme-outlet/api-keys", { mode: "test" }, key);
    expect(answer.status).toBe(status);
    if (status !== 422) return;
    expect(answer.body.violations).toMatchObject([{ path: "Idempotency-Key", code: "BAD_FORMAT" }]);
  });

  test("does not let a larger body in than the call takes", async () => {
    const large = JSON.stringify({ code: "x".repeat(300_000) });
    const answer = await post("/channels/acme-it/api-keys", large, newName("key"));
    expect([answer.status, answer.body.code]).toEqual([413, "BODY_TOO_LARGE"]);
  });

  test("is read with as large a body as its call takes, and with no larger one", async () => {
    const blank = "\n".repeat(300_000);
    const asText = async (path: string, body: string) =>
      (await post(path, body, newName("key"))).body.code;
    const template = { event: "review", language: "it", to: "me@acme.test", subject: "Ciao" };
    expect(await asText("/channels/acme-it/orders", blank)).toBeUndefined();
    expect(await asText("/couriers/GLS_ITA/catalogue/import", blank)).toBe("INVALID_BODY");
    const draft = JSON.stringify({ ...template, body: "b".repeat(300_000) });
    expect(await asText("/channels/acme-it/templates/test", draft)).not.toBe("BODY_TOO_LARGE");
    // It never ends: what is too large is refused before all of it was read.
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(Buffer.alloc(16_384, " ")),
    });
    const url = `${app.server?.url.origin}/panel/api/channels/acme-it/api-keys`;
    const headers = { ...asOperator(), "idempotency-key": newName("key") };
    const answer = await fetch(url, { method: "POST", headers, body: endless });
    expect(answer.status).toBe(413);
  });

  test("of an answer without a body is answered without one, and not carried out again", async () => {
    let calls = 0;
    const options = () =>
      route({ access: { can: "channels:write", of: "installation" }, summary: "Change something" });
    const small = panelRoutes(runtime, "empty")
      .post(
        "/panel/api/empty",
        ({ set }) => {
          calls += 1;
          set.status = 204;
        },
        options(),
      )
      .post(
        "/panel/api/none",
        () => {
          calls += 1;
          return new Response(null, { status: 204 });
        },
        options(),
      );
    for (const path of ["/panel/api/empty", "/panel/api/none"]) {
      calls = 0;
      const headers = { ...asOperator(), "idempotency-key": newName("key") };
      const ask = () =>
        small.handle(new Request(`http://localhost${path}`, { method: "POST", headers }));
      const answers = [await ask(), await ask()];
      const told = answers.map(({ status, headers: own }) => [
        status,
        own.get("idempotency-replayed"),
      ]);
      expect([calls, ...told]).toEqual([1, [204, null], [204, "true"]]);
    }
  });

  test("is one of 2,000 that are remembered of a caller; failed requests and other callers do not count", async () => {
    const { redis } = runtime;
    const nowMs = runtime.live.now();
    const ask = (key: string, identity: string, atMs = nowMs) =>
      beginRequest(redis, { identity }, key, "print", atMs);
    for (let n = 0; n < KEYS_PER_CALLER - 1; n += 1) await ask(`k${n}`, "busy");
    const failed = await ask("failed", "busy", nowMs + 1_000);
    if (failed.kind !== "begun") throw new Error(failed.kind);
    const freeAtMs = nowMs + 86_400_000;
    expect(await ask("more", "busy")).toEqual({ kind: "full", freeAtMs });
    expect((await ask("k0", "busy")).kind).toBe("running");
    expect((await ask("more", "idle")).kind).toBe("begun");
    await endRequest(redis, { identity: "busy" }, "failed", failed.owner, null);
    expect((await ask("more", "busy", nowMs + 1_000)).kind).toBe("begun");
    expect((await ask("again", "busy", nowMs + 1_000)).kind).toBe("full");
    expect((await ask("again", "busy", freeAtMs)).kind).toBe("begun");
  });

  test("that is one too many is 429 and says when to come back", async () => {
    const members = Array.from({ length: KEYS_PER_CALLER }, (_, n) => ({
      score: runtime.live.now() + 60_000,
      value: `k${n}`,
    }));
    const { remembered } = panelRequestKeys(admin.account.id);
    await runtime.redis.zAdd(remembered, members);
    const path = "/couriers/GLS_ITA/activate";
    const answer = await post(path, undefined, newName("key"), asAdmin());
    expect([answer.status, answer.body.code]).toEqual([429, "TOO_MANY_IDEMPOTENCY_KEYS"]);
    expect(Number(answer.headers.get("retry-after"))).toBeWithin(1, 61);
    expect((await post(path, undefined, null, asAdmin())).status).toBe(200);
    await runtime.redis.del(remembered);
  });

  test("is forgotten after 24 hours by the service clock", async () => {
    const [key, at] = [newName("key"), "/couriers/GLS_ITA/quality-links"];
    const ask = () => post(at, { expiresInDays: 1 }, key);
    const first = await ask();
    await post("/clock", { advanceSeconds: 86_340 }, null);
    expect((await ask()).body).toEqual(first.body);
    await post("/clock", { advanceSeconds: 60 }, null);
    expect((await ask()).replayed).toBeFalse();
  });
});

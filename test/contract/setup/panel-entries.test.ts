/** Couriers, companies and channels made and changed by the panel's API, beside a setup file (setup-file.md, "The panel's HTTP API"). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { admitRequest } from "#core/merchants/store/rate-limit.ts";
import {
  AUDIT_LOG,
  companyKeys,
  companyPartition,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import { applySetup } from "#core/setup/store/apply-setup.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const API = "/panel/api";

let runtime: TestRuntime;
let panel: TestPanel;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  panel = await openTestPanel(runtime);
});

afterAll(async () => {
  await panel.end();
  await runtime.end();
});

const call = (method: string, path: string, body?: unknown) =>
  panel.call(method, `${API}${path}`, body);
const apply = (to: TestRuntime, file: unknown) =>
  applySetup(to.redis, to.secrets.vault, file, to.live.now());
const paths = ({ body }: { readonly body: { violations: { path: string; code: string }[] } }) =>
  body.violations.map(({ path, code }) => `${path} ${code}`).sort();

async function changeIf(match: string, method: string, path: string, body: object) {
  const answer = await panel.handle(
    new Request(`http://localhost${API}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${runtime.secrets.panelToken}`,
        "content-type": "application/json",
        "if-match": match,
      },
      body: JSON.stringify(body),
    }),
  );
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}

describe("POST /panel/api/couriers takes an entry of `couriers` of the setup file", () => {
  test("what is left out of tokens and secrets is generated, and shown this once", async () => {
    const made = await call("POST", "/couriers", {
      code: "NEW_ITA",
      name: "New",
      signatureRequired: true,
      allowedIps: ["10.0.0.0/8"],
      rateLimit: { perSecond: 7 },
      oauth: { clientId: "new-client" },
      catalogue: [{ code: "DLV", terminal: true, status: "DELIVERED" }],
    });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      code: "NEW_ITA",
      environment: "production",
      rateLimit: { perSecond: 7, burst: 100 },
      oauthClientId: "new-client",
      allowedIps: ["10.0.0.0/8"],
      catalogueCodes: 1,
      managedBy: "panel",
    });
    const { generated } = made.body;
    expect(generated.map(({ owner }: { owner: string }) => owner).sort()).toEqual([
      "courier NEW_ITA, OAuth client secret",
      "courier NEW_ITA, signing secret",
      "courier NEW_ITA, token",
    ]);
    const shown = await call("GET", "/couriers/NEW_ITA");
    expect(made.headers.get("etag")).toBe(`"${shown.body.version}"`);
    const texts = JSON.stringify([shown.body, (await call("GET", "/setup")).body]);
    for (const { secret } of generated) expect(texts).not.toContain(secret);
    const token = generated.find(({ owner }: { owner: string }) => owner.endsWith("token"))?.secret;
    const { courierByToken } = await runtime.live.refresh();
    expect(courierByToken.get(hashToken(token))?.code).toBe("NEW_ITA");
  });

  test("409 COURIER_EXISTS where the code is in use; faults have their path in the body", async () => {
    const again = await call("POST", "/couriers", { code: "GLS_ITA", tokens: ["tok_other"] });
    expect([again.status, again.body.code]).toEqual([409, "COURIER_EXISTS"]);
    const faulty = await call("POST", "/couriers", {
      name: "",
      surprise: 1,
      tokens: ["tok_brt_1"],
      rateLimit: { perSecond: -1 },
    });
    expect(faulty.status).toBe(422);
    expect(paths(faulty)).toEqual([
      "code REQUIRED",
      "name TOO_SHORT",
      "rateLimit.perSecond OUT_OF_RANGE",
      "surprise UNKNOWN_FIELD",
      "tokens[0] NOT_ALLOWED",
    ]);
    for (const body of [[], 5, null]) {
      expect((await call("POST", "/couriers", body)).status).toBe(422);
    }
  });
});

describe("PATCH changes what is given", () => {
  test("of a courier: the list of tokens is the one in force, and the rest stays", async () => {
    await call("POST", "/couriers", { code: "PAT_ITA", tokens: ["tok_a", "tok_b"], name: "Pat" });
    const { body: before } = await call("GET", "/couriers/PAT_ITA");
    const patched = await call("PATCH", "/couriers/PAT_ITA", { tokens: ["tok_b", "tok_c"] });
    expect(patched.status).toBe(200);
    expect(patched.body.name).toBe("Pat");
    const ids = ({ tokens }: { tokens: { id: string }[] }) => tokens.map(({ id }) => id);
    const kept = ids(patched.body).filter((id) => ids(before).includes(id));
    expect([ids(patched.body).length, kept.length]).toEqual([2, 1]);
    expect((await call("PATCH", "/couriers/PAT_ITA", { code: "OTHER" })).status).toBe(422);
    expect((await call("PATCH", "/couriers/NOBODY", { name: "x" })).body.code).toBe(
      "COURIER_NOT_FOUND",
    );
  });

  test("a company with its channels, keys and webhooks, and a channel by itself", async () => {
    const company = await call("POST", "/companies", {
      code: "bottega",
      name: "Bottega",
      seatPostcode: "50122",
      boxes: [{ code: "S", length: 1, width: 2, height: 3 }],
      channels: [
        {
          code: "bottega-it",
          apiKeys: [{ code: "main" }, { code: "trial", mode: "test" }],
          couriers: [{ code: "GLS_ITA", transcodings: ["gls"] }],
          webhooks: [{ code: "main", url: "https://8.8.8.8/hook", alertEmail: "ops@bottega.test" }],
        },
      ],
    });
    expect(company.status).toBe(201);
    expect(company.body.generated.map(({ owner }: { owner: string }) => owner)).toEqual([
      "channel bottega-it, API key main",
      "channel bottega-it, API key trial",
      "channel bottega-it, webhook main",
    ]);
    const channel = await call("POST", "/companies/bottega/channels", {
      code: "bottega-de",
      language: "de",
      sender: { city: "Berlin" },
    });
    expect(channel.status).toBe(201);
    expect(channel.body).toMatchObject({
      code: "bottega-de",
      companyCode: "bottega",
      language: "de",
      managedBy: "panel",
    });
    const taken = await call("POST", "/companies/bottega/channels", { code: "acme-it" });
    expect([taken.status, taken.body.code]).toEqual([409, "CHANNEL_EXISTS"]);
    const double = await call("POST", "/companies", { code: "bottega" });
    expect([double.status, double.body.code]).toEqual([409, "COMPANY_EXISTS"]);
    const nobody = await call("POST", "/companies/nobody/channels", { code: "x" });
    expect([nobody.status, nobody.body.code]).toEqual([404, "COMPANY_NOT_FOUND"]);
    const faulty = await call("PATCH", "/channels/bottega-de", {
      couriers: [{ code: "NOBODY" }],
      webhooks: [
        { code: "w", url: "https://8.8.8.8/", alertEmail: "a@b.test", headers: { Host: "x" } },
      ],
      language: "xx",
    });
    expect(paths(faulty)).toEqual([
      ...["couriers[0].code NOT_ALLOWED", "language NOT_ALLOWED"],
      "webhooks[0].headers NOT_ALLOWED",
    ]);
    const cleared = await call("PATCH", "/channels/bottega-de", { sender: null, active: false });
    expect([cleared.body.sender, cleared.body.active]).toEqual([null, false]);
    const unseated = await call("PATCH", "/companies/bottega", { seatPostcode: null });
    expect([unseated.body.seatPostcode, unseated.body.name]).toEqual([null, "Bottega"]);
  });

  test("If-Match guards: 412 where the entity has changed since, and nothing is written", async () => {
    await call("POST", "/companies", { code: "guarded", channels: [{ code: "guarded-it" }] });
    const before = `"${(await call("GET", "/companies/guarded")).body.version}"`;
    expect((await changeIf(before, "PATCH", "/companies/guarded", { name: "1" })).status).toBe(200);
    const stale = await changeIf(before, "PATCH", "/companies/guarded", {
      name: "2",
      channels: [{ code: "guarded-it", name: "2" }],
    });
    expect([stale.status, stale.body.code]).toEqual([412, "VERSION_CONFLICT"]);
    expect((await call("GET", "/companies/guarded")).body.name).toBe("1");
    expect((await call("GET", "/channels/guarded-it")).body.name).toBe("guarded-it");
  });

  test("the audit log has what has changed, without a secret", async () => {
    await call("POST", "/companies", {
      code: "logged",
      channels: [{ code: "logged-it", apiKeys: [{ code: "main", key: "key_logged_once" }] }],
    });
    await call("PATCH", "/channels/logged-it", {
      apiKeys: [{ code: "main", key: "key_logged_2" }],
    });
    await call("PATCH", "/channels/logged-it", { name: "Logged" });
    const entries = (await runtime.redis.xRevRange(AUDIT_LOG, "+", "-", { COUNT: 3 })) ?? [];
    const said = entries.map(({ message }) => JSON.stringify(message));
    expect(said[0]).toContain("Logged");
    expect(said[0]).not.toContain("rateLimit");
    expect(said[1]).toContain("secretsHash");
    expect(said.join()).not.toContain("key_logged");
    await call("PATCH", "/channels/logged-it", { name: "Logged" });
    const [latest] = (await runtime.redis.xRevRange(AUDIT_LOG, "+", "-", { COUNT: 1 })) ?? [];
    expect(latest?.id).toBe(entries[0]?.id ?? "");
  });
});

describe("a setup file beside the panel", () => {
  test("undoes nothing of what the panel has changed until it says something else itself", async () => {
    const file = testSetup();
    const [gls] = file.couriers ?? [];
    const [acme] = file.companies ?? [];
    if (!gls || !acme) throw new Error("the test setup has no courier");
    acme.channels?.[0]?.apiKeys?.push({ code: "second", key: "key_acme_second" });
    await apply(runtime, file);
    expect((await call("GET", "/couriers/GLS_ITA")).body.managedBy).toBe("setup.json");
    expect((await call("GET", "/companies/acme")).body.managedBy).toBe("setup.json");
    expect((await call("GET", "/channels/acme-it")).body.managedBy).toBe("setup.json");
    await call("PATCH", "/couriers/GLS_ITA", { name: "By hand", rateLimit: { burst: 5 } });
    await call("PATCH", "/couriers/GLS_ITA", { tokens: ["tok_by_hand"], acceptingEvents: false });
    await call("PATCH", "/companies/acme", { name: "By hand", boxes: [{ ...S, length: 31 }] });
    await call("PATCH", "/channels/acme-it", {
      name: "By hand",
      apiKeys: [{ code: "second", active: false }],
    });
    const before = (await call("GET", "/setup")).body;
    const applied = await apply(runtime, file);
    expect(applied.written).toBe(0);
    expect((await call("GET", "/setup")).body).toEqual(before);
    gls.name = "By file";
    acme.name = "By file";
    await apply(runtime, file);
    const courier = (await call("GET", "/couriers/GLS_ITA")).body;
    expect(courier).toMatchObject({
      name: "By file",
      rateLimit: { burst: 5 },
      acceptingEvents: false,
    });
    expect(courier.tokens.map(({ source }: { source: string }) => source)).toEqual(["panel"]);
    expect((await call("GET", "/companies/acme")).body.name).toBe("By file");
  });

  const S = { code: "S", length: 30, width: 20, height: 10 };
});

describe("GET /panel/api/setup", () => {
  test("applied again it changes nothing, and a fresh installation exports the same", async () => {
    await call("PUT", "/channels/acme-it/templates/review/it", { subject: "s", body: "b" });
    await call("PATCH", "/couriers/BRT_ITA", {
      mtls: { subject: "CN=push.brt.example,O=BRT", fingerprint: "ab".repeat(32) },
    });
    const exported = (await call("GET", "/setup")).body;
    expect(exported.companies.map(({ code }: { code: string }) => code)).toContain("acme");
    const again = await apply(runtime, exported);
    expect([again.written, again.generated]).toEqual([0, []]);
    expect((await call("GET", "/setup")).body).toEqual(exported);
    const fresh = await openTestRuntime({});
    const other = await openTestPanel(fresh);
    try {
      const applied = await apply(fresh, exported);
      expect(applied.generated.length).toBeGreaterThan(0);
      expect((await other.call("GET", `${API}/setup`)).body).toEqual(exported);
    } finally {
      await other.end();
      await fresh.end();
    }
  });
});

test("merchants and couriers get the same answer for what there is and what there is not", async () => {
  const owner = await makeAccount(runtime, "company", "owner", { companyCode: "acme" });
  const courier = await makeAccount(runtime, "courier", "owner", { courierCode: "GLS_ITA" });
  const calls = [
    ["POST", "/couriers", "/couriers"],
    ["PATCH", "/couriers/GLS_ITA", "/couriers/NOBODY"],
    ["DELETE", "/couriers/GLS_ITA", "/couriers/NOBODY"],
    ["DELETE", "/companies/acme", "/companies/nobody"],
    ["DELETE", "/channels/acme-it", "/channels/nobody"],
    ["DELETE", "/api-keys/1/suspension", "/api-keys/9999/suspension"],
    ["POST", "/companies", "/companies"],
    ["PATCH", "/companies/acme", "/companies/nobody"],
    ["POST", "/companies/acme/channels", "/companies/nobody/channels"],
    ["PATCH", "/channels/acme-it", "/channels/nobody"],
    ["GET", "/setup", "/setup"],
  ] as const;
  for (const { cookie } of [owner, courier]) {
    for (const [method, there, nowhere] of calls) {
      const answers = [there, nowhere].map(async (path) => {
        const answer = await panel.handle(
          new Request(`http://localhost${API}${path}`, {
            method,
            headers: {
              cookie,
              "sec-fetch-site": "same-origin",
              "content-type": "application/json",
            },
            body: method === "GET" ? null : JSON.stringify({ code: "theirs", name: "Theirs" }),
          }),
        );
        const { requestId: _, ...body } = JSON.parse(await answer.text());
        return { status: answer.status, body };
      });
      const [first, second] = await Promise.all(answers);
      expect(first).toEqual(second as never);
      expect(first?.status).toBe(403);
    }
  }
});

describe("DELETE closes", () => {
  const inForce = () => runtime.live.refresh();

  test("a courier: its tokens, secrets and client are unknown at once, its name stays, and reopened it is as it was", async () => {
    const oauth = { clientId: "closing-client", clientSecret: "closing-secret" };
    await call("POST", "/couriers", { code: "CLO_ITA", tokens: ["tok_closing"], oauth });
    expect((await inForce()).courierByToken.get(hashToken("tok_closing"))?.code).toBe("CLO_ITA");
    expect((await call("DELETE", "/couriers/CLO_ITA")).status).toBe(204);
    const closed = await inForce();
    expect(closed.courierByToken.has(hashToken("tok_closing"))).toBe(false);
    expect(closed.courierByClientId.has("closing-client")).toBe(false);
    expect(closed.couriers.get("CLO_ITA")?.acceptingEvents).toBe(false);
    expect((await call("GET", "/couriers/CLO_ITA")).body.closedAt).not.toBeNull();
    expect((await call("DELETE", "/couriers/CLO_ITA")).status).toBe(204);
    const changed = await call("PATCH", "/couriers/CLO_ITA", { name: "x" });
    expect([changed.status, changed.body.code]).toEqual([409, "ENTITY_CLOSED"]);
    const again = await call("POST", "/couriers", { code: "CLO_ITA" });
    expect([again.status, again.body.code]).toEqual([409, "COURIER_EXISTS"]);
    const taken = await call("POST", "/couriers", { code: "TAK_ITA", tokens: ["tok_closing"] });
    expect(paths(taken)).toEqual(["tokens[0] NOT_ALLOWED"]);
    expect((await call("POST", "/couriers/CLO_ITA/reopen")).status).toBe(204);
    expect((await inForce()).courierByToken.get(hashToken("tok_closing"))?.code).toBe("CLO_ITA");
    expect((await call("DELETE", "/couriers/NOBODY")).status).toBe(404);
  });

  test("a company with its channels: keys stop working, endpoints are inactive, and a setup file passes it over", async () => {
    const file = {
      companies: [
        {
          code: "closing",
          channels: [
            {
              code: "closing-it",
              apiKeys: [
                { code: "main", key: "key_closing" },
                { code: "trial", mode: "test" as const, key: "key_closing_test" },
              ],
              webhooks: [{ code: "main", url: "https://8.8.8.8/", alertEmail: "ops@acme.test" }],
              emails: { managed: true, statusNotifications: ["DELIVERED" as const] },
            },
          ],
        },
      ],
    };
    await apply(runtime, file);
    const before = (await call("GET", "/setup")).body;
    const person = await makeAccount(runtime, "company", "owner", { companyCode: "closing" });
    const asPerson = async () => {
      const request = new Request("http://localhost/panel/api/me", {
        headers: { cookie: person.cookie },
      });
      return (await panel.handle(request)).status;
    };
    const logIn = async () => {
      const body = JSON.stringify({ email: person.account.email, password: person.password });
      const headers = { "content-type": "application/json", "sec-fetch-site": "same-origin" };
      const to = "http://localhost/panel/api/session";
      return (await panel.handle(new Request(to, { method: "POST", headers, body }))).status;
    };
    expect([await asPerson(), await logIn()]).toEqual([200, 204]);
    expect((await call("DELETE", "/companies/closing")).status).toBe(204);
    // Its people are logged out, and are answered like strangers.
    expect([await asPerson(), await logIn()]).toEqual([401, 401]);
    const { channelByCode } = await inForce();
    for (const code of ["closing-it", "closing-it:test"]) {
      expect(channelByCode.get(code)).toMatchObject({
        active: false,
        emails: { managed: false, statusNotifications: [] },
      });
    }
    expect(channelByCode.get("closing-it")?.endpoints.map(({ active }) => active)).toEqual([false]);
    const exported = (await call("GET", "/setup")).body;
    expect(exported.companies.map(({ code }: { code: string }) => code)).not.toContain("closing");
    const renamed = { companies: [{ ...file.companies[0], name: "By file" }] };
    const applied = await apply(runtime, renamed);
    expect([applied.written, applied.passedOver]).toEqual([0, ["company closing"]]);
    const more = await call("POST", "/companies/closing/channels", { code: "closing-de" });
    expect([more.status, more.body.code]).toEqual([409, "ENTITY_CLOSED"]);
    await call("POST", "/companies/closing/reopen");
    expect((await inForce()).channelByCode.get("closing-it")?.active).toBe(true);
    expect([await asPerson(), await logIn()]).toEqual([200, 204]);
    expect((await call("GET", "/setup")).body).toEqual(before);
  });

  test("not while webhooks are undelivered or an import is running; a disabled endpoint's do not count", async () => {
    const made = await call("POST", "/companies", {
      code: "busy",
      channels: [
        {
          code: "busy-it",
          webhooks: [{ code: "main", url: "https://8.8.8.8/", alertEmail: "ops@acme.test" }],
        },
      ],
    });
    expect(made.status).toBe(201);
    const channel = (await inForce()).channelByCode.get("busy-it");
    const [endpoint] = channel?.endpoints ?? [];
    if (!channel || !endpoint) throw new Error("the company has no endpoint");
    const partition = companyPartition(channel.companyId);
    await runtime.redis.rPush(webhookKeys(partition).queue(endpoint.id), "dlv_1");
    const pending = await call("DELETE", "/companies/busy");
    expect([pending.status, pending.body.code]).toEqual([409, "WEBHOOKS_PENDING"]);
    await runtime.redis.del(webhookKeys(partition).queue(endpoint.id));
    await runtime.redis.sAdd(companyKeys(partition).openJobs(channel.id), "job");
    const running = await call("DELETE", "/channels/busy-it");
    expect([running.status, running.body.code]).toEqual([409, "IMPORTS_RUNNING"]);
    await runtime.redis.del(companyKeys(partition).openJobs(channel.id));
    expect((await call("DELETE", "/channels/busy-it")).status).toBe(204);
    expect((await call("GET", "/channels/busy-it")).body).toMatchObject({ active: false });
    expect((await call("DELETE", "/companies/busy")).status).toBe(204);
  });
});

test("DELETE /panel/api/api-keys/{id}/suspension lets a suspended key work again", async () => {
  const { channelByCode, apiKeyById } = await runtime.live.refresh();
  const channel = channelByCode.get("acme-it");
  const key = [...apiKeyById.values()].find(({ channelId }) => channelId === channel?.id);
  if (!channel || !key) throw new Error("the test setup has no key");
  const empty = { ...channel, bucketSize: 1, refillRate: 1 };
  const ask = () => admitRequest(runtime.redis, empty, key, runtime.live.now());
  for (let request = 0; request < 12; request += 1) await ask();
  expect((await ask()).verdict).toBe("suspended");
  const path = `/api-keys/${key.id}/suspension`;
  expect((await call("DELETE", path)).status).toBe(204);
  expect((await ask()).verdict).toBe("limited");
  expect((await call("DELETE", path)).status).toBe(204);
  expect((await call("DELETE", "/api-keys/999999/suspension")).status).toBe(404);
});

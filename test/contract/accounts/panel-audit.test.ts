/** The audit log: who changed what in the panel, before and after, without a secret, and what waits for ClickHouse. */
import { describe, expect, test } from "bun:test";
import { masked } from "#core/accounts/rules/masked.ts";
import { readAccount } from "#core/accounts/store/accounts.ts";
import {
  newestFirst,
  OPERATOR_ENTRIES_WAITING,
  TENANT_ENTRIES_WAITING,
  writeAudit,
} from "#core/accounts/store/audit-log.ts";
import { AUDIT_LOG, AUDIT_TENANTS_KEY, OLD_AUDIT_KEY } from "#core/platform/redis/keys.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

const VALUE_BYTES = 4_096;
const ENTRIES_SCANNED = 5_000;

const ENTRY = {
  tenant: "operators",
  atMs: 1,
  actor: "x",
  action: "POST /x",
  target: "/x",
  before: null,
  after: null,
};

const runtime = forAll(() => openTestRuntime(testSetup()));
const panel = forAll(() => openTestPanel(runtime));

async function entries(query = "") {
  return (await panel.call("GET", `/panel/api/audit?${query}`)).body;
}

describe("changes", () => {
  test("are there with who, when, what was before and what is after", async () => {
    const { cookie } = await makeAccount(runtime, "operator", "operator");
    const request = new Request("http://localhost/panel/api/channels/acme-it/deactivate", {
      method: "POST",
      headers: { cookie, "sec-fetch-site": "same-origin" },
    });
    expect((await panel.handle(request)).status).toBe(200);
    const [entry] = (await entries()).items;
    expect(Math.abs(Date.parse(entry.at) - runtime.live.now())).toBeLessThan(60_000);
    expect(entry).toMatchObject({
      actor: "operator@operators.test",
      action: "POST /channels/:channelCode/deactivate",
      target: "/channels/acme-it/deactivate",
      before: { active: true },
      after: { active: false },
    });
  });

  test("of webhooks have no secret and no query of a URL", async () => {
    const url = "https://merchant.example/hook?token=hidden";
    const input = { url, alertEmail: "ops@acme.test" };
    const made = await panel.call("POST", "/panel/api/channels/acme-it/webhooks", input);
    const path = `/panel/api/webhooks/${made.body.endpointId}`;
    await panel.call("PATCH", path, { trigger: "every_event" });
    const rotated = await panel.call("POST", `${path}/rotate-secret`);
    await panel.call("DELETE", path);
    const { items } = await entries(`target=${made.body.endpointId}`);
    const actions = items.map(({ action }: { action: string }) => action);
    expect(actions).toEqual([
      "DELETE /webhooks/:endpointId",
      "POST /webhooks/:endpointId/rotate-secret",
      "PATCH /webhooks/:endpointId",
    ]);
    expect(items[2]).toMatchObject({
      actor: "PANEL_TOKEN",
      before: { trigger: "status_change" },
      after: { trigger: "every_event", url: "https://merchant.example/hook" },
    });
    expect(items[0]).toMatchObject({ before: { trigger: "every_event" }, after: null });
    const text = JSON.stringify((await entries()).items);
    for (const secret of [made.body.secret, rotated.body.secret, "hidden"]) {
      expect(text).not.toContain(secret);
    }
  });

  test("of keys, tokens and invitations have what was issued, not the secret", async () => {
    const key = await panel.call("POST", "/panel/api/channels/acme-it/api-keys", { code: "new" });
    await panel.call("DELETE", `/panel/api/api-keys/${key.body.id}`);
    const token = await panel.call("POST", "/panel/api/couriers/GLS_ITA/tokens");
    const person = { email: "a@acme.test", name: "A", kind: "company", role: "owner" };
    const invited = await panel.call("POST", "/panel/api/invitations", {
      ...person,
      companyCode: "acme",
    });
    const { items } = await entries("limit=4");
    expect(
      items.map(({ after, before }: { after: unknown; before: unknown }) => after ?? before),
    ).toMatchObject([
      { account: { email: "a@acme.test" }, link: "***" },
      { token: "***" },
      { code: "new" },
      { code: "new", key: "***" },
    ]);
    const text = JSON.stringify(items);
    for (const secret of [key.body.key, token.body.token, invited.body.link]) {
      expect(text).not.toContain(secret);
    }
  });

  test("that are refused, readings and previews are none", async () => {
    const before = (await entries()).items[0];
    await panel.call("DELETE", "/panel/api/webhooks/ep_nothing");
    await panel.call("GET", "/panel/api/channels");
    const mapping = { status: "DELIVERED" };
    const path = "/panel/api/couriers/GLS_ITA/catalogue/XYZ";
    expect((await panel.call("PUT", `${path}?preview=true`, mapping)).status).toBe(200);
    expect((await entries()).items[0]).toEqual(before);
    await panel.call("PUT", path, mapping);
    expect((await entries()).items[0]).toMatchObject({
      before: { code: "XYZ" },
      after: { code: "XYZ", status: "DELIVERED" },
    });
  });
});

describe("what it keeps", () => {
  const entry = (more: object = {}) => ({
    tenant: "operators",
    atMs: runtime.live.now(),
    actor: "x",
    action: "POST /x",
    target: "/x",
    before: null,
    after: null,
    ...more,
  });

  test(`values of ${VALUE_BYTES} bytes, not of one more`, async () => {
    const sized = (bytes: number) => "é".repeat((bytes - 2) / 2);
    await writeAudit(runtime.redis, entry({ after: sized(VALUE_BYTES) }));
    await writeAudit(runtime.redis, entry({ after: `${sized(VALUE_BYTES)}x` }));
    const [more, whole] = (await entries("limit=2")).items;
    expect(whole.after).toBe(sized(VALUE_BYTES));
    expect(more.after).toEqual({ leftOutBytes: VALUE_BYTES + 1 });
  });

  test(`every entry until ClickHouse has it; a page looks at ${ENTRIES_SCANNED} of them`, async () => {
    const { redis } = runtime;
    await redis.del(AUDIT_LOG);
    await writeAudit(redis, entry({ actor: "the first" }));
    const fields = { at: "1", actor: "filler", action: "a", target: "t" };
    for (let from = 1; from < 3 * ENTRIES_SCANNED; from += 1_000) {
      const pipeline = redis.multi();
      const count = Math.min(1_000, 3 * ENTRIES_SCANNED - from);
      for (let at = 0; at < count; at += 1) pipeline.xAdd(AUDIT_LOG, "*", fields);
      await pipeline.execAsPipeline();
    }
    const seen: string[] = [];
    let pages = 0;
    for (let cursor: string | null = ""; cursor !== null; pages += 1) {
      const page = await entries(`actor=first&cursor=${cursor}`);
      expect(page.isPartial).toBe(true);
      seen.push(...page.items.map(({ actor }: { actor: string }) => actor));
      cursor = page.nextCursor;
    }
    expect([seen, pages]).toEqual([["the first"], 4]);
  });

  test("from, to and target choose among them", async () => {
    const { redis } = runtime;
    const at = (day: number) => ({ atMs: Date.UTC(2030, 0, day, 12), actor: `day ${day}` });
    for (const day of [1, 2, 3]) await writeAudit(redis, entry({ ...at(day), target: "/days" }));
    const { items } = await entries("target=/days&from=2030-01-02&to=2030-01-02");
    expect(items.map(({ actor }: { actor: string }) => actor)).toEqual(["day 2"]);
    expect((await panel.call("GET", "/panel/api/audit?from=never")).status).toBe(422);
    expect((await panel.call("GET", "/panel/api/audit?cursor=abc")).status).toBe(422);
  });
});

describe("while ClickHouse takes no entries", () => {
  const fill = (tenant: string, waiting: number) =>
    runtime.redis.hSet(AUDIT_TENANTS_KEY, {
      [`logged ${tenant}`]: waiting + 7,
      [`taken ${tenant}`]: 7,
    });
  const rename = async ({ cookie }: TestAccount, name: string) => {
    const headers = { cookie, "sec-fetch-site": "same-origin", "content-type": "application/json" };
    const body = JSON.stringify({ name });
    const url = "http://localhost/panel/api/me";
    const answer = await panel.handle(new Request(url, { method: "PATCH", headers, body }));
    return { status: answer.status, headers: answer.headers, body: await answer.json() };
  };

  test("a tenant that has used up its room changes nothing more, and the others do", async () => {
    const member = await makeAccount(runtime, "company", "member", { companyCode: "acme" });
    const courier = await makeAccount(runtime, "courier", "owner", { courierCode: "GLS_ITA" });
    await fill("company acme", TENANT_ENTRIES_WAITING - 1);
    expect((await rename(member, "Anna")).status).toBe(200);
    const refused = await rename(member, "Maria");
    expect(refused).toMatchObject({ status: 503, body: { code: "AUDIT_LOG_FULL" } });
    expect(refused.headers.get("retry-after")).toBe("60");
    expect((await readAccount(runtime.redis, member.account.id))?.name).toBe("Anna");
    expect((await rename(courier, "Paolo")).status).toBe(200);
    expect((await panel.call("POST", "/panel/api/channels/acme-it/activate")).status).toBe(200);
    expect((await entries("tenant=courier")).items[0]).toMatchObject({
      tenant: "courier GLS_ITA",
      after: { name: "Paolo" },
    });
    await runtime.redis.hIncrBy(AUDIT_TENANTS_KEY, "taken company acme", 1);
    expect((await rename(member, "Maria")).status).toBe(200);
  });

  test("the operators have more room, and read on when it is used up", async () => {
    await fill("operators", OPERATOR_ENTRIES_WAITING - 1);
    const call = (verb: string) => panel.call("POST", `/panel/api/channels/acme-it/${verb}`);
    expect((await call("deactivate")).status).toBe(200);
    expect((await call("activate")).body).toMatchObject({ code: "AUDIT_LOG_FULL" });
    expect((await panel.call("GET", "/panel/api/channels")).status).toBe(200);
    expect((await entries("limit=1")).items).toMatchObject([{ tenant: "operators" }]);
    await fill("operators", 0);
  });
});

test("entries that the version before has written are read in their place, each once", async () => {
  const { redis } = runtime;
  const old = { at: "1", actor: "old", action: "POST /old", before: "null", after: "1" };
  for (let n = 0; n < 3; n += 1) {
    await writeAudit(redis, { ...ENTRY, actor: "new", target: `/mixed/${2 * n}` });
    await redis.xAdd(OLD_AUDIT_KEY, "*", { ...old, target: `/mixed/${2 * n + 1}` });
  }
  const items: { id: string; target: string }[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page = await entries(`target=/mixed&limit=2&cursor=${cursor}`);
    items.push(...page.items);
    cursor = page.nextCursor;
  }
  const targets = items.map(({ target }) => target).toSorted();
  expect(targets).toEqual([0, 1, 2, 3, 4, 5].map((n) => `/mixed/${n}`));
  expect(items.toSorted(newestFirst)).toEqual(items);
});

test("secrets are masked at any depth, under any name of ours; names of things are not", () => {
  const value = {
    code: "main",
    keys: [{ key: "k", id: 1 }],
    token: "t",
    previousSecret: null,
    nested: { deep: [{ newPassword: { current: "a" }, passwordHash: "h", secret: "s" }] },
  };
  expect(masked(value)).toEqual({
    code: "main",
    keys: [{ key: "***", id: 1 }],
    token: "***",
    previousSecret: null,
    nested: { deep: [{ newPassword: "***", passwordHash: "***", secret: "***" }] },
  });
});

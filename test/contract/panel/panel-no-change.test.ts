/** A call of the panel that changes nothing writes nothing: no entry of the audit log, no version, no announcement. */
import { beforeAll, describe, expect, test } from "bun:test";
import { changeAccount } from "#core/accounts/store/accounts.ts";
import { AUDIT_LOG, SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

let member: TestAccount;
let endpointId: string;

const runtime = forAll(() => openTestRuntime(testSetup()));
const panel = forAll(() => openTestPanel(runtime));
beforeAll(async () => {
  member = await makeAccount(runtime, "company", "member", { companyCode: "acme" });
  const input = { url: "https://merchant.example/hook", alertEmail: "ops@acme.test" };
  const made = await panel.call("POST", "/panel/api/channels/acme-it/webhooks", input);
  endpointId = made.body.endpointId;
});

async function written() {
  const [version, entries] = await Promise.all([
    runtime.redis.hGet(SYSTEM_KEY, "version"),
    runtime.redis.xLen(AUDIT_LOG),
  ]);
  return { version, entries };
}

const CHANNEL = "/panel/api/channels/acme-it";
const SENDER = {
  businessName: "Acme S.p.A.",
  street: "Via Roma 1",
  city: "Milano",
  state: "MI",
  postcode: "20121",
  country: "IT",
};
const BOX = { length: 30, width: 20, height: 10 };
const MAPPING = { status: "DELIVERED" };

describe("carried out twice, the second call leaves the audit log and the configuration as they are", () => {
  const paths = (): readonly (readonly [string, string, object?])[] => [
    ["PUT", `${CHANNEL}/rate-limit`, { bucketSize: 311, refillRate: 151 }],
    ["PUT", `${CHANNEL}/sender`, SENDER],
    ["PUT", `${CHANNEL}/emails`, { managed: true, from: "shop@example.com" }],
    ["PUT", `${CHANNEL}/status-notifications`, { statuses: ["DELIVERED"] }],
    ["PATCH", CHANNEL, { language: "en", trackingPage: false, name: "Another name" }],
    ["PUT", `${CHANNEL}/couriers/GLS_ITA`, { labelFormat: "ZPL" }],
    ["PUT", `${CHANNEL}/couriers/GLS_ITA/sender-accounts`, { senderAccounts: ["ACC-9"] }],
    ["POST", `${CHANNEL}/deactivate`],
    ["POST", `${CHANNEL}/activate`],
    ["POST", `${CHANNEL}/sandbox/reset`],
    ["PUT", `${CHANNEL}/archive-hold`],
    ["DELETE", `${CHANNEL}/archive-hold`],
    ["PUT", "/panel/api/companies/acme/boxes/LARGE", BOX],
    ["POST", "/panel/api/couriers/GLS_ITA/deactivate"],
    ["POST", "/panel/api/couriers/GLS_ITA/activate"],
    ["PUT", "/panel/api/couriers/GLS_ITA/catalogue/XYZ", MAPPING],
    ["PATCH", `/panel/api/webhooks/${endpointId}`, { trigger: "every_event" }],
    ["POST", `/panel/api/webhooks/${endpointId}/disable`],
    ["POST", `/panel/api/webhooks/${endpointId}/enable`],
    ["PATCH", `/panel/api/accounts/${member.account.id}`, { active: false }],
    ["PATCH", `/panel/api/accounts/${member.account.id}`, { active: true, role: "read-only" }],
    ["POST", "/panel/api/dead-letters/redrive"],
  ];
  test("of every route whose call can be repeated", async () => {
    for (const [method, path, body] of paths()) {
      const first = await panel.call(method, path, body);
      expect([path, Math.floor(first.status / 100), first.body]).toEqual([path, 2, first.body]);
      const before = await written();
      const again = await panel.call(method, path, body);
      expect([path, again.status]).toEqual([path, first.status]);
      expect([path, await written()]).toEqual([path, before]);
    }
  });

  test("of a sender whose members come in another order", async () => {
    await panel.call("PUT", `${CHANNEL}/sender`, SENDER);
    const before = await written();
    const turned = Object.fromEntries(Object.entries(SENDER).reverse());
    await panel.call("PUT", `${CHANNEL}/sender`, turned);
    expect(await written()).toEqual(before);
  });

  test("of an import of a catalogue", async () => {
    const csv = (await panel.call("GET", "/panel/api/couriers/GLS_ITA/catalogue/file")).body;
    const before = await written();
    const imported = await panel.call(
      "POST",
      "/panel/api/couriers/GLS_ITA/catalogue/import?missing=remove",
      csv,
    );
    expect([imported.status, imported.body]).toMatchObject([200, { errors: [] }]);
    expect(await written()).toEqual(before);
  });

  test("of one's own name", async () => {
    const { cookie } = await makeAccount(runtime, "courier", "owner", { courierCode: "GLS_ITA" });
    const headers = { cookie, "sec-fetch-site": "same-origin", "content-type": "application/json" };
    const rename = (name: string) => {
      const body = JSON.stringify({ name });
      const url = "http://localhost/panel/api/me";
      return panel.handle(new Request(url, { method: "PATCH", headers, body }));
    };
    expect((await rename("Anna")).status).toBe(200);
    const before = await written();
    for (let time = 0; time < 3; time += 1) expect((await rename("Anna")).status).toBe(200);
    expect(await written()).toEqual(before);
    expect((await rename("Maria")).status).toBe(200);
    expect(await written()).toEqual({ ...before, entries: before.entries + 1 });
  });
});

test("an account whose change is none is not written again", async () => {
  const { redis } = runtime;
  const { id } = member.account;
  const changed = await changeAccount(redis, id, ({ name }) => ({ name }));
  expect(changed?.after).toEqual(changed?.before as never);
  await redis.hSet(`config:account:${id}`, "unknown-field", "1");
  await changeAccount(redis, id, ({ name }) => ({ name }));
  expect(await redis.hGet(`config:account:${id}`, "unknown-field")).toBe("1");
});

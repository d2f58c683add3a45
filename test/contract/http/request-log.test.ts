/** `GET /panel/api/requests`: API calls that were refused or failed, for each tenant. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Problem } from "#core/platform/errors/problem.ts";
import { readRefusedRequests, requestLog } from "#core/platform/http/refused-requests.ts";
import { withRequestId } from "#core/platform/http/request-id.ts";
import { createIngestApp } from "#ingest/app.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { openTestApi, type TestApi } from "#test/support/product/api.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";

const BURST = 50;

let api: TestApi;
let panel: TestPanel;

beforeAll(async () => {
  api = await openTestApi(testSetup());
  panel = await openTestPanel(api.runtime);
});
afterAll(async () => {
  await panel.end();
  await api.end();
});

interface Item {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly code: string;
  readonly key: string | null;
  readonly requestId: string;
  readonly tenant: string;
  readonly body: unknown;
}

async function listed(query: string): Promise<readonly Item[]> {
  const { status, body } = await panel.call("GET", `/panel/api/requests?${query}`);
  expect(status).toBe(200);
  return body.items;
}

/** It is written down behind the answer. */
const found = (query: string) =>
  eventually(async () => {
    const items = await listed(query);
    return items.length > 0 ? items : null;
  }, `a call of ${query}`);

test("a refused call is found by its requestId, with the shape of its body and none of its values", async () => {
  const token = await api.token("key_acme_main");
  const body = { shipments: [{ trackingNumber: 7, consignee: { name: "Mario Rossi" } }, {}] };
  const headers = { "x-request-id": "quoted-1" };
  const answer = await api.call("POST", "/v2/shipments", { token, body, headers });
  expect([answer.status, answer.body.requestId]).toEqual([422, "quoted-1"]);
  const [item] = await found("requestId=quoted-1");
  expect(item).toMatchObject({
    method: "POST",
    route: "/v2/shipments",
    status: 422,
    code: "VALIDATION_FAILED",
    tenant: "company acme",
    body: { shipments: [{ trackingNumber: "number", consignee: { name: "string" } }, "1 more"] },
  });
  expect(item?.key).not.toBeNull();
  expect(JSON.stringify(await listed(""))).not.toContain("Mario");
});

test("every tenant sees its own calls, operators those of nobody known too", async () => {
  const ingest = createIngestApp(api.runtime);
  const refused = await ingest.handle(
    new Request("http://localhost/v1/events", {
      method: "POST",
      body: "{",
      headers: { authorization: "Bearer tok_gls_1", "x-request-id": "courier-1" },
    }),
  );
  expect(refused.status).toBeGreaterThanOrEqual(400);
  await api.call("GET", "/v2/shipments/Mario", { headers: { "x-request-id": "nobody-1" } });
  await found("requestId=courier-1");
  expect((await found("requestId=nobody-1"))[0]).toMatchObject({ status: 401, tenant: "" });
  const seenBy = async (kind: "company" | "courier", owner: object) => {
    const { cookie } = await makeAccount(api.runtime, kind, "owner", owner);
    const request = new Request("http://localhost/panel/api/requests", { headers: { cookie } });
    const { items } = (await (await panel.handle(request)).json()) as { items: readonly Item[] };
    return new Set(items.map(({ requestId }) => requestId));
  };
  expect(await seenBy("company", { companyCode: "acme" })).toEqual(new Set(["quoted-1"]));
  expect(await seenBy("company", { companyCode: "beta" })).toEqual(new Set());
  expect(await seenBy("courier", { courierCode: "GLS_ITA" })).toEqual(new Set(["courier-1"]));
});

test("calls are filtered by status, its class and route, and come in pages", async () => {
  expect(new Set((await listed("status=4xx")).map(({ status }) => status))).toContain(401);
  expect((await listed("status=422")).map(({ requestId }) => requestId)).toEqual(["quoted-1"]);
  expect((await listed("route=v2/ship&status=422")).length).toBe(1);
  expect(await listed("from=2099-01-01T00:00:00Z")).toEqual([]);
  const { body: first } = await panel.call("GET", "/panel/api/requests?limit=1");
  const path = `/panel/api/requests?limit=1&cursor=${first.nextCursor}`;
  const { body: second } = await panel.call("GET", path);
  expect(second.items[0].requestId).not.toBe(first.items[0].requestId);
  expect((await panel.call("GET", "/panel/api/requests?status=7")).status).toBe(422);
});

test(`of a flood ${BURST} calls of a tenant are written down`, async () => {
  const { redis, log, live } = api.runtime;
  const before = (await readRefusedRequests(redis, "operators", live.now())).length;
  const keep = requestLog({ redis, log, now: live.now });
  const problem = new Problem(404, "NOT_FOUND", "No.");
  for (let at = 0; at < 10 * BURST; at += 1) {
    const request = new Request("http://localhost/");
    withRequestId(`flood-${at}`, () => keep({ request, route: "", problem }));
  }
  const kept = await eventually(async () => {
    const all = await readRefusedRequests(redis, "operators", live.now());
    return all.length >= before + BURST ? all.length - before : null;
  }, "the first of them are written down");
  // The bucket fills while the loop runs.
  expect(kept).toBeLessThan(2 * BURST);
});

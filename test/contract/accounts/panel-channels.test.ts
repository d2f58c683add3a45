/** The panel's calls for channels (setup-file.md, The panel's HTTP API): API keys and activation. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { applySetupFile } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { PANEL_BODY_BYTES } from "#panel/server/http/read-json.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { type Call, openTestApi, type TestApi } from "#test/support/product/api.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";

let api: TestApi;
let panel: TestPanel;
let another: Call;
let setup: SetupFile;

beforeAll(async () => {
  setup = testSetup();
  const channel = setup.companies?.[0]?.channels?.[1];
  if (channel) channel.active = true;
  channel?.apiKeys?.push({ code: "old", key: "key_acme_outlet_old", active: true });
  api = await openTestApi(setup);
  panel = await openTestPanel(api.runtime);
  another = await api.another();
});
afterAll(async () => {
  await panel.end();
  await api.end();
});

const issue = (body?: object, channel = "acme-outlet") =>
  panel.call("POST", `/panel/api/channels/${channel}/api-keys`, body);

async function tokenOf(apiKey: string) {
  return api.call("POST", "/v2/auth/token", { body: { apiKey } });
}

const search = (token: string, call: Call = api.call) => call("GET", "/v2/shipments", { token });

async function keyOf(code: string) {
  const { body } = await panel.call("GET", "/panel/api/channels");
  const channel = body.items.find((one: { code: string }) => one.code === "acme-outlet");
  return channel.apiKeys.find((one: { code: string }) => one.code === code);
}

describe("API keys", () => {
  test("an issued one is shown once and works beside the old ones", async () => {
    const { status, body } = await issue();
    expect(status).toBe(201);
    expect(body.key).toMatch(/^key_[0-9a-f]{64}$/);
    expect((await tokenOf(body.key)).status).toBe(200);
    expect((await tokenOf("key_acme_outlet")).status).toBe(200);
    const { body: list } = await panel.call("GET", "/panel/api/channels");
    expect(JSON.stringify(list)).not.toContain(body.key);
    expect(await keyOf(body.code)).toMatchObject({ id: body.id, active: true });
  });

  test("code, scopes and company-wide reads as asked for", async () => {
    const wanted = { code: "bi", scopes: ["shipments:read"], companyWideRead: true };
    const { body } = await issue(wanted);
    expect(body).toMatchObject(wanted);
    const token = await tokenOf(body.key);
    expect(token.body.scopes).toEqual(["shipments:read"]);
    const wide = { token: token.body.token };
    expect((await api.call("GET", "/v2/shipments?scope=company", wide)).status).toBe(200);
  });

  test("a revoked one stops working at once on every process, its tokens too", async () => {
    const { body } = await issue();
    const { token } = (await tokenOf(body.key)).body;
    expect((await search(token, another)).status).toBe(200);
    expect((await panel.call("DELETE", `/panel/api/api-keys/${body.id}`)).status).toBe(204);
    expect((await search(token, another)).status).toBe(401);
    expect((await search(token)).status).toBe(401);
    expect((await tokenOf(body.key)).status).toBe(401);
    expect((await panel.call("DELETE", `/panel/api/api-keys/${body.id}`)).status).toBe(404);
  });

  test("one of the setup file stays revoked when the file is applied again", async () => {
    const { id } = await keyOf("old");
    await panel.call("DELETE", `/panel/api/api-keys/${id}`);
    await applySetupFile(api.runtime, setup);
    expect((await tokenOf("key_acme_outlet_old")).status).toBe(401);
  });

  test("issued ones survive the next application of the setup file", async () => {
    const { body } = await issue();
    await applySetupFile(api.runtime, setup);
    expect((await tokenOf(body.key)).status).toBe(200);
  });

  test("ten issued at the same time are ten that work", async () => {
    const issued = await Promise.all(Array.from({ length: 10 }, () => issue()));
    for (const { body } of issued) expect((await tokenOf(body.key)).status).toBe(200);
    expect(new Set(issued.map(({ body }) => body.id)).size).toBe(10);
  });

  test("404, 409 and 422", async () => {
    expect((await issue({}, "nowhere")).status).toBe(404);
    expect((await panel.call("DELETE", "/panel/api/api-keys/none")).status).toBe(404);
    expect((await issue({ code: "main" })).status).toBe(409);
    const answer = await issue({ scopes: ["everything"] });
    expect([answer.status, answer.body.violations[0].path]).toEqual([422, "scopes[0]"]);
  });
});

describe("activation", () => {
  const turn = (what: string, channel = "acme-outlet") =>
    panel.call("POST", `/panel/api/channels/${channel}/${what}`);

  test("an inactive channel answers 401 at once on every process, and works again when activated", async () => {
    const { token } = (await tokenOf("key_acme_outlet")).body;
    const { body } = await turn("deactivate");
    expect(body).toEqual({ code: "acme-outlet", active: false });
    expect((await search(token)).status).toBe(401);
    expect((await search(token, another)).status).toBe(401);
    expect((await tokenOf("key_acme_outlet")).status).toBe(401);
    expect((await turn("activate")).body.active).toBe(true);
    expect((await search(token, another)).status).toBe(200);
  });

  test("the panel's word stands until the setup file says something else", async () => {
    await turn("deactivate");
    await applySetupFile(api.runtime, setup);
    expect((await tokenOf("key_acme_outlet")).status).toBe(401);
    await turn("activate");
  });

  test("switching a channel and issuing keys at the same time lose nothing of each other", async () => {
    const [issued] = await Promise.all([issue(), turn("deactivate"), issue(), turn("activate")]);
    await turn("activate");
    expect((await tokenOf(issued.body.key)).status).toBe(200);
  });

  test("404 for a channel that does not exist", async () => {
    expect((await turn("activate", "nowhere")).status).toBe(404);
  });
});

test("a body of 256 KiB is read, one more byte is 413", async () => {
  const empty = JSON.stringify({ code: "" }).length;
  const sized = (bytes: number) => issue({ code: "x".repeat(bytes - empty) });
  expect((await sized(PANEL_BODY_BYTES)).status).toBe(422);
  expect((await sized(PANEL_BODY_BYTES + 1)).status).toBe(413);
});

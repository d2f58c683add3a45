/** Document 1, "Sandbox". */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { applySetupFile } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestApi, type TestApi } from "#test/support/product/api.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";

let api: TestApi;
let panel: TestPanel;
let token: string;
let setup: SetupFile;

const ROW = { stringValue: "a", intValue: 1, boolValue: true, floatValue: 1.5 };
const ENTITY = {
  ...ROW,
  dateTimeValue: null,
  createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  updatedAt: null,
};
const NEW = {
  stringValue: "b",
  intValue: -2,
  boolValue: false,
  floatValue: 0.25,
  dateTimeValue: "2026-11-20T10:00:00+01:00",
};

beforeAll(async () => {
  setup = testSetup();
  const channel = setup.companies?.[0]?.channels?.[0];
  channel?.apiKeys?.push(
    { code: "read", key: "key_acme_sandbox_read", scopes: ["sandbox:read"] },
    { code: "none", key: "key_acme_sandbox_none", scopes: ["shipments:read"] },
  );
  if (channel) channel.sandbox = Array.from({ length: 9 }, (_, n) => ({ id: n + 1, ...ROW }));
  const outlet = setup.companies?.[0]?.channels?.[1];
  if (outlet) outlet.sandbox = [{ id: 50, ...ROW }];
  api = await openTestApi(setup);
  panel = await openTestPanel(api.runtime);
  token = await api.token("key_acme_main");
});
afterAll(async () => {
  await panel.end();
  await api.end();
});

async function reset(code: string) {
  const path = `/panel/api/channels/${code}/sandbox/reset`;
  const { status, body } = await panel.call("POST", path);
  return [status, body];
}

function call(method: string, id: number | string, body?: unknown, as = token) {
  return api.call(method, `/v2/sandbox/${id}`, { token: as, body });
}

describe("200 and 204", () => {
  test("GET tells every field of a row of the setup file", async () => {
    const { status, body } = await call("GET", 1);
    expect([status, body]).toEqual([200, { id: 1, ...ENTITY }]);
  });

  test("PUT replaces every field and sets updatedAt", async () => {
    const { status, body } = await call("PUT", 2, NEW);
    expect(status).toBe(200);
    expect(body).toEqual({ ...ENTITY, ...NEW, id: 2, updatedAt: expect.any(String) });
    expect((await call("GET", 2)).body).toEqual(body);
  });

  test("PUT without dateTimeValue makes it null", async () => {
    await call("PUT", 2, NEW);
    const { body } = await call("PUT", 2, ROW);
    expect(body).toMatchObject({ ...ROW, dateTimeValue: null });
  });

  test("PATCH changes what it names", async () => {
    const { status, body } = await call("PATCH", 3, { intValue: 7 });
    expect(status).toBe(200);
    expect(body).toEqual({ ...ENTITY, id: 3, intValue: 7, updatedAt: expect.any(String) });
  });

  test("PATCH takes null for every field: only dateTimeValue becomes null by it", async () => {
    await call("PUT", 3, NEW);
    const nothing = { stringValue: null, intValue: null, boolValue: null, floatValue: null };
    const { status, body } = await call("PATCH", 3, { ...nothing, dateTimeValue: null });
    expect(status).toBe(200);
    expect(body).toMatchObject({ ...NEW, dateTimeValue: null });
  });

  test("DELETE answers 204 without a body, and the entity is gone", async () => {
    const { status, body } = await call("DELETE", 4);
    expect([status, body]).toEqual([204, null]);
    for (const method of ["GET", "DELETE"]) expect((await call(method, 4)).status).toBe(404);
    expect((await call("PUT", 4, NEW)).status).toBe(404);
    expect((await call("PATCH", 4, { intValue: 1 })).status).toBe(404);
  });

  test("the same setup file applied again brings back what was deleted, as new, and keeps what was changed", async () => {
    await call("PATCH", 5, { intValue: 55 });
    expect((await call("DELETE", 5)).status).toBe(204);
    await call("PATCH", 6, { intValue: 66 });
    expect(await applySetupFile(api.runtime, setup)).toBeGreaterThanOrEqual(1);
    expect((await call("GET", 5)).body).toEqual({ id: 5, ...ENTITY });
    expect((await call("GET", 6)).body.intValue).toBe(66);
    expect(await applySetupFile(api.runtime, setup)).toBe(0);
    expect((await call("DELETE", 5)).status).toBe(204);
  });

  test("a reset by the panel makes every entity of the channel what the setup file says, and no other's", async () => {
    const outlet = await api.token("key_acme_outlet");
    await applySetupFile(api.runtime, setup);
    await reset("acme-it");
    await call("PUT", 5, NEW);
    await call("DELETE", 5);
    await call("PATCH", 6, { intValue: 66 });
    await call("PATCH", 6, { stringValue: "again" });
    await call("PATCH", 50, { intValue: 11 }, outlet);
    expect(await reset("acme-it")).toEqual([200, { code: "acme-it", restored: 2 }]);
    for (const id of [5, 6]) expect((await call("GET", id)).body).toEqual({ id, ...ENTITY });
    expect((await call("GET", 50, undefined, outlet)).body.intValue).toBe(11);
    expect(await reset("acme-it")).toEqual([200, { code: "acme-it", restored: 0 }]);
    expect((await reset("nobody"))[0]).toBe(404);
    expect((await call("DELETE", 6)).status).toBe(204);
    expect(await reset("acme-it")).toEqual([200, { code: "acme-it", restored: 1 }]);
  });

  test("changes of different fields at the same time do not lose each other", async () => {
    const changes = [{ stringValue: "z" }, { intValue: 9 }, { floatValue: 9.5 }];
    await Promise.all(changes.map((change) => call("PATCH", 7, change)));
    const { body } = await call("GET", 7);
    expect(body).toMatchObject({ stringValue: "z", intValue: 9, floatValue: 9.5 });
  });
});

describe("403", () => {
  test("reading needs sandbox:read, writing needs sandbox:write", async () => {
    const none = await api.token("key_acme_sandbox_none");
    const reader = await api.token("key_acme_sandbox_read");
    expect((await call("GET", 1, undefined, none)).status).toBe(403);
    expect((await call("GET", 1, undefined, reader)).status).toBe(200);
    expect((await call("PUT", 1, NEW, reader)).status).toBe(403);
    expect((await call("PATCH", 1, {}, reader)).status).toBe(403);
    expect((await call("DELETE", 1, undefined, reader)).status).toBe(403);
  });
});

describe("404", () => {
  test("missing, of another channel, or no id", async () => {
    const outlet = await api.token("key_acme_outlet");
    const answers = [await call("GET", 99), await call("GET", 1, undefined, outlet)];
    answers.push(await call("GET", "first"), await call("GET", "01"));
    for (const { status, body } of answers) {
      expect(status).toBe(404);
      expect(body).toEqual(answers[0]?.body);
    }
  });
});

describe("422", () => {
  const faulty: [string, string, object, string, string][] = [
    ["PUT without a field", "PUT", { ...NEW, intValue: undefined }, "intValue", "REQUIRED"],
    ["PUT with null", "PUT", { ...NEW, stringValue: null }, "stringValue", "WRONG_TYPE"],
    ["intValue with a fraction", "PATCH", { intValue: 1.5 }, "intValue", "WRONG_TYPE"],
    [
      "stringValue too long",
      "PATCH",
      { stringValue: "x".repeat(10_001) },
      "stringValue",
      "TOO_LONG",
    ],
    ["dateTimeValue a number", "PUT", { ...NEW, dateTimeValue: 5 }, "dateTimeValue", "WRONG_TYPE"],
    ["boolValue a text", "PUT", { ...NEW, boolValue: "yes" }, "boolValue", "WRONG_TYPE"],
    ["floatValue a text", "PUT", { ...NEW, floatValue: "1" }, "floatValue", "WRONG_TYPE"],
    [
      "dateTimeValue no date-time",
      "PATCH",
      { dateTimeValue: "soon" },
      "dateTimeValue",
      "BAD_FORMAT",
    ],
  ];
  for (const [name, method, body, path, code] of faulty) {
    test(name, async () => {
      const answer = await call(method, 8, body);
      expect(answer.status).toBe(422);
      expect(answer.body.violations[0]).toMatchObject({ path, code });
    });
  }
});

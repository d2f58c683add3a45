/** The panel's calls for couriers (setup-file.md, The panel's HTTP API): tokens, signing secrets, activation. */
import { beforeAll, describe, expect, test } from "bun:test";
import { applySetupFile } from "#core/runtime/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { event, type PushOptions, push } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

const courierOf = (code: string, members: object = {}) => ({
  code,
  tokens: [`tok_${code}`],
  signingSecrets: [`sig_${code}`],
  rateLimit: { perSecond: 10_000, burst: 10_000 },
  ...members,
});

const runtime = forAll(() => openTestRuntime(testSetup()));
const ingest = forAll(() => startIngest(runtime));
const panel = forAll(() => openTestPanel(runtime));
beforeAll(async () => {
  await addShipment(runtime, "TN1");
});

const apply = (...couriers: ReturnType<typeof courierOf>[]) =>
  applySetupFile(runtime, { couriers });
const send = (courier: string, options: PushOptions) =>
  push(ingest.url ?? "", [event()], { courier, path: "/v1/events/validate", ...options });
const call = (method: string, path: string) => panel.call(method, `/panel/api/couriers/${path}`);

describe("tokens", () => {
  test("an issued one is shown once and works beside the old one until it is revoked", async () => {
    await apply(courierOf("ISSUE"));
    const { status, body } = await call("POST", "ISSUE/tokens");
    expect(status).toBe(201);
    expect(body.token).toMatch(/^tok_[0-9a-f]{64}$/);
    for (const token of [body.token, "tok_ISSUE"]) {
      expect((await send("ISSUE", { token })).status).toBe(200);
    }
    expect(JSON.stringify((await call("GET", "ISSUE")).body)).not.toContain(body.token);
    expect((await call("DELETE", `ISSUE/tokens/${body.id}`)).status).toBe(204);
    expect((await send("ISSUE", { token: body.token })).status).toBe(401);
    expect((await send("ISSUE", { token: "tok_ISSUE" })).status).toBe(200);
    expect((await call("DELETE", `ISSUE/tokens/${body.id}`)).status).toBe(404);
  });

  test("an issued one survives the next application of the same setup file, and of a changed one", async () => {
    await apply(courierOf("SURVIVE"));
    const { token } = (await call("POST", "SURVIVE/tokens")).body;
    expect(await apply(courierOf("SURVIVE"))).toBe(0);
    expect((await send("SURVIVE", { token })).status).toBe(200);
    await apply(courierOf("SURVIVE", { tokens: ["tok_next"] }));
    expect((await send("SURVIVE", { token })).status).toBe(200);
    expect((await send("SURVIVE", { token: "tok_SURVIVE" })).status).toBe(401);
  });

  test("one of the setup file stays revoked for as long as the file names it", async () => {
    await apply(courierOf("LEAK"));
    const { tokens } = (await call("GET", "LEAK")).body;
    expect(tokens).toEqual([{ id: expect.any(String), source: "setup", createdAt: null }]);
    expect((await call("DELETE", `LEAK/tokens/${tokens[0].id}`)).status).toBe(204);
    await apply(courierOf("LEAK"));
    expect((await send("LEAK", { token: "tok_LEAK" })).status).toBe(401);
    await apply(courierOf("LEAK", { tokens: ["tok_LEAK_2"] }));
    await apply(courierOf("LEAK"));
    expect((await send("LEAK", { token: "tok_LEAK" })).status).toBe(200);
  });

  test("ten may be issued, one more is 409 until one is revoked", async () => {
    await apply(courierOf("MANY"));
    const issued = [];
    for (let at = 0; at < 10; at += 1) issued.push((await call("POST", "MANY/tokens")).body);
    expect((await call("POST", "MANY/tokens")).status).toBe(409);
    await call("DELETE", `MANY/tokens/${issued[0].id}`);
    expect((await call("POST", "MANY/tokens")).status).toBe(201);
  });

  test("calls at once, and a setup file with them, lose no change", async () => {
    await apply(courierOf("RACE"));
    const [, ...answers] = await Promise.all([
      apply(courierOf("RACE", { name: "Race" })),
      ...Array.from({ length: 6 }, () => call("POST", "RACE/tokens")),
      call("POST", "RACE/deactivate"),
    ]);
    const { body } = await call("GET", "RACE");
    expect([body.name, body.acceptingEvents, body.tokens.length]).toEqual(["Race", false, 7]);
    for (const { body: issued } of answers.slice(0, 6)) {
      expect((await send("RACE", { token: issued.token })).status).toBe(200);
    }
  });
});

describe("signing secrets", () => {
  const signed = (...secrets: string[]) => send("SIGN", { token: "tok_SIGN", secrets });

  test("an issued one verifies beside the old one, survives the setup file, and can be revoked", async () => {
    await apply(courierOf("SIGN"));
    const { status, body } = await call("POST", "SIGN/signing-secrets");
    expect(status).toBe(201);
    expect((await signed(body.secret)).status).toBe(200);
    expect((await signed("sig_SIGN")).status).toBe(200);
    expect(await apply(courierOf("SIGN"))).toBe(0);
    expect((await signed(body.secret)).status).toBe(200);
    expect((await call("DELETE", `SIGN/signing-secrets/${body.id}`)).status).toBe(204);
    expect((await signed(body.secret)).body.code).toBe("BAD_SIGNATURE");
  });

  test("one of the setup file can be revoked and stays so", async () => {
    const [{ id }] = (await call("GET", "SIGN")).body.signingSecrets;
    expect((await call("DELETE", `SIGN/signing-secrets/${id}`)).status).toBe(204);
    await apply(courierOf("SIGN"));
    expect((await signed("sig_SIGN")).status).toBe(403);
  });
});

test("the first event in a signed message is noted: one that is unsigned, judged only or not accepted is not", async () => {
  await apply(courierOf("FIRST"));
  await addShipment(runtime, "SIGNED-1", { courier: "FIRST" });
  const found = event({ trackingNumber: "SIGNED-1" });
  const secrets = ["sig_FIRST"];
  const sent = { courier: "FIRST", token: "tok_FIRST", path: "/v1/events" };
  const to = ingest.url ?? "";
  const noted = async () => (await call("GET", "FIRST")).body.firstSignedAt;
  await push(to, [found], { ...sent, secrets, path: "/v1/events/validate" });
  await push(to, [event({ trackingNumber: "NOWHERE" })], { ...sent, secrets });
  expect((await push(to, [found], sent)).body.results[0].outcome).toBe("ACCEPTED");
  expect(await noted()).toBeNull();
  await push(to, [event({ trackingNumber: "SIGNED-1" })], { ...sent, secrets });
  const at = await eventually(noted, "the first signed event is noted");
  await push(to, [event({ trackingNumber: "SIGNED-1" })], { ...sent, secrets });
  expect(await noted()).toBe(at);
});

describe("activation", () => {
  const status = async (code: string) =>
    (await send(code, { token: `tok_${code}`, path: "/v1/events" })).status;

  test("activate and deactivate switch the events at once", async () => {
    await apply(courierOf("SWITCH", { acceptingEvents: false }));
    expect(await status("SWITCH")).toBe(404);
    expect((await call("POST", "SWITCH/activate")).body).toEqual({
      code: "SWITCH",
      acceptingEvents: true,
    });
    expect(await status("SWITCH")).toBe(200);
    expect((await call("POST", "SWITCH/deactivate")).status).toBe(200);
    expect(await status("SWITCH")).toBe(404);
  });

  test("it outlives the same setup file, and a file that says otherwise than before counts", async () => {
    await apply(courierOf("LIVE", { acceptingEvents: false }));
    await call("POST", "LIVE/activate");
    await apply(courierOf("LIVE", { acceptingEvents: false }));
    expect(await status("LIVE")).toBe(200);
    await apply(courierOf("LIVE", { acceptingEvents: true }));
    await apply(courierOf("LIVE", { acceptingEvents: false }));
    expect(await status("LIVE")).toBe(404);
  });
});

test("an unknown courier is 404", async () => {
  for (const path of ["tokens", "signing-secrets", "activate", "deactivate"]) {
    const answer = await call("POST", `NOBODY/${path}`);
    expect([answer.status, answer.body.code]).toEqual([404, "COURIER_NOT_FOUND"]);
  }
  expect((await call("GET", "NOBODY")).status).toBe(404);
});

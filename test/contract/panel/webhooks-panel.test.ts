/** setup-file.md, The panel's HTTP API: endpoints. Document 3, Endpoint configuration, Signature rules, Limits. */
import { afterEach, describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { allEntities } from "#core/configuration/store/entities.ts";
import { SETUP_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { applySetup } from "#core/setup/store/apply-setup.ts";
import { verifySignature } from "#core/webhooks/rules/signature.ts";
import { disableEndpoint } from "#core/webhooks/store/endpoints.ts";
import { startWebhooks } from "#processors/webhooks/start.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import type { Answer } from "#test/support/product/api.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import {
  applyEvents,
  openWebhookRuntime,
  passTime,
  STATUS,
  setActive,
} from "#test/support/product/webhooks.ts";
import { startReceiver } from "#test/support/servers/receiver.ts";

let shipments = 0;

const OUTLET = "/panel/api/channels/acme-outlet/webhooks";
const made: string[] = [];

const receiver = forAll(startReceiver);
const runtime = forAll(() => openWebhookRuntime([]));
const panel = forAll(() => openTestPanel(runtime));
forAll(() => startWebhooks(runtime));

afterEach(async () => {
  for (const id of made.splice(0)) await panel.call("DELETE", `/panel/api/webhooks/${id}`);
  receiver.requests.length = 0;
  receiver.behave(200);
});

const input = (members: Readonly<Record<string, unknown>> = {}) => ({
  url: receiver.url,
  alertEmail: "ops@acme.test",
  ...members,
});

/** An endpoint of channel acme-outlet that is gone after the test. */
async function make(members: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
  const answer = await panel.call("POST", OUTLET, input(members));
  if (answer.status === 201) made.push(answer.body.endpointId);
  return answer;
}

const path = (id: string, rest = "") => `/panel/api/webhooks/${id}${rest}`;

/** One status change of a new shipment of the channel. */
async function change(): Promise<void> {
  shipments += 1;
  const id = await addShipment(runtime, `PANEL-${shipments}`, { channel: "acme-outlet" });
  await applyEvents(runtime, id, [{ status: STATUS.inTransit }]);
}

async function nextRequest() {
  const before = receiver.requests.length;
  await change();
  await eventually(() => receiver.requests.length > before, "the webhook arrives");
  const request = receiver.requests.at(-1);
  if (!request) throw new Error("no request");
  return request;
}

/** What the next request's signature is worth under each secret. */
async function verdictsOf(secrets: readonly string[]) {
  const { headers, raw } = await nextRequest();
  const header = String(headers["x-service-signature"]);
  const nowMs = runtime.live.now();
  return secrets.map((secret) => verifySignature(header, [secret], Buffer.from(raw), nowMs));
}

describe("creating an endpoint", () => {
  test("201 shows the secret this once; it works and is encrypted at rest", async () => {
    const { status, body } = await make();
    expect(status).toBe(201);
    expect(body.secret).toMatch(/^whsec_[0-9a-f]{64}$/);
    expect(body).toMatchObject({
      channel: "acme-outlet",
      url: receiver.url,
      events: ["shipment.updated"],
      trigger: "status_change",
      statuses: [],
      include: [],
      alertEmail: "ops@acme.test",
      status: "active",
      standardWebhooks: false,
      failingSince: null,
      id: body.endpointId,
    });
    const { secret, ...shown } = body;
    expect((await panel.call("GET", path(body.id))).body).toEqual(shown);
    const list = (await panel.call("GET", OUTLET)).body;
    expect(list).toEqual({ total: 1, items: [shown] });
    const stored = JSON.stringify(await allEntities(runtime.redis, "endpoint"));
    expect(stored).toContain(body.id);
    expect(stored).not.toContain(secret.slice(6));
    const request = await nextRequest();
    const header = String(request.headers["x-service-signature"]);
    const raw = Buffer.from(request.raw);
    expect(verifySignature(header, [secret], raw, runtime.live.now())).toBe("valid");
  });

  test("a channel has at most 5, disabled ones included; deleting one makes room", async () => {
    const first = await make();
    for (let n = 2; n <= 5; n += 1) expect((await make()).status).toBe(201);
    await panel.call("POST", path(first.body.id, "/disable"));
    const refused = await make();
    expect(refused).toMatchObject({ status: 409, body: { code: "TOO_MANY_ENDPOINTS" } });
    expect(refused.headers.get("content-type")).toContain("application/problem+json");
    expect((await panel.call("DELETE", path(first.body.id))).status).toBe(204);
    expect((await make()).status).toBe(201);
  });

  test("ten requests at once make five endpoints and no more", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => make()));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
    expect((await panel.call("GET", OUTLET)).body.total).toBe(5);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ["http", { url: "http://merchant.example/hook" }, "url"],
    ["credentials", { url: "https://user:pass@merchant.example/" }, "url"],
    ["a user only", { url: "https://user@merchant.example/" }, "url"],
    ["2,049 characters", { url: `https://m.example/${"x".repeat(2_031)}` }, "url"],
    ["no url", { url: "merchant" }, "url"],
    ["a space before it", { url: " https://merchant.example/hook" }, "url"],
    ["a line break in it", { url: "https://merchant.example/hook\n?key=1" }, "url"],
    ["a backslash", { url: "https:\\\\merchant.example/hook" }, "url"],
    ["no slashes before the host", { url: "https:merchant.example/hook" }, "url"],
    ["no host", { url: "https:///merchant.example/hook" }, "url"],
    ["a private address", { url: "https://10.0.0.1/" }, "url"],
    ["link-local metadata", { url: "https://169.254.169.254/" }, "url"],
    ["an address as one number", { url: "https://167772161/" }, "url"],
    ["an IPv4-mapped address", { url: "https://[::ffff:10.0.0.1]/" }, "url"],
    ["an unknown status", { statuses: ["DELIVERED", "ARRIVED"] }, "statuses[1]"],
    ["a status as number", { statuses: [4] }, "statuses[0]"],
    ["an unknown trigger", { trigger: "sometimes" }, "trigger"],
    ["an unknown section", { include: ["parcels"] }, "include[0]"],
    ["an unknown event type", { events: ["label.created"] }, "events[0]"],
    ["no address to alert", { alertEmail: "nobody" }, "alertEmail"],
    ["an unknown member", { secret: WEBHOOK_SECRET }, "secret"],
  ])("422: %s", async (_, members, fault) => {
    const { status, body } = await make(members);
    expect(status).toBe(422);
    expect(body).toMatchObject({ code: "INVALID_BODY", violations: [{ path: fault }] });
  });

  test("all faults are listed at once, those of the url among them", async () => {
    const wrong = { url: "http://m.example/", trigger: "sometimes", alertEmail: "nobody" };
    const host = { url: "https://10.0.0.1/", statuses: ["NO"] };
    const listed = async (members: Record<string, unknown>) =>
      (await make(members)).body.violations.map(({ path: at }: { path: string }) => at).sort();
    expect(await listed(wrong)).toEqual(["alertEmail", "trigger", "url"]);
    expect(await listed(host)).toEqual(["statuses[0]", "url"]);
  });

  test("2,048 characters are accepted", async () => {
    const url = `https://m.invalid/${"x".repeat(2_030)}`;
    expect(url).toHaveLength(2_048);
    expect((await make({ url })).status).toBe(201);
  });

  test("alertEmail is required", async () => {
    const { status, body } = await make({ alertEmail: undefined });
    expect([status, body.violations[0]?.path]).toEqual([422, "alertEmail"]);
  });

  test("404 for an unknown channel and for an unknown endpoint", async () => {
    const unknown = await panel.call("POST", "/panel/api/channels/none/webhooks", input());
    expect(unknown).toMatchObject({ status: 404, body: { code: "CHANNEL_NOT_FOUND" } });
    expect((await panel.call("GET", path("ep_none"))).body.code).toBe("ENDPOINT_NOT_FOUND");
  });
});

describe("changing an endpoint", () => {
  test("what is given changes and counts from the next change on, the rest stays", async () => {
    const { body } = await make({ statuses: ["DELIVERED"] });
    const patch = { statuses: [], include: ["consignee"], trigger: "every_event" };
    const changed = await panel.call("PATCH", path(body.id), patch);
    expect(changed).toMatchObject({ status: 200, body: { ...patch, alertEmail: "ops@acme.test" } });
    const request = await nextRequest();
    expect(request.body.data.trigger).toBe("every_event");
    expect(request.body.data.shipment).toHaveProperty("consignee");
  });

  test("422 for a private host or an unknown status; nothing changes", async () => {
    const { body } = await make();
    for (const patch of [{ url: "https://192.168.0.1/" }, { statuses: ["NO"] }, { id: "x" }]) {
      expect((await panel.call("PATCH", path(body.id), patch)).status).toBe(422);
    }
    expect((await panel.call("GET", path(body.id))).body.url).toBe(receiver.url);
  });

  test("writes of one endpoint at the same time all count", async () => {
    const { body } = await make();
    const patches = [
      { url: `${receiver.url}?changed` },
      { trigger: "every_event" },
      { statuses: ["DELIVERED"] },
      { include: ["consignee"] },
      { alertEmail: "other@acme.test" },
      { standardWebhooks: true },
    ];
    const rotation = panel.call("POST", path(body.id, "/rotate-secret"));
    const off = setActive(runtime.redis, body.id, false);
    await Promise.all([...patches.map((p) => panel.call("PATCH", path(body.id), p)), off]);
    const { secret } = (await rotation).body;
    const { body: after } = await panel.call("GET", path(body.id));
    expect(after).toMatchObject({ ...Object.assign({}, ...patches), status: "disabled" });
    const entities = await allEntities(runtime.redis, "endpoint");
    const entity = entities.find(({ id }) => id === body.id);
    expect(runtime.secrets.vault.open(entity?.secret ?? "")).toBe(secret);
    expect(runtime.secrets.vault.open(entity?.previousSecret ?? "")).toBe(body.secret);
  });

  test("a lock left behind by a killed process ends by itself", async () => {
    const { body } = await make();
    await runtime.redis.set(SETUP_LOCK_KEY, "killed", { PX: 200 });
    const changed = await panel.call("PATCH", path(body.id), { trigger: "every_event" });
    expect(changed.body.trigger).toBe("every_event");
  });
});

describe("secrets", () => {
  test("after a rotation both secrets sign for 24 hours, then the new one only", async () => {
    const { body } = await make();
    const rotated = await panel.call("POST", path(body.id, "/rotate-secret"));
    expect(rotated.body.secret).toMatch(/^whsec_[0-9a-f]{64}$/);
    expect(Object.keys(rotated.body)).toEqual(["secret"]);
    const verdicts = () => verdictsOf([rotated.body.secret, body.secret]);
    expect(await verdicts()).toEqual(["valid", "valid"]);
    expect((await panel.call("GET", path(body.id))).body.previousSecretUntil).not.toBeNull();
    await passTime(runtime, 86_400);
    expect(await verdicts()).toEqual(["valid", "mismatch"]);
    expect((await panel.call("GET", path(body.id))).body.previousSecretUntil).toBeNull();
  });

  test("409 to a second rotation within 24 hours, which changes nothing; after them it is allowed", async () => {
    const { body } = await make();
    const rotate = () => panel.call("POST", path(body.id, "/rotate-secret"));
    const { secret } = (await rotate()).body;
    await passTime(runtime, 86_340);
    const refused = await rotate();
    expect(refused).toMatchObject({ status: 409, body: { code: "ROTATION_RUNNING" } });
    expect(refused.headers.get("content-type")).toContain("application/problem+json");
    expect(JSON.stringify(refused.body)).not.toContain("whsec_");
    expect(await verdictsOf([secret, body.secret])).toEqual(["valid", "valid"]);
    await passTime(runtime, 60);
    const third = await rotate();
    expect(third.status).toBe(200);
    expect(await verdictsOf([third.body.secret, secret, body.secret])).toEqual([
      "valid",
      "valid",
      "mismatch",
    ]);
  });

  test("revokePrevious ends the older secret at once; the replaced one signs for 24 hours more", async () => {
    const { body } = await make();
    const rotate = (members?: object) =>
      panel.call("POST", path(body.id, "/rotate-secret"), members);
    const second = (await rotate({ revokePrevious: true })).body.secret;
    const third = (await rotate({ revokePrevious: true })).body.secret;
    expect(await verdictsOf([third, second, body.secret])).toEqual(["valid", "valid", "mismatch"]);
    expect((await rotate({ revokePrevious: false })).status).toBe(409);
    for (const wrong of [{ revokePrevious: "yes" }, { revoke: true }, []]) {
      expect(await rotate(wrong)).toMatchObject({ status: 422, body: { code: "INVALID_BODY" } });
    }
  });

  test.each([undefined, { revokePrevious: true }])(
    "of rotations that begin together one takes place, with %j",
    async (members) => {
      const { body } = await make();
      const answers = await Promise.all(
        Array.from({ length: 5 }, () =>
          panel.call("POST", path(body.id, "/rotate-secret"), members),
        ),
      );
      const statuses = answers.map(({ status }) => status).sort();
      expect(statuses).toEqual([200, 409, 409, 409, 409]);
      const won = answers.find(({ status }) => status === 200)?.body.secret;
      expect(await verdictsOf([won, body.secret])).toEqual(["valid", "valid"]);
    },
  );

  test("the Standard Webhooks headers are off by default and valid to its package where asked for", async () => {
    const { body } = await make();
    expect((await nextRequest()).headers).not.toHaveProperty("webhook-signature");
    await panel.call("PATCH", path(body.id), { standardWebhooks: true });
    const { secret } = (await panel.call("POST", path(body.id, "/rotate-secret"))).body;
    // The package compares with the machine's own clock.
    const { headers, raw } = await atRealTime(nextRequest);
    const given = headers as Record<string, string>;
    for (const one of [secret, body.secret]) {
      expect(new Webhook(one).verify(raw, given)).toMatchObject({ type: "shipment.updated" });
    }
    const other = new Webhook(`whsec_${"f".repeat(64)}`);
    expect(() => other.verify(raw, given)).toThrow();
    expect(given["webhook-id"]).toBe(JSON.parse(raw).id);
  });
});

/** Runs with the service clock put back to the real one. */
async function atRealTime<T>(work: () => Promise<T>): Promise<T> {
  const aheadSeconds = Math.round((runtime.live.now() - Date.now()) / 1000);
  await passTime(runtime, -aheadSeconds);
  const result = await work();
  await passTime(runtime, aheadSeconds);
  return result;
}

describe("test event, disable, enable", () => {
  test("the test event's result is answered", async () => {
    const { body } = await make();
    const sent = await panel.call("POST", path(body.id, "/test"));
    expect(sent).toMatchObject({ status: 200, body: { delivered: true, httpStatus: 200 } });
    const headers = { "X-Why": "no disk", Authorization: "Bearer of-the-receiver" };
    receiver.behave((_, response) => void response.writeHead(500, headers).end("sorry"));
    const failed = await panel.call("POST", path(body.id, "/test"));
    expect(failed.body).toMatchObject({
      delivered: false,
      httpStatus: 500,
      error: "status 500",
      answer: { headers: { "X-Why": "no disk", Authorization: "***" }, body: "sorry" },
    });
    expect(receiver.requests.map(({ body: sentBody }) => sentBody.type)).toEqual([
      "webhook.test",
      "webhook.test",
    ]);
    const { body: log } = await panel.call("GET", path(body.id, "/deliveries"));
    expect(log).toEqual({ items: [], cursor: null, nextCursor: null });
  });

  test("the test event is the sample in a chosen status and detail, and the answer has what was sent", async () => {
    const { body } = await make({ include: ["consignee"] });
    const test = (chosen?: object) => panel.call("POST", path(body.id, "/test"), chosen);
    const held = await test({ status: "EXCEPTION", statusDetail: 4 });
    expect(held).toMatchObject({ status: 200, body: { delivered: true } });
    expect(held.body.payload.data).toMatchObject({
      shipment: {
        trackingNumber: "TEST0000000001",
        status: "EXCEPTION",
        statusDescription: "Exception",
        statusDetail: 4,
        statusDetailDescription: "Held in depot",
        consignee: { name: "Maria Bianchi" },
      },
      event: { courierStatus: "Anomalia", statusCode: "EXCEPTION", statusDetailId: 4 },
    });
    const plain = await test();
    expect(plain.body.payload.data.shipment).toMatchObject({
      status: "IN_TRANSIT",
      statusDetail: 0,
    });
    const sent = receiver.requests.map((one) => one.body);
    expect(sent).toEqual([held.body.payload, plain.body.payload]);
  });

  test("422 to a test in a status or a detail that there is not, and nothing is sent", async () => {
    const { body } = await make();
    for (const [chosen, fault] of [
      [{ status: "LOST" }, { path: "status" }],
      [
        { status: "EXCEPTION", statusDetail: 4_711 },
        { path: "statusDetail", code: "NOT_ALLOWED" },
      ],
      [
        { status: "DELIVERED", statusDetail: 4 },
        { path: "statusDetail", code: "NOT_ALLOWED" },
      ],
      [{ statusDetail: -1 }, { path: "statusDetail" }],
      [{ state: "DELIVERED" }, { path: "state" }],
    ] as const) {
      const answer = await panel.call("POST", path(body.id, "/test"), chosen);
      expect(answer).toMatchObject({ status: 422, body: { violations: [fault] } });
    }
    expect(receiver.requests).toEqual([]);
  });

  test("the status details are listed with the status that each belongs to", async () => {
    const { body } = await panel.call("GET", "/panel/api/status-details");
    const held = body.items.find(({ id }: { id: number }) => id === 4);
    expect(held).toMatchObject({
      status: "EXCEPTION",
      description: { en: "Held in depot", it: "In giacenza" },
    });
  });

  test("disabling fails what waits, enabling restarts clean, enabling again changes nothing", async () => {
    const { body } = await make();
    receiver.behave(503);
    await nextRequest();
    const log = async () => (await panel.call("GET", path(body.id, "/deliveries"))).body.items;
    await eventually(async () => (await log())[0]?.state === "waiting", "a retry waits");
    expect((await panel.call("GET", path(body.id))).body.failingSince).not.toBeNull();
    const again = await panel.call("POST", path(body.id, "/enable"));
    expect(again.body.failingSince).not.toBeNull();
    expect((await log())[0].state).toBe("waiting");
    const off = await panel.call("POST", path(body.id, "/disable"));
    expect(off.body).toMatchObject({ status: "disabled", failingSince: null });
    expect(await log()).toMatchObject([{ state: "failed", reason: "endpoint disabled" }]);
    await change();
    const on = await panel.call("POST", path(body.id, "/enable"));
    expect(on.body.status).toBe("active");
    receiver.behave(200);
    await nextRequest();
    expect((await log()).map(({ state }: { state: string }) => state)).toContain("failed");
  });

  test("deleting fails what waits and forgets the endpoint", async () => {
    const { body } = await make();
    receiver.behave(503);
    await nextRequest();
    expect((await panel.call("DELETE", path(body.id))).status).toBe(204);
    for (const [method, rest] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["POST", "/test"],
      ["POST", "/enable"],
      ["POST", "/rotate-secret"],
      ["GET", "/deliveries"],
      ["GET", "/stats"],
    ] as const) {
      const answer = await panel.call(
        method,
        path(body.id, rest),
        method === "PATCH" ? {} : undefined,
      );
      expect(answer).toMatchObject({ status: 404, body: { code: "ENDPOINT_NOT_FOUND" } });
    }
  });
});

describe("document 3, Endpoint: why an endpoint is disabled, and how it does", () => {
  const view = async (id: string) => (await panel.call("GET", path(id))).body;
  const isListed = async (one: { readonly id: string }) => {
    const { body: list } = await panel.call("GET", OUTLET);
    expect(list.items.find(({ id }: { id: string }) => id === one.id)).toEqual(one);
  };

  test("active and healthy: nothing to tell", async () => {
    const { body } = await make();
    expect(await view(body.id)).toMatchObject({
      status: "active",
      disabledSince: null,
      disabledReason: null,
      failingSince: null,
      lastError: null,
    });
  });

  test("switched off by hand: since then; switching it off again changes nothing", async () => {
    const { body } = await make();
    const off = await panel.call("POST", path(body.id, "/disable"));
    expect(off.body).toMatchObject({ disabledReason: "manual", lastError: null });
    await isListed(off.body);
    const since = Date.parse(off.body.disabledSince);
    expect(Math.abs(since - runtime.live.now())).toBeLessThan(60_000);
    await passTime(runtime, 60);
    await panel.call("POST", path(body.id, "/disable"));
    expect((await view(body.id)).disabledSince).toBe(off.body.disabledSince);
    const on = await panel.call("POST", path(body.id, "/enable"));
    expect(on.body).toMatchObject({ disabledSince: null, disabledReason: null });
  });

  test("failing: since when and why; then disabled for it, until it is enabled", async () => {
    const { body } = await make();
    receiver.behave(503);
    await nextRequest();
    const failing = await eventually(async () => {
      const found = await view(body.id);
      return found.lastError === null ? null : found;
    }, "the failure is reported");
    expect(failing).toMatchObject({
      status: "active",
      disabledSince: null,
      lastError: { error: "status 503" },
    });
    const apartMs = Date.parse(failing.lastError.at) - Date.parse(failing.failingSince);
    expect(Math.abs(apartMs)).toBeLessThan(10_000);
    await passTime(runtime, 3 * 86_400);
    await eventually(async () => {
      const { state } = (await panel.call("GET", path(body.id, "/deliveries"))).body.items[0];
      return (await view(body.id)).status === "disabled" && state === "failed";
    }, "it is disabled, and what waited has failed");
    const off = await view(body.id);
    await isListed(off);
    expect(off).toMatchObject({
      disabledReason: "failing",
      failingSince: failing.failingSince,
      lastError: { error: "status 503" },
    });
    const waitedMs = Date.parse(off.disabledSince) - Date.parse(off.failingSince);
    expect(waitedMs).toBeGreaterThanOrEqual(3 * 86_400_000);
    await panel.call("POST", path(body.id, "/disable"));
    expect(await view(body.id)).toEqual(off);
    // The delivery is gone by then.
    await passTime(runtime, 30 * 86_400);
    expect((await view(body.id)).lastError).toEqual(off.lastError);
    const on = await panel.call("POST", path(body.id, "/enable"));
    expect(on.body).toMatchObject({
      disabledReason: null,
      failingSince: null,
      lastError: null,
    });
  });
});

describe("the setup file and the panel", () => {
  const apply = (webhook: Record<string, unknown> | null) => {
    const setup = testSetup();
    const channel = setup.companies?.[1]?.channels?.[0];
    if (channel && webhook) channel.webhooks = [{ ...FILED, ...webhook }];
    return applySetup(runtime.redis, runtime.secrets.vault, setup, runtime.live.now());
  };
  const FILED = { code: "main", url: "https://m.invalid/a", alertEmail: "o@m.test" };
  const filed = async () => {
    const { items } = (await panel.call("GET", "/panel/api/channels/beta-it/webhooks")).body;
    return items;
  };

  test("an unchanged entry undoes nothing that the panel did; a changed one counts", async () => {
    await apply({ secret: WEBHOOK_SECRET });
    const [{ id }] = await filed();
    await panel.call("PATCH", path(id), { url: "https://m.invalid/b" });
    const { secret } = (await panel.call("POST", path(id, "/rotate-secret"))).body;
    await disableEndpoint(runtime.redis, await runtime.live.refresh(), id, runtime.live.now());
    expect((await apply({ secret: WEBHOOK_SECRET })).written).toBe(0);
    expect(await filed()).toMatchObject([{ id, url: "https://m.invalid/b", status: "disabled" }]);
    await apply({ secret: WEBHOOK_SECRET, alertEmail: "new@m.test" });
    expect(await filed()).toMatchObject([
      { id, url: "https://m.invalid/a", alertEmail: "new@m.test", status: "disabled" },
    ]);
    expect((await filed())[0].disabledReason).toBe("manual");
    const entity = (await allEntities(runtime.redis, "endpoint")).find((one) => one.id === id);
    expect(runtime.secrets.vault.open(entity?.secret ?? "")).toBe(secret);
  });

  test("an endpoint that the panel deleted comes back only with a changed entry", async () => {
    await apply({ url: "https://m.invalid/c" });
    const [{ id }] = await filed();
    await panel.call("DELETE", path(id));
    expect((await apply({ url: "https://m.invalid/c" })).written).toBe(0);
    expect(await filed()).toEqual([]);
    await apply({ url: "https://m.invalid/d" });
    expect(await filed()).toMatchObject([{ url: "https://m.invalid/d" }]);
  });

  test("endpoints that the panel made stay, whatever the file names", async () => {
    const { body } = await panel.call("POST", "/panel/api/channels/beta-it/webhooks", input());
    await apply({ url: "https://m.invalid/e" });
    const ids = (await filed()).map(({ id }: { id: string }) => id);
    expect(ids).toHaveLength(2);
    expect(ids).toContain(body.id);
  });
});

describe("what an endpoint is made with", () => {
  test("its description and its own headers, which replace none of ours", async () => {
    const headers = { "X-Tenant": "acme", Authorization: "Bearer of-the-merchant" };
    const { status, body } = await make({ description: "Warehouse", headers });
    const masked = { "X-Tenant": "••••", Authorization: "••••" };
    expect([status, body.description, body.headers]).toEqual([201, "Warehouse", masked]);
    const request = await nextRequest();
    expect(request.headers["x-tenant"]).toBe("acme");
    expect(request.headers["authorization"]).toBe("Bearer of-the-merchant");
    expect(request.headers["x-service-event-type"]).toBe("shipment.updated");
    for (const name of ["X-Service-Signature", "content-type", "Host", "traceparent"]) {
      const answer = await make({ headers: { [name]: "mine" } });
      expect([name, answer.status]).toEqual([name, 422]);
    }
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`X-Own-${at}`, "1"]));
    const patch = (own: unknown) => panel.call("PATCH", path(body.endpointId), { headers: own });
    const stored = async () =>
      JSON.stringify(await runtime.redis.hGetAll(`config:endpoint:${body.endpointId}`));
    expect(await stored()).not.toContain("of-the-merchant");
    // What is shown stands for what is stored, when it is given back.
    const changed = await patch({ "X-Tenant": "beta", authorization: "••••" });
    expect(changed.body.headers).toEqual({ "X-Tenant": "••••", authorization: "••••" });
    receiver.requests.length = 0;
    const again = await nextRequest();
    expect(again.headers["x-tenant"]).toBe("beta");
    expect(again.headers["authorization"]).toBe("Bearer of-the-merchant");
    expect((await patch({ "X-New": "••••" })).status).toBe(422);
    expect((await make({ headers: { "X-New": "••••" } })).status).toBe(422);
    expect((await patch(many(20))).status).toBe(200);
    for (const wrong of [many(21), { "X-A": "a\nb" }, { "X-A": "1", "x-a": "2" }, { "": "1" }]) {
      expect((await patch(wrong)).status).toBe(422);
    }
  });

  test("switched off, so that nothing is sent before it is enabled", async () => {
    const { body } = await make({ active: false });
    expect([body.status, body.disabledReason]).toEqual(["disabled", "manual"]);
    await change();
    const enabled = await panel.call("POST", path(body.endpointId, "/enable"));
    expect(enabled.body.status).toBe("active");
    await nextRequest();
    expect(receiver.requests.length).toBe(1);
  });
});

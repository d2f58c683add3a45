/** Test mode, on the running product: rehearsals with keys of mode test, killed in the middle, that reach nobody else. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { verifyWebhook } from "#client/src/webhooks.ts";
import { totpCode } from "#core/accounts/rules/totp.ts";
import { TEST_LIVES } from "#core/shipments/rules/test-parcel.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { request } from "#test/support/clients/merchant.ts";
import { askPanel } from "#test/support/clients/operator.ts";
import { bytesOfBase32 } from "#test/support/data/base32.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { item } from "#test/support/product/api.ts";
import { BARE, newProduct, type Product, productEnv } from "#test/support/product/product.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

const TEST_KEY = "key_test_of_acme";
const COURIER = "WAYBILL_TEST";

let live: Receiver;
let rehearsal: Receiver;
let product: Product;
let dataDir: string;
const tokens = new Map<string, string>();

beforeAll(async () => {
  [live, rehearsal] = await Promise.all([startReceiver(), startReceiver()]);
  product = await newProduct(BARE, setupOf(live, rehearsal), {
    WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8",
    WEBHOOK_CA_FILE: AUTHORITY.file,
    // Nobody listens there: mail of test mode must not be sent.
    SMTP_URL: "smtp://127.0.0.1:1",
  });
  dataDir = product.dataDir;
  await product.start();
}, 300_000);

afterAll(async () => {
  await product.end();
  await Promise.all([live.stop(), rehearsal.stop()]);
}, 300_000);

function setupOf(forLive: Receiver, forTests: Receiver) {
  const setup = labelSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  const keys = channel?.apiKeys ?? [];
  keys.push({ code: "rehearsal", mode: "test", key: TEST_KEY, companyWideRead: true });
  const common = { trigger: "every_event", alertEmail: "ops@acme.test" } as const;
  Object.assign(channel ?? {}, {
    webhooks: [
      { code: "live", url: forLive.url, ...common },
      { code: "test", mode: "test", url: forTests.url, secret: WEBHOOK_SECRET, ...common },
    ],
    emails: {
      managed: true,
      from: "shop@acme.test",
      templates: [{ event: "review", language: "it", subject: "Com'è andata?", body: "x" }],
    },
  });
  return setup;
}

async function call(method: string, path: string, body?: unknown, key = TEST_KEY) {
  const token = tokens.get(key) ?? (await tokenOf(key));
  tokens.set(key, token);
  const headers = { authorization: `Bearer ${token}` };
  return request(method, `${product.api}/v2${path}`, body, headers);
}

async function tokenOf(apiKey: string): Promise<string> {
  return (await request("POST", `${product.api}/v2/auth/token`, { apiKey })).body.token;
}

const operator = (method: string, path: string, body?: unknown) =>
  askPanel(product, method, path, body);

const advance = (seconds: number) => operator("POST", "/clock", { advanceSeconds: seconds });

async function create(
  trackingNumber: string,
  members: Readonly<Record<string, unknown>> = {},
  key = TEST_KEY,
) {
  const { body } = await call(
    "POST",
    "/shipments",
    { shipments: [item(trackingNumber, members)] },
    key,
  );
  return body.items[0].id as number;
}

const detail = async (id: number) => (await call("GET", `/shipments/${id}`)).body;

/** Codes of the history, oldest first, once the shipment is in a status. */
async function lived(id: number, status: string): Promise<string[]> {
  const shown = await eventually(async () => {
    const found = await detail(id);
    return found.status === status && found;
  }, `shipment ${id} is ${status}`);
  return shown.history.map((one: { statusCode: string }) => one.statusCode).toReversed();
}

const START = ["INFO_RECEIVED", "DEPARTED", "IN_TRANSIT"];

test("a parcel lives its life, with signed webhooks, exactly once although the product is killed", async () => {
  const id = await create("TEST_FAILED_THEN_DELIVERED-1", { courier: "gls italy" });
  const hooks = () => rehearsal.requests.filter((one) => one.body.data.shipment.id === id);
  await eventually(() => hooks().length >= 2, "the life has begun");
  await product.kill(false);
  await product.start();
  expect(await lived(id, "DELIVERED")).toEqual([
    ...[...START, "OUT_FOR_DELIVERY", "FAILED_ATTEMPT", "OUT_FOR_DELIVERY", "DELIVERED"],
  ]);
  const ids = () => new Set(hooks().map(({ body }) => body.id));
  await eventually(() => ids().size === 7, "every event has its webhook");
  const [first] = hooks();
  const told = await verifyWebhook({
    body: first?.raw ?? "",
    signature: first?.headers["x-service-signature"]?.toString(),
    secret: WEBHOOK_SECRET,
    nowMs: first?.atMs ?? 0,
  });
  expect(told.data.shipment).toMatchObject({ id, courier: COURIER, courierName: "Test courier" });
}, 300_000);

// Before the clock of the tests is moved: receivers compare the time of a signature with theirs.
test("listen forwards signed events to a receiver on this machine, sends one again by key press, and ends with where to go on", async () => {
  const heard: { readonly id: string; readonly number: string }[] = [];
  const local = Bun.serve({
    port: 0,
    async fetch(sent) {
      const signature = sent.headers.get("x-service-signature");
      const body = await sent.text();
      const { id, data } = await verifyWebhook({ body, signature, secret: WEBHOOK_SECRET });
      heard.push({ id, number: data.shipment.trackingNumber });
      // What is sent again a second time is still under way when listening ends.
      return heard.length === 6 ? new Promise(() => {}) : new Response(null, { status: 204 });
    },
  });
  const forward = `http://127.0.0.1:${local.port}/hook`;
  const { items } = (await operator("GET", "/channels/acme-it:test/webhooks")).body;
  const log = await operator("GET", `/webhooks/${items[0].endpointId}/deliveries?limit=1`);
  const since = new Date(Date.parse(log.body.items[0].createdAt) + 1).toISOString();
  const options = ["--panel", product.panel, "--channel", "acme-it:test", "--forward", forward];
  const listener = Bun.spawn(["bun", "client/src/cli.ts", "listen", ...options, "--since", since], {
    env: { ...productEnv(), WAYBILL_WEBHOOK_SECRET: WEBHOOK_SECRET },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  let said = "";
  const shownLines = () => said.split("\n").filter((line) => line.includes(" -> "));
  const read = listener.stdout.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({
      write(part) {
        said += part;
      },
    }),
  );
  await create("TEST_LOST-12");
  await eventually(() => heard.length === 4, "every event is forwarded");
  expect(new Set(heard.map(({ number }) => number))).toEqual(new Set(["TEST_LOST-12"]));
  listener.stdin.write("2");
  await listener.stdin.flush();
  await eventually(() => heard.length === 5, "one is sent again");
  expect(heard[4]).toEqual(heard[1] ?? { id: "", number: "" });
  // The receiver has it a little before the listener has the answer.
  await eventually(() => shownLines().length === 5, "every answer is shown");
  listener.stdin.write("2");
  await listener.stdin.flush();
  await eventually(() => heard.length === 6, "it is sent again once more");
  listener.stdin.write("q");
  await listener.stdin.end();
  expect(await listener.exited).toBe(0);
  await read;
  const lines = said.trim().split("\n");
  expect(lines[0]).toContain(`forwarding to ${forward}`);
  const shown = lines.slice(1, -2);
  expect(shown).toHaveLength(5);
  expect(lines.at(-2)).toContain("-> The operation was aborted");
  expect(lines.at(-1)).toMatch(/--since \d{4}-\S+Z$/);
  const pattern = /^\[[1-4]\] evt_[0-9a-f]{32} TEST_LOST-12 [A-Z_]+ -> 204 in \d+ ms$/;
  // A busy product takes up several steps at once: what it then shows is the status after the last of them.
  for (const line of shown) expect(line).toMatch(pattern);
  await local.stop(true);
}, 300_000);

test("listen goes on after an outage of the panel, ends at once by q, and says so when its endpoint is gone", async () => {
  const heard: string[] = [];
  let answer: () => Promise<Response> = async () => new Response(null, { status: 204 });
  const local = Bun.serve({
    port: 0,
    async fetch(sent) {
      heard.push(((await sent.json()) as { id: string }).id);
      return answer();
    },
  });
  let isOut = false;
  let refused = 0;
  const proxy = Bun.serve({
    port: 0,
    fetch(sent) {
      const { pathname, search } = new URL(sent.url);
      if (isOut && pathname.endsWith("/request")) {
        refused += 1;
        return new Response("restarting", { status: 503 });
      }
      return fetch(`${product.panel}${pathname}${search}`, { headers: sent.headers });
    },
  });
  const made = await operator("POST", "/channels/acme-it:test/webhooks", {
    url: rehearsal.url,
    alertEmail: "ops@acme.test",
    trigger: "every_event",
  });
  const options = ["--panel", proxy.url.href, "--endpoint", made.body.endpointId];
  const start = () =>
    Bun.spawn(["bun", "client/src/cli.ts", "listen", ...options, "--forward", `${local.url}hook`], {
      env: productEnv(),
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
  const listener = start();
  const output = listener.stdout.getReader();
  expect(new TextDecoder().decode((await output.read()).value)).toContain("listening to");
  isOut = true;
  await create("TEST_LOST-13");
  await eventually(() => refused >= 2, "the panel is asked again");
  isOut = false;
  await eventually(() => new Set(heard).size === 4, "no event is lost");
  await operator("DELETE", `/webhooks/${made.body.endpointId}`);
  expect(await listener.exited).toBe(1);
  expect(await new Response(listener.stderr).text()).toContain("ENDPOINT_NOT_FOUND");

  options.splice(2, 2, "--channel", "acme-it:test", "--since", "2026-01-01T01:00:00+01");
  answer = () => new Promise(() => {});
  const slow = start();
  const before = heard.length;
  await eventually(() => heard.length > before, "a receiver that does not answer has an event");
  slow.stdin.write("q");
  await slow.stdin.end();
  expect(await slow.exited).toBe(0);
  // Of an answer that nobody has waited for until its time was up.
  expect(await new Response(slow.stdout).text()).toContain("-> The operation was aborted");
  await Promise.all([local.stop(true), proxy.stop(true)]);
}, 300_000);

test("listen can log in with an account of the panel, and says why when it cannot", async () => {
  const email = "listener@example.com";
  const password = "correct horse battery staple";
  const invited = { email, name: "L", kind: "company", role: "owner", companyCode: "acme" };
  const { link } = (await operator("POST", "/invitations", invited)).body;
  const token = new URL(link).pathname.split("/").at(-1);
  expect((await operator("POST", `/invitations/${token}`, { password })).status).toBeLessThan(300);
  const options = ["--panel", product.panel, "--channel", "acme-it:test"];
  const command = ["bun", "client/src/cli.ts", "listen", ...options];
  const listenAs = async (given: string) => {
    const { PANEL_TOKEN: _, ...env } = productEnv();
    const child = Bun.spawn([...command, "--forward", "http://127.0.0.1:1/"], {
      env: { ...env, WAYBILL_EMAIL: email, WAYBILL_PASSWORD: given },
      stdin: new Blob(["q"]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [said, failed] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return { status: await child.exited, said, failed };
  };
  const good = await listenAs(password);
  expect(good).toMatchObject({ status: 0, failed: "" });
  expect(good.said).toContain("of acme-it:test, forwarding to");
  const wrong = await listenAs("another password");
  expect(wrong.status).toBe(1);
  expect(wrong.failed).toContain("The log-in was answered 401");

  const codeOf = await activateTotp(email, password);
  const without = await listenAs(password);
  expect([without.status, without.failed]).toEqual([1, expect.stringContaining("Give --code.")]);
  command.push("--code", codeOf());
  expect(await listenAs(password)).toMatchObject({ status: 0, failed: "" });
}, 300_000);

test("listen says that its endpoint is disabled, and sends its credentials to no address that the panel redirects to", async () => {
  const made = await operator("POST", "/channels/acme-it:test/webhooks", {
    url: rehearsal.url,
    alertEmail: "ops@acme.test",
  });
  await operator("POST", `/webhooks/${made.body.endpointId}/disable`);
  const elsewhere: string[] = [];
  const other = Bun.serve({
    port: 0,
    fetch(sent) {
      elsewhere.push(new URL(sent.url).pathname);
      return Response.json({ items: [] });
    },
  });
  const moved = Bun.serve({
    port: 0,
    fetch: (sent) => Response.redirect(new URL(new URL(sent.url).pathname, other.url).href, 307),
  });
  const listenAt = async (panel: string, more: object = {}) => {
    const options = ["--panel", panel, "--endpoint", made.body.endpointId];
    const command = ["bun", "client/src/cli.ts", "listen", ...options];
    const child = Bun.spawn([...command, "--forward", "http://127.0.0.1:1/"], {
      env: { ...productEnv(), ...more },
      stdin: new Blob(["q"]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const texts = [child.stdout, child.stderr].map((stream) => new Response(stream).text());
    return [await child.exited, ...(await Promise.all(texts))];
  };
  expect(await listenAt(product.panel)).toEqual([
    ...[0, expect.stringContaining("the endpoint is disabled (manual)"), ""],
  ]);
  for (const more of [
    {},
    { PANEL_TOKEN: undefined, WAYBILL_EMAIL: "a@b.test", WAYBILL_PASSWORD: "p" },
  ]) {
    expect(await listenAt(moved.url.href, more)).toEqual([
      ...[1, "", expect.stringContaining(`redirects to ${other.url.origin}`)],
    ]);
  }
  expect(elsewhere).toEqual([]);
  await operator("DELETE", `/webhooks/${made.body.endpointId}`);
  await Promise.all([other.stop(true), moved.stop(true)]);
}, 300_000);

test("listen prints its usage, names an address where no panel answers, and says that a channel has no endpoint", async () => {
  const listenWith = async (...options: string[]) => {
    const child = Bun.spawn(["bun", "cli/main.ts", "listen", ...options], {
      env: productEnv(),
      stdin: new Blob(["q"]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const texts = [child.stdout, child.stderr].map((stream) => new Response(stream).text());
    return [await child.exited, ...(await Promise.all(texts))];
  };
  const forward = ["--forward", "http://127.0.0.1:1/"];
  expect(await listenWith("--help")).toEqual([0, expect.stringMatching(/^usage: /), ""]);
  expect(await listenWith(...forward, "--panel", "http://127.0.0.1:1")).toEqual([
    ...[1, "", expect.stringMatching(/^http:\/\/127\.0\.0\.1:1: /)],
  ]);
  const empty = ["--panel", product.panel, "--channel", "acme-outlet:test"];
  expect(await listenWith(...forward, ...empty)).toEqual([
    ...[1, "", "There is no endpoint yet: create one in the control panel.\n"],
  ]);
}, 300_000);

/** @returns a code that has not been used */
async function activateTotp(email: string, password: string): Promise<() => string> {
  const url = `${product.panel}/panel/api`;
  const body = JSON.stringify({ email, password });
  const login = await fetch(`${url}/session`, { method: "POST", body });
  const cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  const headers = { cookie, "sec-fetch-site": "same-origin" };
  const start = { method: "POST", headers, body: JSON.stringify({ password }) };
  const begun = await fetch(`${url}/me/totp`, start);
  const { secret } = (await begun.json()) as { secret: string };
  const stepNow = () => Math.floor(Date.now() / 30_000);
  const used = stepNow();
  const code = totpCode(bytesOfBase32(secret), used);
  const put = { method: "PUT", headers, body: JSON.stringify({ password, code }) };
  expect((await fetch(`${url}/me/totp`, put)).status).toBeLessThan(300);
  return () => totpCode(bytesOfBase32(secret), Math.max(used + 1, stepNow()));
}

test("every scenario ends as its name says", async () => {
  const ends: Readonly<Record<string, string>> = {
    HELD: "EXCEPTION",
    LOST: "EXCEPTION",
    RETURNED: "RETURNED",
    REFUSED: "RETURNED",
    SILENT: "WAITING_TO_COMPUTE",
  };
  const ids = await Promise.all(TEST_LIVES.map((name) => create(`TEST_${name}-2`)));
  const other = await create("any other number");
  await advance(30);
  for (const [at, name] of TEST_LIVES.entries()) {
    if (name !== "SILENT") await lived(ids[at] ?? 0, ends[name] ?? "DELIVERED");
  }
  expect(await lived(other, "DELIVERED")).toEqual([...START, "OUT_FOR_DELIVERY", "DELIVERED"]);
  const idOf = (name: (typeof TEST_LIVES)[number]) => ids[TEST_LIVES.indexOf(name)] ?? 0;
  const outOfOrder = await eventually(async () => {
    const found = await lived(idOf("OUT_OF_ORDER"), "DELIVERED");
    return found.length === 5 && found;
  }, "the late events are there");
  expect(outOfOrder).toEqual([...START, "OUT_FOR_DELIVERY", "DELIVERED"]);
  expect(await detail(idOf("RENUMBERED"))).toMatchObject({
    newTrackingNumbers: ["TEST_RENUMBERED-2-NEW"],
  });
  expect((await detail(idOf("SILENT"))).history).toEqual([]);
}, 300_000);

test("in real time a step takes four hours", async () => {
  const id = await create("TEST_REALTIME_DELIVERED-3");
  await advance(4 * 3_600 + 60);
  await eventually(async () => (await detail(id)).history.length === 1, "the first event");
  await advance(16 * 3_600);
  expect(await lived(id, "DELIVERED")).toEqual([...START, "OUT_FOR_DELIVERY", "DELIVERED"]);
}, 300_000);

describe("a parcel that is held in depot", () => {
  const release = (id: number, body: object) =>
    call("POST", `/shipments/${id}/stock-release`, body);
  const held = async (number: string, members: Readonly<Record<string, unknown>> = {}) => {
    const id = await create(number, members);
    await advance(30);
    await lived(id, "EXCEPTION");
    return id;
  };

  test("goes on as its release says, refusals and outages included", async () => {
    const [one, other, deferred] = await Promise.all([
      held("TEST_HELD-4"),
      held("TEST_HELD-5"),
      held("TEST_HELD-6", { courier: `${COURIER}_DEFERRED` }),
    ]);
    const failures = ["TEST_REFUSED", "TEST_UNREACHABLE", "TEST_UNREADABLE"];
    const statuses: number[] = [];
    for (const notes of failures) {
      statuses.push((await release(one, { action: "redeliver", notes })).status);
    }
    expect(statuses).toEqual([422, 502, 502]);
    const asked = { action: "redeliver", notes: "TEST_ERROR" };
    expect((await release(one, asked)).body).toMatchObject({ courierOutcome: "error" });
    const { body } = await release(one, { action: "redeliver" });
    expect(body).toMatchObject({ status: "sent", courierOutcome: "ok" });
    await release(other, { action: "return_to_sender" });
    const later = await release(deferred, { action: "redeliver" });
    expect(later.body.courierOutcome).toBe("pending");
    await advance(30);
    expect((await lived(one, "DELIVERED")).slice(-3)).toEqual([
      ...["IN_TRANSIT", "OUT_FOR_DELIVERY", "DELIVERED"],
    ]);
    expect((await lived(other, "RETURNED")).slice(-2)).toEqual(["IN_TRANSIT", "RETURNED"]);
    await lived(deferred, "DELIVERED");
  }, 300_000);
});

test("labels are made, refused and unavailable as their references say", async () => {
  const label = (reference: string) =>
    call("POST", "/labels", labelBody({ courier: "POSTE_ITA", reference }));
  const statuses: number[] = [];
  for (const start of ["", "TEST_REFUSED", "TEST_UNREACHABLE", "TEST_UNREADABLE"]) {
    statuses.push((await label(`${start}-7`)).status);
  }
  expect(statuses).toEqual([201, 422, 502, 502]);
  const [one, other] = [await label("L-8"), await label("TEST_UNCONFIRMED-8")];
  const labelIds = [one.body.id, other.body.id];
  const { body } = await call("POST", "/labels/confirm", { courier: "POSTE_ITA", labelIds });
  expect(body.confirmedIds).toEqual([one.body.id]);
  expect(body.errors).toMatchObject([{ labelId: other.body.id, code: "TEST_REFUSED" }]);
  const { id } = (await label("TEST_UNVOIDED-9")).body;
  const voided = async (labelId: number) => (await call("DELETE", `/labels/${labelId}`)).status;
  expect([await voided(id), await voided(other.body.id)]).toEqual([422, 200]);
});

test("notifications go into the outbox and to nobody", async () => {
  const consignee = { name: "Ada", email: "ada@client.test" };
  const id = await create("TEST_SILENT-9", { consignee });
  const { body } = await call("POST", `/shipments/${id}/notifications`, { event: "review" });
  const path = `/shipments/${id}/notifications/${body.notificationId}`;
  await eventually(async () => (await call("GET", path)).body.status === "sent", "it is sent");
  const outbox = join(dataDir, "outbox");
  const mails = await Promise.all(
    (await readdir(outbox)).map((name) => readFile(join(outbox, name), "utf8")),
  );
  expect(mails.some((mail) => mail.includes("ada@client.test"))).toBe(true);
});

test("nothing of it reaches live keys, live webhooks, couriers' events or statistics", async () => {
  const number = "TEST_SILENT-10";
  const [tested, real] = [await create(number), await create(number, {}, "key_acme_main")];
  expect((await call("GET", `/shipments/${tested}`, undefined, "key_acme_main")).status).toBe(404);
  expect((await call("GET", `/shipments/${real}`)).status).toBe(404);
  const numbersOf = async (key?: string) =>
    (await call("GET", "/shipments?scope=company&limit=100", undefined, key)).body.items.map(
      (one: { id: number }) => one.id,
    );
  expect(await numbersOf("key_acme_main")).toEqual([real]);
  expect(await numbersOf()).not.toContain(real);
  const { body } = await push(product.ingest, [event({ trackingNumber: number })]);
  expect(body.accepted).toBe(1);
  await eventually(() => live.requests.length > 0, "the live webhook");
  expect(live.requests.map((one) => one.body.data.shipment.id)).toEqual([real]);
  expect((await detail(tested)).history).toEqual([]);
  const ask = async (query: string) => (await operator("POST", "/sql", { query })).body;
  const rows = (table: string, column: string) =>
    ask(`SELECT ${column} AS found, count() AS rows FROM ${table} GROUP BY found`);
  await eventually(
    async () => JSON.stringify(await rows("events", "courier")).includes("GLS_ITA"),
    "the live event is counted",
  );
  for (const table of ["events", "deliveries", "event_outcomes"]) {
    expect(JSON.stringify(await rows(table, "courier"))).not.toContain(COURIER);
  }
  const endpointOf = async (channel: string) =>
    (await operator("GET", `/channels/${channel}/webhooks`)).body.items[0].id;
  const [liveId, testId] = [await endpointOf("acme-it"), await endpointOf("acme-it:test")];
  const attempts = async () => JSON.stringify(await rows("attempts", "endpoint_id"));
  await eventually(async () => (await attempts()).includes(liveId), "the attempt is counted");
  expect(await attempts()).not.toContain(testId);
}, 300_000);

test("the panel issues keys of a channel's shadow, which it makes", async () => {
  const issued = await operator("POST", "/channels/beta-it/api-keys", { mode: "test" });
  expect([issued.status, issued.body.mode]).toEqual([201, "test"]);
  expect(issued.body.key).toStartWith("key_test_");
  const again = await operator("POST", "/channels/beta-it:test/api-keys");
  expect([again.status, again.body.mode]).toEqual([201, "test"]);
  const id = await create("TEST_DELIVERED-11", {}, issued.body.key);
  await advance(30);
  const read = () => call("GET", `/shipments/${id}`, undefined, again.body.key);
  await eventually(async () => (await read()).body.status === "DELIVERED", "it is delivered");
}, 300_000);

test("a shadow has the settings of its channel: they are changed there alone, and nothing live has a test courier", async () => {
  const shadow = "/channels/acme-it:test";
  const mail = { event: "review", language: "it", to: "ada@client.test" };
  const calls: [method: string, path: string, body?: object][] = [
    ["PATCH", shadow, { name: "renamed" }],
    ["POST", `${shadow}/deactivate`],
    ["POST", `${shadow}/couriers`, { code: "BRT_ITA" }],
    ["PUT", `${shadow}/rate-limit`, { bucketSize: 1, refillRate: 1 }],
    ["PUT", `${shadow}/templates/review/en`, { subject: "x", body: "x" }],
    ["DELETE", `${shadow}/templates/review/it`],
    ["POST", `${shadow}/templates/test`, { ...mail, subject: "x", body: "x" }],
    ["POST", `${shadow}/sandbox/reset`],
  ];
  const before = (await operator("GET", "/channels/acme-it")).body;
  for (const [method, path, body] of calls) {
    const { status, body: problem } = await operator(method, path, body);
    expect([method, path, status]).toEqual([method, path, 404]);
    expect(problem.detail).toContain("change them there");
  }
  const after = (await operator("GET", "/channels/acme-it")).body;
  expect({ ...after, requests: null }).toEqual({ ...before, requests: null });
  const live = await operator("POST", `${shadow}/api-keys`, { mode: "live" });
  expect([live.status, live.body.violations?.[0]?.path]).toEqual([422, "mode"]);
  const added = await operator("POST", "/channels/acme-it/couriers", { code: COURIER });
  expect([added.status, added.body.violations?.[0]?.code]).toEqual([422, "NOT_ALLOWED"]);
}, 300_000);

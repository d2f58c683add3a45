/**
 * What is changed of companies and channels in the panel: request budget, couriers, boxes, sender, mails and their templates.
 * Each counts at once for a merchant API with its own connection to the store, is written to the audit log, and is not undone
 * by the setup file at the next start.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { entityKey } from "#core/configuration/store/entities.ts";
import { changeChannel } from "#core/configuration/store/merchant-settings.ts";
import { applySetupFile } from "#core/runtime/runtime.ts";
import { withCourierDefaults } from "#core/setup/rules/merge-said.ts";
import {
  BOXES_PER_COMPANY,
  COURIERS_PER_CHANNEL,
  type SetupChannel,
  type SetupFile,
  TEMPLATES_PER_CHANNEL,
} from "#core/setup/rules/setup.ts";
import { TEMPLATE_BODY_BYTES, TEST_MAIL_RATE } from "#panel/server/companies/templates.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { type Call, item, openTestApi } from "#test/support/product/api.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { startMailServer } from "#test/support/servers/mail-server.ts";

/** The merchant API of another process. */
let another: Call;
let token: string;
let counter = 0;

const SENDER = { businessName: "Acme S.p.A.", city: "Milano", postcode: "20121", country: "IT" };
const ADDRESS = { street: "Via Roma 1", city: "Milano", postcode: "20121", country: "IT" };
const TEMPLATE = { subject: "Ciao {{consignee.name}}", body: "<p>{{trackingNumber}}</p>" };

function channelsOf(setup: SetupFile): readonly [SetupChannel, SetupChannel] {
  const [main, outlet] = setup.companies?.[0]?.channels ?? [];
  if (!main || !outlet) throw new Error("the test setup has no channels");
  return [main, outlet];
}

/** What the setup file says of everything that the panel changes. */
function fullSetup(): SetupFile {
  const setup = testSetup();
  const [channel] = channelsOf(setup);
  channel.sender = SENDER;
  channel.emails = {
    managed: true,
    from: "shop@acme.test",
    statusNotifications: ["DELIVERED"],
    templates: [
      { event: "review", language: "it", ...TEMPLATE },
      { event: "default", language: "it", ...TEMPLATE },
    ],
  };
  Object.assign(setup.companies?.[0] ?? {}, { products: ["checkAddress"] });
  setup.companies?.[0]?.boxes?.push({ code: "M", length: 40, width: 30, height: 20 });
  return setup;
}

const mails = forAll(() => startMailServer());
const api = forAll(() => openTestApi(fullSetup(), "away", { SMTP_URL: mails.url }));
const panel = forAll(() => openTestPanel(api.runtime));
beforeAll(async () => {
  another = await api.another();
  token = await api.token("key_acme_main");
});

const call = (method: string, path: string, body?: unknown) =>
  panel.call(method, `/panel/api${path}`, body);
const channel = async (code = "acme-it") => (await call("GET", `/channels/${code}`)).body;

/** `<status> <path> <code>` of the first violation. */
async function refusal(method: string, path: string, body: unknown): Promise<string> {
  const { status, body: problem } = await call(method, path, body);
  const [first] = problem.violations ?? [];
  if (status < 300) return String(status);
  return [status, first ? `${first.path} ${first.code}` : problem.code].join(" ");
}

/** Status of the item of a creation, and its error codes. */
async function create(members: Readonly<Record<string, unknown>>) {
  counter += 1;
  const body = { shipments: [item(`SET-${counter}`, members)] };
  const [made] = (await another("POST", "/v2/shipments", { token, body })).body.items;
  return { id: made.id, errors: (made.errors ?? []).map(({ code }: { code: string }) => code) };
}

const characters = (length: number) => "😀".repeat(length);

describe("the request budget", () => {
  const path = "/channels/acme-outlet/rate-limit";

  test("counts at once on every process, and in the token's answer", async () => {
    const wanted = { bucketSize: 2, refillRate: 1 };
    expect((await call("PUT", path, wanted)).body).toEqual(wanted);
    const key = { apiKey: "key_acme_outlet" };
    const { body } = await another("POST", "/v2/auth/token", { body: key });
    expect(body.rate_limit).toEqual({ bucket_size: 2, refill_rate: 1 });
    const search = () => another("GET", "/v2/shipments", { token: body.token });
    expect([(await search()).status, (await search()).status]).toEqual([200, 200]);
    expect((await search()).status).toBe(429);
    const { body: usage } = await call("GET", "/channels/acme-outlet/usage");
    expect(usage.requests).toMatchObject({ bucketSize: 2, refillRate: 1, remaining: 0 });
    expect(Date.parse(usage.requests.refillAt)).toBeGreaterThan(api.runtime.live.now());
  });

  test("usage names the keys that are suspended, and fills the budget again as the API does", async () => {
    const { body } = await another("POST", "/v2/auth/token", {
      body: { apiKey: "key_acme_outlet" },
    });
    for (let tried = 0; tried < 10; tried += 1) {
      await another("GET", "/v2/shipments", { token: body.token });
    }
    const { apiKeys } = await channel("acme-outlet");
    const usage = async () => (await call("GET", "/channels/acme-outlet/usage")).body;
    const [suspended] = (await usage()).suspendedKeys;
    expect(suspended.id).toBe(apiKeys[0].id);
    expect(Date.parse(suspended.until)).toBeGreaterThan(api.runtime.live.now() + 3_500_000);
    await api.advance(3_601);
    expect(await usage()).toMatchObject({
      requests: { remaining: 2, refillAt: null },
      suspendedKeys: [],
      addressChecks: { total: 0, months: [] },
    });
  });

  test("keeps the part that a call leaves out", async () => {
    const { body } = await call("PUT", path, { refillRate: 3 });
    expect(body).toMatchObject({ refillRate: 3 });
    expect((await call("PUT", path, { bucketSize: 4 })).body).toMatchObject({
      bucketSize: 4,
      refillRate: 3,
    });
  });

  test("is from 1 to 10,000,000", async () => {
    const most = 10_000_000;
    const put = (bucketSize: unknown) => refusal("PUT", path, { bucketSize, refillRate: 1 });
    expect((await call("PUT", path, { bucketSize: most, refillRate: most })).status).toBe(200);
    expect(await put(most + 1)).toBe("422 bucketSize OUT_OF_RANGE");
    expect(await put(0)).toBe("422 bucketSize OUT_OF_RANGE");
    expect(await put(1.5)).toBe("422 bucketSize WRONG_TYPE");
    expect(await refusal("PUT", path, {})).toBe("422  TOO_FEW");
    const more = { bucketSize: 1, refillRate: 1, burst: 2 };
    expect(await refusal("PUT", path, more)).toBe("422 burst UNKNOWN_FIELD");
  });
});

describe("couriers of a channel", () => {
  const path = "/channels/acme-it/couriers";

  test("a transcoding and a disabled courier count for the next creation on every process", async () => {
    const { body } = await call("PUT", `${path}/BRT_ITA`, { transcodings: ["Bartolini"] });
    expect(body).toMatchObject({ code: "BRT_ITA", transcodings: ["Bartolini"] });
    expect((await create({ courier: "bartolini" })).errors).toEqual([]);
    await call("PUT", `${path}/BRT_ITA`, { shippingEnabled: false });
    expect((await create({ courier: "bartolini" })).errors).toEqual(["COURIER_NOT_CONFIGURED"]);
    const { body: enabled } = await call("PUT", `${path}/BRT_ITA`, { shippingEnabled: true });
    expect(enabled).toMatchObject({ transcodings: ["Bartolini"], labelFormat: "PDF" });
  });

  test("one is added, changed and removed", async () => {
    const outlet = "/channels/acme-outlet/couriers";
    const added = await call("POST", outlet, { code: "BRT_ITA", senderAccounts: ["B-1"] });
    expect(added.status).toBe(201);
    expect(added.body).toMatchObject({ senderAccounts: ["B-1"], shippingEnabled: true });
    expect(await refusal("POST", outlet, { code: "BRT_ITA" })).toBe("409 COURIER_IN_CHANNEL");
    const accounts = { senderAccounts: ["B-2"] };
    const { body } = await call("PUT", `${outlet}/BRT_ITA/sender-accounts`, accounts);
    expect(body).toMatchObject({ code: "BRT_ITA", senderAccounts: ["B-2"] });
    expect((await call("DELETE", `${outlet}/BRT_ITA`)).status).toBe(204);
    expect((await call("DELETE", `${outlet}/BRT_ITA`)).body.code).toBe("COURIER_NOT_FOUND");
    expect(await refusal("PUT", `${outlet}/BRT_ITA`, {})).toBe("404 COURIER_NOT_FOUND");
    expect(
      (await channel("acme-outlet")).couriers.map((one: { code: string }) => one.code),
    ).toEqual(["GLS_ITA"]);
  });

  test("label carriers need no tokens to be there; nobody else may be added", async () => {
    expect((await call("POST", path, { code: "POSTE-ITA-CRONO" })).status).toBe(201);
    expect((await call("DELETE", `${path}/POSTE-ITA-CRONO`)).status).toBe(204);
    expect(await refusal("POST", path, { code: "NOBODY" })).toBe("422 code NOT_ALLOWED");
  });

  test("a transcoding names one courier, in whatever case", async () => {
    const put = (...transcodings: string[]) =>
      refusal("PUT", `${path}/BRT_ITA`, { transcodings: ["x", ...transcodings] });
    expect(await put("Corriere GLS")).toBe("422 transcodings[1] NOT_ALLOWED");
    expect(await put("y", "Y")).toBe("422 transcodings[1] NOT_ALLOWED");
  });

  test("100 transcodings and accounts of 255 and 64 characters are taken, no more", async () => {
    const many = (count: number) => Array.from({ length: count }, (_, at) => `name ${at}`);
    const put = (transcodings: string[]) => refusal("PUT", `${path}/BRT_ITA`, { transcodings });
    expect(await put([...many(99), characters(255)])).toBe("200");
    expect(await put(many(101))).toBe("422 transcodings TOO_MANY");
    expect(await put([characters(256)])).toBe("422 transcodings[0] TOO_LONG");
    expect(await put([""])).toBe("422 transcodings[0] TOO_SHORT");
    const putAccounts = (senderAccounts: string[]) =>
      refusal("PUT", `${path}/BRT_ITA/sender-accounts`, { senderAccounts });
    expect(await putAccounts([...many(99), characters(64)])).toBe("200");
    expect(await putAccounts(many(101))).toBe("422 senderAccounts TOO_MANY");
    expect(await putAccounts([characters(65)])).toBe("422 senderAccounts[0] TOO_LONG");
    expect(await refusal("PUT", `${path}/BRT_ITA`, { senderAccounts: [] })).toBe(
      "422 senderAccounts UNKNOWN_FIELD",
    );
    expect(await refusal("PUT", `${path}/BRT_ITA`, { labelFormat: "PNG" })).toBe(
      "422 labelFormat NOT_ALLOWED",
    );
  });

  test(`${COURIERS_PER_CHANNEL} are taken, not one more`, async () => {
    const { redis, live } = api.runtime;
    const { id } = live.configuration().channelByCode.get("beta-it") ?? { id: 0 };
    await changeChannel(redis, id, ({ couriers: [known] }) => {
      const others = Array.from({ length: COURIERS_PER_CHANNEL - 2 }, (_, at) =>
        withCourierDefaults({ code: `POSTE-ITA-${at}` }),
      );
      return { couriers: [known, ...others].filter((one) => one !== undefined) };
    });
    const add = (code: string) => refusal("POST", "/channels/beta-it/couriers", { code });
    expect(await add("BRT_ITA")).toBe("201");
    expect(await add("GENERIC")).toBe("409 TOO_MANY_COURIERS");
  });
});

describe("boxes", () => {
  const path = "/companies/acme/boxes";
  const BOX = { length: 10.5, width: 10, height: 5 };
  const parcel = (boxCode: string) => create({ parcels: [{ weight: 1, boxCode }] });

  test("one gives its measures to parcels on every process until it is deleted", async () => {
    expect((await parcel("XS")).errors).toEqual(["INVALID_BOX_CODE"]);
    const { body } = await call("PUT", `${path}/XS`, BOX);
    expect(body).toEqual({ code: "XS", ...BOX, version: expect.any(String) });
    const { id } = await parcel("XS");
    const { body: shipment } = await another("GET", `/v2/shipments/${id}`, { token });
    expect(shipment.parcels[0]).toMatchObject({ boxCode: "XS", ...BOX });
    expect((await call("DELETE", `${path}/XS`)).status).toBe(204);
    expect((await parcel("XS")).errors).toEqual(["INVALID_BOX_CODE"]);
    expect((await call("DELETE", `${path}/XS`)).body.code).toBe("BOX_NOT_FOUND");
    expect(await refusal("PUT", "/companies/nobody/boxes/XS", BOX)).toBe("404 COMPANY_NOT_FOUND");
  });

  test("measures are above 0, and a code has 50 characters", async () => {
    const put = (code: string, box: object = BOX) => refusal("PUT", `${path}/${code}`, box);
    expect(await put("L", { ...BOX, length: 0 })).toBe("422 length OUT_OF_RANGE");
    expect(await put("L", { length: 1, width: 1 })).toBe("422 height REQUIRED");
    expect(await put("x".repeat(50))).toBe("200");
    expect(await put("x".repeat(51))).toBe("422 boxCode TOO_LONG");
    expect(await put("a%20b")).toBe("422 boxCode BAD_FORMAT");
    await call("DELETE", `${path}/${"x".repeat(50)}`);
  });

  test(`a company has ${BOXES_PER_COMPANY}, not one more`, async () => {
    const { id: companyId } = [...api.runtime.live.configuration().companies.values()].find(
      ({ code }) => code === "beta",
    ) ?? { id: 0 };
    await fill("box", BOXES_PER_COMPANY - 1, (at) => [
      `${companyId}:B${at}`,
      { companyId: String(companyId), code: `B${at}`, length: "1", width: "1", height: "1" },
    ]);
    const put = (code: string) => refusal("PUT", `/companies/beta/boxes/${code}`, BOX);
    expect([await put("LAST"), await put("MORE")]).toEqual(["200", "409 TOO_MANY_BOXES"]);
    expect(await put("B1")).toBe("200");
    await empty("box", BOXES_PER_COMPANY - 1, (at) => `${companyId}:B${at}`);
  });
});

/** As a setup file would have written them, in a moment. */
async function fill(
  kind: "box" | "template",
  count: number,
  entityOf: (at: number) => readonly [id: string, fields: Record<string, string>],
) {
  const { redis } = api.runtime;
  const all = Array.from({ length: count }, (_, at) => entityOf(at));
  const writes = redis.multi();
  for (const [id, fields] of all) writes.hSet(entityKey(kind, id), fields);
  await writes.sAdd(
    `config:ids:${kind}`,
    all.map(([id]) => id),
  );
  await writes.execAsPipeline();
}

async function empty(kind: "box" | "template", count: number, idOf: (at: number) => string) {
  const ids = Array.from({ length: count }, (_, at) => idOf(at));
  await api.runtime.redis.sRem(`config:ids:${kind}`, ids);
}

describe("the sender", () => {
  const path = "/channels/acme-outlet/sender";

  test("is set, changed whole, and removed", async () => {
    expect((await call("PUT", path, SENDER)).body).toEqual(SENDER);
    expect((await call("PUT", path, { city: "Roma" })).body).toEqual({ city: "Roma" });
    expect((await channel("acme-outlet")).sender).toEqual({ city: "Roma" });
    expect((await call("DELETE", path)).status).toBe(204);
    expect((await call("DELETE", path)).body.code).toBe("SENDER_NOT_FOUND");
    expect((await channel("acme-outlet")).sender).toBeNull();
  });

  test("has texts of 255 characters, a postcode of 16 and a country of two letters", async () => {
    const put = (sender: object) => refusal("PUT", path, sender);
    expect(await put({ city: characters(255), postcode: "1".repeat(16) })).toBe("200");
    expect(await put({ city: characters(256) })).toBe("422 city TOO_LONG");
    expect(await put({ postcode: "1".repeat(17) })).toBe("422 postcode TOO_LONG");
    expect(await put({ country: "Italy" })).toBe("422 country BAD_FORMAT");
    expect(await put({ vat: "1" })).toBe("422 vat UNKNOWN_FIELD");
    expect(await put({})).toBe("422  TOO_FEW");
    await call("DELETE", path);
  });
});

describe("mails of a channel", () => {
  test("who sends them, in whose name, and about which statuses", async () => {
    const path = "/channels/acme-outlet";
    const emails = { managed: true, from: "Outlet <outlet@acme.test>" };
    expect((await call("PUT", `${path}/emails`, emails)).body).toEqual(emails);
    const statuses = ["DELIVERED", "EXCEPTION", "DELIVERED"];
    await call("PUT", `${path}/status-notifications`, { statuses });
    expect((await channel("acme-outlet")).emails).toEqual({
      ...emails,
      statusNotifications: ["DELIVERED", "EXCEPTION"],
      templates: [],
    });
    const put = (from: unknown) => refusal("PUT", `${path}/emails`, { managed: true, from });
    expect(await put(null)).toBe("200");
    for (const from of [
      "outlet",
      "a@b.test, c@d.test",
      "A <a@b.test> <c@d.test>",
      "a\r\n@b.test",
    ]) {
      expect([from, await put(from)]).toEqual([from, "422 from BAD_FORMAT"]);
    }
    const notify = (one: unknown) => refusal("PUT", `${path}/status-notifications`, one);
    expect(await notify({ statuses: ["LOST"] })).toBe("422 statuses[0] NOT_ALLOWED");
    expect(await notify({})).toBe("422 statuses REQUIRED");
  });
});

describe("mail templates", () => {
  const path = "/channels/acme-it/templates";

  test("one that is saved as it is changes nothing for anybody", async () => {
    const version = async () => (await api.runtime.live.refresh()).version;
    const before = await version();
    expect((await call("PUT", `${path}/review/it`, TEMPLATE)).body.subject).toBe(TEMPLATE.subject);
    expect(await version()).toBe(before);
  });

  test("a new one is used by the next notification on every process, until it is deleted", async () => {
    const consignee = { name: "Ada", email: "ada@client.test" };
    const notify = async (event: string) => {
      const { id } = await create({ consignee, language: "de" });
      const body = { event };
      return (await another("POST", `/v2/shipments/${id}/notifications`, { token, body })).status;
    };
    expect(await notify("pick-up")).toBe(422);
    const { body } = await call("PUT", `${path}/pick-up/en`, TEMPLATE);
    const version = expect.any(String);
    expect(body).toEqual({ event: "pick-up", language: "en", ...TEMPLATE, version });
    expect(await notify("pick-up")).toBe(202);
    expect((await call("DELETE", `${path}/pick-up/en`)).status).toBe(204);
    expect(await notify("pick-up")).toBe(422);
    expect((await call("DELETE", `${path}/pick-up/en`)).body.code).toBe("TEMPLATE_NOT_FOUND");
  });

  test("events, languages, subjects of 998 and bodies of 100,000 characters, as document 1 has them", async () => {
    const put = (event: string, language: string, members: object = {}) =>
      refusal("PUT", `${path}/${event}/${language}`, { ...TEMPLATE, ...members });
    expect(await put("a".repeat(25), "ko")).toBe("200");
    expect(await put("a".repeat(26), "ko")).toBe("422 event BAD_FORMAT");
    expect(await put("a", "it")).toBe("422 event BAD_FORMAT");
    expect(await put("review", "xx")).toBe("422 language NOT_ALLOWED");
    expect(await put("long", "it", { subject: characters(998) })).toBe("200");
    expect(await put("long", "it", { subject: characters(999) })).toBe("422 subject TOO_LONG");
    expect(await put("long", "it", { body: characters(100_000) })).toBe("200");
    expect(await put("long", "it", { body: characters(100_001) })).toBe("422 body TOO_LONG");
    expect(await put("long", "it", { html: "" })).toBe("422 html UNKNOWN_FIELD");
    await call("DELETE", `${path}/long/it`);
    await call("DELETE", `${path}/${"a".repeat(25)}/ko`);
  });

  test(`a body of ${TEMPLATE_BODY_BYTES} bytes is read, one more byte is 413`, async () => {
    const base = JSON.stringify({ ...TEMPLATE, body: "" }).length;
    const sized = (bytes: number) =>
      call("PUT", `${path}/long/it`, { ...TEMPLATE, body: "x".repeat(bytes - base) });
    expect((await sized(TEMPLATE_BODY_BYTES)).status).toBe(422);
    expect((await sized(TEMPLATE_BODY_BYTES + 1)).status).toBe(413);
  });

  test(`a channel has ${TEMPLATES_PER_CHANNEL}, not one more`, async () => {
    const { id } = api.runtime.live.configuration().channelByCode.get("acme-outlet") ?? { id: 0 };
    const idOf = (at: number) => `${id}:event-${at}:it`;
    await fill("template", TEMPLATES_PER_CHANNEL - 1, (at) => [
      idOf(at),
      {
        channelId: String(id),
        event: `event-${at}`,
        language: "it",
        subject: "x",
        body: "x",
      },
    ]);
    const put = (event: string) =>
      refusal("PUT", `/channels/acme-outlet/templates/${event}/it`, TEMPLATE);
    expect([await put("last"), await put("more")]).toEqual(["200", "409 TOO_MANY_TEMPLATES"]);
    expect((await channel("acme-outlet")).emails.templates).toHaveLength(TEMPLATES_PER_CHANNEL);
    await empty("template", TEMPLATES_PER_CHANNEL - 1, idOf);
  });

  test("a preview shows the mail about a sample shipment, and which placeholders stand for nothing", async () => {
    const draft = {
      subject: "{{merchant}}: {{status}}",
      body: "<p>Ciao {{consignee.name}} {{courrier}}</p><a href='{{trackingUrl}}'>segui</a>",
      language: "it",
    };
    const { status, body } = await call("POST", `${path}/preview`, draft);
    expect(status).toBe(200);
    expect(body).toMatchObject({ subject: "Acme Italia: IN_TRANSIT", unknown: ["courrier"] });
    expect(body.html).toContain("<p>Ciao Maria Bianchi </p>");
    expect(body.text).toStartWith("Ciao Maria Bianchi");
    expect(body.placeholders).toContain("custom1");
    const refused = { ...draft, language: "tlh" };
    expect(await refusal("POST", `${path}/preview`, refused)).toBe("422 language NOT_ALLOWED");
    const { items } = (await call("GET", "/audit?target=templates/preview")).body;
    expect(items).toEqual([]);
  });
});

describe("a channel's own settings", () => {
  const path = "/channels/acme-outlet";

  test("count at once on every process: name, language, tracking page, address checks, webhooks v1", async () => {
    const webhookV1 = { url: "http://8.8.8.8/v1", acknowledgement: "OK" };
    const wanted = {
      name: "Outlet 2",
      language: "en",
      trackingPage: true,
      addressCheck: true,
      webhookV1,
    };
    const { body } = await call("PATCH", path, wanted);
    expect(body).toMatchObject(wanted);
    expect(await channel("acme-outlet")).toMatchObject(wanted);
    const key = { body: { apiKey: "key_acme_outlet" } };
    const { token: outlet } = (await another("POST", "/v2/auth/token", key)).body;
    const check = () => another("POST", "/v2/addresses/check", { token: outlet, body: ADDRESS });
    expect((await check()).status).toBe(200);
    const { body: log } = await call("GET", "/audit?limit=1");
    expect(log.items[0]).toMatchObject({
      action: "PATCH /channels/:channelCode",
      target: path,
      before: { name: "acme-outlet", trackingPage: false },
      after: { name: "Outlet 2" },
    });
    const last = { webhookV1: null, trackingPage: false, addressCheck: false };
    expect((await call("PATCH", path, last)).body).toMatchObject({ name: "Outlet 2", ...last });
    expect((await check()).status).toBe(403);
  });

  test("are refused with every fault, and whole", async () => {
    const webhookV1 = { url: "http://10.0.0.1/v1", acknowledgement: "OK" };
    expect(await refusal("PATCH", path, { name: "", trackingPage: true })).toBe(
      "422 name TOO_SHORT",
    );
    expect(await refusal("PATCH", path, {})).toStartWith("422 ");
    expect(await refusal("PATCH", path, { activ: false })).toBe("422 activ UNKNOWN_FIELD");
    expect(await refusal("PATCH", path, { webhookV1 })).toBe("422 webhookV1.url NOT_ALLOWED");
    const ftp = { ...webhookV1, url: "ftp://8.8.8.8/" };
    expect(await refusal("PATCH", path, { webhookV1: ftp })).toBe("422 webhookV1.url BAD_FORMAT");
    expect(await channel("acme-outlet")).toMatchObject({ trackingPage: false, webhookV1: null });
  });
});

describe("a test mail", () => {
  const path = "/channels/acme-it/templates/test";
  const send = (body: object) =>
    call("POST", path, { language: "it", to: "me@acme.test", ...body });

  test("arrives as a recipient would get it: the draft, or the template that would be chosen", async () => {
    const draft = {
      event: "review",
      subject: "Prova {{trackingNumber}}",
      body: "<b>{{merchant}}</b>",
    };
    const { status, body } = await send(draft);
    expect([status, body.subject]).toEqual([202, "Prova TEST0000000001"]);
    const [first] = mails.received;
    expect(first).toMatchObject({
      from: "shop@acme.test",
      to: ["me@acme.test"],
      subject: "Prova TEST0000000001",
    });
    expect(first?.html).toContain("<b>Acme Italia</b>");
    expect((await send({ event: "unheard-of" })).body).toMatchObject({
      event: "default",
      language: "it",
      subject: "Ciao Maria Bianchi",
    });
    expect(mails.received).toHaveLength(2);
  });

  test("needs an address, a template, and both parts of a draft", async () => {
    const refused = (body: object) =>
      refusal("POST", path, { event: "review", language: "it", to: "me@acme.test", ...body });
    expect(await refused({ to: "me" })).toBe("422 to BAD_FORMAT");
    expect(await refused({ subject: "x" })).toBe("422 body REQUIRED");
    expect(await refused({ body: "x" })).toBe("422 subject REQUIRED");
    const body = { event: "review", language: "it", to: "me@acme.test" };
    const nothing = "/channels/beta-it/templates/test";
    expect(await refusal("POST", nothing, body)).toBe("422 event NOT_ALLOWED");
  });

  test("that the server refuses says so, without the address", async () => {
    mails.refuse(550);
    const { status, body } = await send({ event: "review" });
    mails.refuse(null);
    expect([status, body.code]).toEqual([502, "MAIL_NOT_SENT"]);
    expect(body.detail).toContain("not now");
    expect(JSON.stringify(body)).not.toContain("me@acme.test");
  });

  test(`goes out ${TEST_MAIL_RATE.burst} times, then once a minute`, async () => {
    await api.advance(TEST_MAIL_RATE.burst / TEST_MAIL_RATE.perSecond);
    const statuses: number[] = [];
    for (let tried = 0; tried < TEST_MAIL_RATE.burst + 1; tried += 1) {
      statuses.push((await send({ event: "review" })).status);
    }
    expect(statuses).toEqual([...new Array(TEST_MAIL_RATE.burst).fill(202), 429]);
    const { headers } = await send({ event: "review" });
    expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(60);
    await api.advance(61);
    expect((await send({ event: "review" })).status).toBe(202);
  });
});

describe("the setup file at the next start", () => {
  test("undoes nothing of what the panel has changed, added or deleted", async () => {
    const base = "/channels/acme-it";
    await call("PATCH", base, { name: "Panel", language: "de", trackingPage: true });
    await call("PUT", `${base}/rate-limit`, { bucketSize: 7, refillRate: 8 });
    await call("PUT", `${base}/couriers/GLS_ITA`, { transcodings: ["gielle"], errorLabel: true });
    await call("DELETE", `${base}/couriers/BRT_ITA`);
    await call("POST", `${base}/couriers`, { code: "GENERIC" });
    await call("PUT", `${base}/sender`, { city: "Bari" });
    await call("PUT", `${base}/emails`, { managed: false, from: null });
    await call("PUT", `${base}/status-notifications`, { statuses: ["EXCEPTION"] });
    await call("PUT", `${base}/templates/review/it`, { subject: "Panel", body: "Panel" });
    await call("DELETE", `${base}/templates/default/it`);
    await call("PUT", "/companies/acme/boxes/S", { length: 1, width: 2, height: 3 });
    await call("DELETE", "/companies/acme/boxes/M");
    const before = await channel();
    expect(await applySetupFile(api.runtime, fullSetup())).toBe(0);
    expect(await channel()).toEqual(before);
    expect(before).toMatchObject({
      name: "Panel",
      language: "de",
      trackingPage: true,
      rateLimit: { bucketSize: 7, refillRate: 8 },
      couriers: [{ code: "GLS_ITA", transcodings: ["gielle"] }, { code: "GENERIC" }],
      boxes: [{ code: "S", length: 1 }],
      sender: { city: "Bari" },
      emails: { managed: false, from: null, templates: [{ subject: "Panel" }] },
    });
  });

  test("counts where it says something new, and there alone", async () => {
    const file = fullSetup();
    const [main] = channelsOf(file);
    main.language = "en";
    main.rateLimit = { bucketSize: 100_000, refillRate: 9 };
    main.couriers = [
      { code: "GLS_ITA", transcodings: ["GLS", "corriere gls"], labelFormat: "ZPL" },
      { code: "BRT_ITA", transcodings: ["new"] },
    ];
    main.emails = { ...main.emails, from: "news@acme.test" };
    const [review] = main.emails.templates ?? [];
    if (review) review.subject = "File";
    file.companies?.[0]?.boxes?.splice(1, 1, { code: "M", length: 41, width: 30, height: 20 });
    expect(await applySetupFile(api.runtime, file)).toBeGreaterThan(0);
    expect(await channel()).toMatchObject({
      name: "Panel",
      language: "en",
      trackingPage: true,
      rateLimit: { bucketSize: 7, refillRate: 9 },
      couriers: [
        { code: "GLS_ITA", transcodings: ["gielle"], labelFormat: "ZPL", errorLabel: true },
        { code: "GENERIC" },
        { code: "BRT_ITA", transcodings: ["new"] },
      ],
      boxes: [
        { code: "M", length: 41 },
        { code: "S", length: 1 },
      ],
      sender: { city: "Bari" },
      emails: {
        managed: false,
        from: "news@acme.test",
        statusNotifications: ["EXCEPTION"],
        templates: [{ event: "review", subject: "File" }],
      },
    });
    expect(await applySetupFile(api.runtime, file)).toBe(0);
  });

  test("is refused where a new transcoding of it names a courier of the panel's", async () => {
    const file = fullSetup();
    const [main] = channelsOf(file);
    main.couriers = [{ code: "BRT_ITA", transcodings: ["Gielle"] }];
    await expect(applySetupFile(api.runtime, file)).rejects.toThrow(
      "companies[0].channels[0].couriers[0].transcodings[0]: NOT_ALLOWED",
    );
    // What the same file said at the start before is no reason to refuse it.
    main.couriers = [{ code: "GLS_ITA", transcodings: ["GLS", "corriere gls"] }];
    await applySetupFile(api.runtime, file);
  });

  test("leaves a box alone that was deleted and made again in the panel", async () => {
    const path = "/companies/acme/boxes/S";
    await call("DELETE", path);
    await call("PUT", path, { length: 5, width: 5, height: 5 });
    await applySetupFile(api.runtime, fullSetup());
    const boxes = (await channel()).boxes.map(
      ({ version: _, ...box }: Record<string, unknown>) => box,
    );
    expect(boxes).toContainEqual({ code: "S", length: 5, width: 5, height: 5 });
  });
});

describe("people", () => {
  const CALLS = [
    ["PATCH", "/channels/acme-it"],
    ["PUT", "/channels/acme-it/rate-limit"],
    ["PUT", "/channels/acme-it/emails"],
    ["POST", "/channels/acme-it/couriers"],
    ["PUT", "/channels/acme-it/couriers/GLS_ITA/sender-accounts"],
    ["DELETE", "/channels/acme-it/couriers/GLS_ITA"],
    ["PUT", "/channels/acme-it/couriers/GLS_ITA"],
    ["PUT", "/channels/acme-it/sender"],
    ["PUT", "/channels/acme-it/status-notifications"],
    ["PUT", "/channels/acme-it/templates/review/it"],
    ["POST", "/channels/acme-it/templates/test"],
    ["PUT", "/companies/acme/boxes/S"],
    ["POST", "/channels/acme-it/templates/preview"],
    ["GET", "/channels/acme-it/usage"],
  ] as const;
  /** The allowance, and whose a parcel is, are the operators' to say; what is read, everybody's. */
  const [OPERATORS, MERCHANTS] = [6, 12];

  async function asked(cookie: string, site = "same-origin"): Promise<number[]> {
    const statuses: number[] = [];
    for (const [method, path] of CALLS) {
      const request = new Request(`http://localhost/panel/api${path}`, {
        method,
        headers: { cookie, "sec-fetch-site": site },
        ...(method !== "GET" && { body: "{" }),
      });
      statuses.push((await panel.handle(request)).status);
    }
    return statuses;
  }

  const each = (operators: number, merchants: number, readers: number) => [
    ...new Array(OPERATORS).fill(operators),
    ...new Array(MERCHANTS - OPERATORS).fill(merchants),
    ...[readers, readers === 400 ? 200 : readers],
  ];

  test("of a company change what is the merchant's, of their own channels, from pages of the panel", async () => {
    const acme = { companyCode: "acme" };
    const owner = await makeAccount(api.runtime, "company", "member", acme);
    const reader = await makeAccount(api.runtime, "company", "read-only", acme);
    const stranger = await makeAccount(api.runtime, "company", "owner", { companyCode: "beta" });
    // 400: let in, and the body is no JSON. A removal has none.
    expect(await asked(owner.cookie)).toEqual(each(403, 400, 400));
    expect(await asked(reader.cookie)).toEqual(each(403, 403, 400));
    expect(await asked(stranger.cookie)).toEqual(each(403, 404, 404));
    expect((await asked(owner.cookie, "cross-site")).slice(0, 12)).toEqual(new Array(12).fill(403));
  });
});

test("every change is in the audit log with what was before and what is after", async () => {
  await call("PUT", "/channels/acme-it/rate-limit", { bucketSize: 1_000, refillRate: 10 });
  await call("PUT", "/channels/acme-it/couriers/GLS_ITA", { shippingEnabled: false });
  await call("PUT", "/companies/acme/boxes/S", { length: 9, width: 5, height: 5 });
  await call("PUT", "/channels/acme-it/templates/review/it", { subject: "New", body: "New" });
  await call("DELETE", "/channels/acme-it/templates/review/it");
  const { items } = (await call("GET", "/audit?limit=5")).body;
  expect(items).toMatchObject([
    { target: "/channels/acme-it/templates/review/it", before: { subject: "New" }, after: null },
    { before: { subject: TEMPLATE.subject }, after: { subject: "New" } },
    { target: "/companies/acme/boxes/S", before: { length: 5 }, after: { length: 9 } },
    { before: { shippingEnabled: true }, after: { shippingEnabled: false } },
    { before: { bucketSize: 7 }, after: { bucketSize: 1_000, refillRate: 10 } },
  ]);
});

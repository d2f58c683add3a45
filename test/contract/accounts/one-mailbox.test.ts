/** One e-mail address is one mailbox: wherever it is taken, and on the way out. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { inviteAccount } from "#core/accounts/store/accounts.ts";
import { ConfigFaults, readConfig } from "#core/platform/environment/config.ts";
import { createMailer, type Mailer } from "#core/platform/process/mail.ts";
import { checkSetup, type SetupFile } from "#core/setup/rules/setup.ts";
import { CONSIGNEE, labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { item, openTestApi } from "#test/support/product/api.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { startMailServer } from "#test/support/servers/mail-server.ts";

/** What a mail library sends to maria, and what it would show as another text than it is. */
const NOT_ONE = [
  "anna;maria@example.com",
  "anna,maria@example.com",
  "Anna<maria@example.com>",
  "Anna <maria@example.com>",
  "<maria@example.com>",
  "team:maria@example.com",
  "team:maria@example.com;",
  "anna(maria@example.com",
  '"anna"maria@example.com',
  "anna@example.com,maria@example.com",
  "anna@example.com;maria@example.com",
  "anna@example.com>",
  "anna@[127.0.0.1]",
  "anna@example.com\r\nBcc: maria@example.com",
  "anna\u0000@example.com",
  "anna@example\u200b.com",
  "\u202eanna@example.com",
  "anna@example..com",
  "anna@",
];
const ONE = ["anna.o'neill+parcels@example.com", "josé@例え.example", "a@localhost"];

/** In which a network may certainly try once more to log in. */
const LOGIN_TURN_SECONDS = 12;

let token: string;
let counter = 0;

const mails = forAll(() => startMailServer());
const api = forAll(() => openTestApi(labelSetup(), "away", { SMTP_URL: mails.url }));
const panel = forAll(() => openTestPanel(api.runtime));
beforeAll(async () => {
  token = await api.token("key_acme_main");
  const { status } = await panel.call("PUT", "/panel/api/channels/acme-it/emails", {
    managed: true,
    from: null,
  });
  expect(status).toBe(200);
});

const post = (path: string, body: unknown) => api.call("POST", path, { token, body });
const operator = (method: string, path: string, body: unknown) =>
  panel.call(method, `/panel/api${path}`, body);
const next = () => {
  counter += 1;
  return `MAILBOX-${counter}`;
};

/** Paths of what was refused. */
type Refused = readonly string[];
type Members = Record<string, unknown>;

async function violations(
  answer: Promise<{ body: { violations?: { path: string }[] } | null }>,
): Promise<Refused> {
  const { violations = [] } = (await answer).body ?? {};
  return violations.map(({ path }) => path);
}

async function creation(members: Members): Promise<Refused> {
  const { body } = await post("/v2/shipments", { shipments: [item(next(), members)] });
  const [made] = body.items ?? [];
  const faults = made?.errors ?? body.violations ?? [];
  return faults.map(({ field, path }: { field?: string; path?: string }) => field ?? path);
}

async function order(email: string): Promise<Refused> {
  const line = { source: "shopify", reference: next(), consignee: { email } };
  const path = "/panel/api/channels/acme-it/orders";
  const { body } = await panel.call("POST", path, JSON.stringify(line));
  return body.items[0].violations.map(({ path }: { path: string }) => path);
}

function setup(members: Members): Refused {
  const file: SetupFile = labelSetup();
  Object.assign(file.companies?.[0]?.channels?.[0] ?? {}, members);
  return checkSetup(file).map(({ path }) => path);
}

const HOOK = { url: "https://merchant.example/hook", alertEmail: "ops@example.com" };

async function patchedEndpoint(alertEmail: string): Promise<Refused> {
  const { body } = await operator("POST", "/channels/acme-it/webhooks", {
    ...HOOK,
    url: `${HOOK.url}/${next()}`,
  });
  const refused = await violations(
    operator("PATCH", `/webhooks/${body.endpointId}`, { alertEmail }),
  );
  await operator("DELETE", `/webhooks/${body.endpointId}`, undefined);
  return refused;
}

async function newEndpoint(alertEmail: string): Promise<Refused> {
  const answer = await operator("POST", "/channels/acme-it/webhooks", { ...HOOK, alertEmail });
  if (answer.status === 201) {
    await operator("DELETE", `/webhooks/${answer.body.endpointId}`, undefined);
  }
  return violations(Promise.resolve(answer));
}

function mailFrom(text: string): Refused {
  try {
    readConfig({ MAIL_FROM: text });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigFaults)) throw error;
    return ["MAIL_FROM"];
  }
}

const INVITED = { name: "Maria Bianchi", kind: "company", role: "member", companyCode: "acme" };
const TEMPLATE = { event: "delivered", language: "it", subject: "s", body: "b" };

/** What each input refuses of an address. */
const INPUTS: Readonly<Record<string, (email: string) => Refused | Promise<Refused>>> = {
  "consignee.email of a creation": (email) => creation({ consignee: { email } }),
  commercialContactEmail: (email) => creation({ commercialContactEmail: email }),
  "an order of the panel": order,
  "an order of the setup file": (email) =>
    setup({ orders: [{ source: "s", reference: "1", consignee: { email } }] }),
  "the recipient of a label": (email) =>
    violations(post("/v2/labels", labelBody({ consignee: { ...CONSIGNEE, email } }))),
  "the sender of a label": (email) =>
    violations(post("/v2/labels", labelBody({ sender: { email } }))),
  "a channel's sender": (email) =>
    violations(operator("PUT", "/channels/acme-it/sender", { email })),
  "a channel's sender in the setup file": (email) => setup({ sender: { email } }),
  "alertEmail of a new endpoint": newEndpoint,
  "alertEmail of a changed endpoint": patchedEndpoint,
  "alertEmail in the setup file": (email) =>
    setup({ webhooks: [{ code: "a", ...HOOK, alertEmail: email }] }),
  "an invitation": (email) => violations(operator("POST", "/invitations", { ...INVITED, email })),
  "a forgotten password": async (email) => {
    await api.advance(LOGIN_TURN_SECONDS);
    return violations(operator("POST", "/password-reset", { email }));
  },
  "a test mail": (to) =>
    violations(operator("POST", "/channels/acme-it/templates/test", { ...TEMPLATE, to })),
};

/** Where a name may stand before an address in angle brackets. */
const SENDERS: typeof INPUTS = {
  "emails.from of a channel": (from) =>
    violations(operator("PUT", "/channels/acme-it/emails", { managed: true, from })),
  "emails.from in the setup file": (from) => setup({ emails: { from } }),
  MAIL_FROM: mailFrom,
};

describe("as input", () => {
  test.each(Object.entries(INPUTS))(
    "%s takes one mailbox and nothing else",
    async (_, refusals) => {
      for (const text of NOT_ONE) expect([text, await refusals(text)]).not.toEqual([text, []]);
      for (const text of ONE) expect([text, await refusals(text)]).toEqual([text, []]);
    },
    30_000,
  );

  test.each(Object.entries(SENDERS))("%s also takes a name", async (_, refusals) => {
    for (const text of ["Acme, Inc. <a@example.com>", '"Acme; S.p.A." <a@example.com>', ...ONE]) {
      expect([text, await refusals(text)]).toEqual([text, []]);
    }
    const isNamed = (text: string) => /^(Anna ?)?<maria@example\.com>$/.test(text);
    const others = ["a@b.example, Acme <a@example.com>", "A <a@b.example>, B <b@b.example>"];
    for (const text of [...NOT_ONE.filter((one) => !isNamed(one)), ...others]) {
      expect([text, await refusals(text)]).not.toEqual([text, []]);
    }
  });

  test("the first administrator's own address is one mailbox", async () => {
    const { redis, live } = api.runtime;
    const nobody = { email: "", name: "", companyCode: "", courierCode: "" };
    const wanted = { ...nobody, kind: "operator", role: "admin" } as const;
    const { token } = await inviteAccount(redis, wanted, live.now());
    const accept = async (email: string) => {
      await api.advance(LOGIN_TURN_SECONDS);
      return operator("POST", `/invitations/${token}`, {
        password: "correct horse battery",
        email,
      });
    };
    for (const text of NOT_ONE) {
      expect([text, await violations(accept(text))]).toEqual([text, ["email"]]);
    }
    expect((await accept("first@example.com")).status).toBe(204);
  });

  test("an empty text says that there is no address where one is optional, as before", async () => {
    expect(await creation({ commercialContactEmail: "" })).toEqual([]);
    expect(setup({ sender: { email: "" } })).toEqual([]);
  });
});

describe("on the way out", () => {
  let mailer: Mailer;
  beforeAll(() => {
    mails.forget();
    const { dataDir } = api.runtime.config;
    mailer = createMailer({ smtpUrl: mails.url, mailFrom: "Waybill <us@example.com>", dataDir });
  });
  afterAll(() => mailer.close());

  const mail = { messageId: "m@example.com", subject: "s", text: "t" };

  test("a stored address that is not one mailbox is sent nothing", async () => {
    for (const to of NOT_ONE) {
      expect(mailer.send({ ...mail, to })).rejects.toMatchObject({ code: "NOT_ONE_MAILBOX" });
    }
    await mailer.send({ ...mail, to: "anna@example.com" });
    expect(mails.received.map(({ to }) => to)).toEqual([["anna@example.com"]]);
  });

  test("a name keeps its signs, and a stored sender that is not one mailbox gives way to our own", async () => {
    mails.forget();
    for (const from of [
      "Acme, Inc. <a@example.com>",
      '"Acme; \\"S.p.A.\\"" <a@example.com>',
      "team:maria@example.com;",
      "Acme\r\nBcc: maria@example.com <a@example.com>",
    ]) {
      await mailer.send({ ...mail, to: "anna@example.com", from });
    }
    const heads = mails.received.map(({ raw }) => /^From: (.*)$/m.exec(raw)?.[1]?.trim());
    expect(heads).toEqual([
      '"Acme, Inc." <a@example.com>',
      '"Acme; \\"S.p.A.\\"" <a@example.com>',
      "Waybill <us@example.com>",
      "Waybill <us@example.com>",
    ]);
    expect(mails.received.flatMap(({ to }) => to)).toEqual(Array(4).fill("anna@example.com"));
  });

  test("a subject is one header", async () => {
    mails.forget();
    for (const subject of ["a\r\nBcc: maria@example.com", "=?utf-8?q?x?=\r\nBcc: m@example.com"]) {
      await mailer.send({ ...mail, to: "anna@example.com", subject });
    }
    expect(mails.received.map(({ subject }) => subject)).toEqual([
      "a Bcc: maria@example.com",
      "=?utf-8?q?x?= Bcc: m@example.com",
    ]);
    for (const { raw } of mails.received) expect(raw).not.toMatch(/^Bcc:/im);
  });
});

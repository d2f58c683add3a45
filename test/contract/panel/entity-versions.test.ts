/** Versions of entities: a change that names the version it was made to undoes nobody's (RFC 9110, `ETag` and `If-Match`). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { AUDIT_LOG } from "#core/platform/redis/keys.ts";
import { applySetup } from "#core/setup/store/apply-setup.ts";
import { switchOff } from "#core/webhooks/store/endpoints.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const API = "/panel/api";
const CHANNEL = `${API}/channels/acme-it`;
const TEMPLATE = `${CHANNEL}/templates/review/it`;
const BOX = `${API}/companies/acme/boxes/small`;
const CATALOGUE = `${API}/couriers/GLS_ITA/catalogue`;

let runtime: TestRuntime;
let panel: TestPanel;
let owner: TestAccount;
let member: TestAccount;
let endpoint: string;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  panel = await openTestPanel(runtime);
  owner = await makeAccount(runtime, "company", "owner", { companyCode: "acme" });
  member = await makeAccount(runtime, "company", "member", { companyCode: "acme" });
  const hook = { url: "https://8.8.8.8/hook", alertEmail: "ops@acme.test" };
  const made = await panel.call("POST", `${CHANNEL}/webhooks`, hook);
  endpoint = `${API}/webhooks/${made.body.endpointId}`;
  await panel.call("PUT", TEMPLATE, { subject: "Com'era?", body: "Ciao" });
  await panel.call("PUT", BOX, { length: 30, width: 20, height: 10 });
});

afterAll(async () => {
  await panel.end();
  await runtime.end();
});

type Headers = Readonly<Record<string, string>>;

/** By the operator of the token, unless it is an account's. */
async function send(
  method: string,
  path: string,
  body: object | null,
  headers: Headers = {},
  cookie?: string,
) {
  const who = cookie
    ? { cookie, "sec-fetch-site": "same-origin" }
    : { authorization: `Bearer ${runtime.secrets.panelToken}` };
  const type = body && { "content-type": "application/json" };
  const answer = await panel.handle(
    new Request(`http://localhost${path}`, {
      method,
      headers: { ...who, ...type, ...headers },
      body: body && JSON.stringify(body),
    }),
  );
  const text = await answer.text();
  const given = text === "" ? null : JSON.parse(text);
  return { status: answer.status, etag: answer.headers.get("etag") ?? "", body: given };
}

const versionOf = async (path: string) => (await send("GET", path, null)).etag;
const boxVersion = async () => {
  const { body } = await send("GET", `${API}/companies/acme`, null);
  return `"${body.boxes.find(({ code }: { code: string }) => code === "small").version}"`;
};
const templateVersion = async () => {
  const { body } = await send("GET", CHANNEL, null);
  const { templates } = body.emails;
  return `"${templates.find((one: { event: string }) => one.event === "review").version}"`;
};
const accountVersion = async () => {
  const { body } = await send("GET", `${API}/accounts`, null);
  return `"${body.items.find(({ id }: { id: string }) => id === member.account.id).version}"`;
};

interface Case {
  readonly what: string;
  readonly version: () => Promise<string>;
  readonly call: () => readonly [method: string, path: string, first: object, second: object];
}

const SENDER = { businessName: "Acme S.p.A.", street: "Via Roma 1", city: "Milano" };
const channel = () => versionOf(CHANNEL);
const CASES: readonly Case[] = [
  {
    what: "an endpoint",
    version: () => versionOf(endpoint),
    call: () => ["PATCH", endpoint, { maxConcurrency: 7 }, { alertEmail: "more@acme.test" }],
  },
  {
    what: "a template",
    version: templateVersion,
    call: () => ["PUT", TEMPLATE, { subject: "Allora?" }, { body: "Ciao di nuovo" }],
  },
  {
    what: "a box",
    version: boxVersion,
    call: () => ["PUT", BOX, { length: 31 }, { width: 21 }],
  },
  {
    what: "a channel's settings",
    version: channel,
    call: () => ["PATCH", CHANNEL, { language: "en" }, { trackingPage: true }],
  },
  {
    what: "a channel's allowance",
    version: channel,
    call: () => ["PUT", `${CHANNEL}/rate-limit`, { bucketSize: 301 }, { refillRate: 151 }],
  },
  {
    what: "a channel's sender",
    version: channel,
    call: () => ["PUT", `${CHANNEL}/sender`, SENDER, { ...SENDER, city: "Monza" }],
  },
  {
    what: "a channel's mails",
    version: channel,
    call: () => ["PUT", `${CHANNEL}/emails`, { managed: true }, { from: "shop@example.com" }],
  },
  {
    what: "a channel's courier",
    version: channel,
    call: () => [
      "PUT",
      `${CHANNEL}/couriers/GLS_ITA`,
      { labelFormat: "ZPL" },
      { errorLabel: true },
    ],
  },
  {
    what: "a courier's code",
    version: () => versionOf(CATALOGUE),
    call: () => [
      "PUT",
      `${CATALOGUE}/NEW-1`,
      { status: "DELIVERED", terminal: true },
      { status: "EXCEPTION" },
    ],
  },
  {
    what: "an account",
    version: accountVersion,
    call: () => [
      "PATCH",
      `${API}/accounts/${member.account.id}`,
      { role: "read-only" },
      { role: "member" },
    ],
  },
];

describe("a change that names the version it was made to", () => {
  for (const { what, version, call } of CASES) {
    test(`of ${what} is made to that version alone, answers the next one, and is refused once there is another`, async () => {
      const [method, path, first, second] = call();
      const seen = await version();
      expect(seen).toMatch(/^"[\w-]*"$/);
      const made = await send(method, path, first, { "if-match": seen });
      expect(made.status).toBe(200);
      expect(made.etag).toBe(await version());
      expect(made.etag).not.toBe(seen);
      const entries = await runtime.redis.xLen(AUDIT_LOG);
      const refused = await send(method, path, second, { "if-match": seen });
      expect(refused.status).toBe(412);
      expect(refused.body).toMatchObject({
        code: "VERSION_CONFLICT",
        version: made.etag.slice(1, -1),
        changedBy: "PANEL_TOKEN",
        changedAt: expect.stringMatching(/^20\d\d-/),
      });
      // Neither written nor in the audit log.
      expect(await version()).toBe(made.etag);
      expect(await runtime.redis.xLen(AUDIT_LOG)).toBe(entries);
      const again = await send(method, path, second, { "if-match": made.etag });
      expect(again.status).toBe(200);
    });

    test(`of ${what} may leave the version out, as outside programs do`, async () => {
      const [method, path, first, second] = call();
      expect((await send(method, path, first)).status).toBe(200);
      expect((await send(method, path, second, { "if-match": "*" })).status).toBe(200);
    });
  }

  test("is made once where two of them come together", async () => {
    const version = await versionOf(endpoint);
    const both = await Promise.all(
      [11, 12].map((maxConcurrency) =>
        send("PATCH", endpoint, { maxConcurrency }, { "if-match": version }),
      ),
    );
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 412]);
  });

  test("changes what it names and nothing else of a template or a box, of which a new one needs everything", async () => {
    const before = (await send("PUT", TEMPLATE, { subject: "A", body: "B" })).body;
    const { body } = await send("PUT", TEMPLATE, { subject: "C" });
    expect([before.body, body.subject, body.body]).toEqual(["B", "C", "B"]);
    for (const [path, fields] of [
      [`${CHANNEL}/templates/other/it`, ["body"]],
      [`${API}/companies/acme/boxes/other`, ["width", "height"]],
    ] as const) {
      const part = fields[0] === "body" ? { subject: "A" } : { length: 1 };
      const refused = await send("PUT", path, part);
      expect(refused.status).toBe(422);
      const violations: { path: string; code: string }[] = refused.body.violations;
      expect(violations.map((one) => `${one.path} ${one.code}`)).toEqual(
        fields.map((field) => `${field} REQUIRED`),
      );
    }
  });
});

describe("a new thing", () => {
  test("takes no other one's place: If-None-Match refuses it where there is one already", async () => {
    const mail = { subject: "Mine", body: "Mine" };
    const none = { "if-none-match": "*" };
    expect((await send("PUT", TEMPLATE, mail, none)).status).toBe(412);
    const path = `${CHANNEL}/templates/new/it`;
    expect((await send("PUT", path, mail, none)).status).toBe(200);
    expect((await send("PUT", path, mail, none)).status).toBe(412);
  });

  test("is not made again by a change of what was deleted meanwhile", async () => {
    const path = `${CHANNEL}/templates/gone/it`;
    const made = await send("PUT", path, { subject: "A", body: "B" });
    await send("DELETE", path, null);
    const refused = await send("PUT", path, { subject: "C" }, { "if-match": made.etag });
    expect(refused.body).toMatchObject({ status: 412, version: null, changedBy: null });
  });
});

describe("whoever is refused learns who changed it", () => {
  const patch = { maxConcurrency: 3 };

  test("a colleague by their address, an operator as one of the operators", async () => {
    const seen = await versionOf(endpoint);
    const mine = { alertEmail: "owner@acme.test" };
    expect((await send("PATCH", endpoint, mine, {}, owner.cookie)).status).toBe(200);
    const told = async (cookie?: string) => {
      const refused = await send("PATCH", endpoint, patch, { "if-match": seen }, cookie);
      expect(refused.status).toBe(412);
      return refused.body.changedBy;
    };
    expect(await told(member.cookie)).toBe("owner@acme.test");
    expect(await told()).toBe("owner@acme.test");
    await send("PATCH", endpoint, { alertEmail: "operator@waybill.test" });
    expect(await told(member.cookie)).toBe("operators");
    expect(await told()).toBe("PANEL_TOKEN");
  });

  test("the setup file that another process has applied, of what it changes alone", async () => {
    const [seen, endpointSeen] = [await versionOf(CHANNEL), await versionOf(endpoint)];
    const file = testSetup();
    const [acme] = file.companies ?? [];
    for (const one of acme?.channels ?? []) if (one.code === "acme-it") one.name = "From the file";
    await applySetup(runtime.redis, runtime.secrets.vault, file, runtime.live.now());
    const refused = await send("PATCH", CHANNEL, { language: "it" }, { "if-match": seen });
    expect(refused.body).toMatchObject({ status: 412, changedBy: "setup file" });
    expect(await versionOf(endpoint)).toBe(endpointSeen);
    // The same file once more changes nothing.
    const after = await versionOf(CHANNEL);
    await applySetup(runtime.redis, runtime.secrets.vault, file, runtime.live.now());
    expect(await versionOf(CHANNEL)).toBe(after);
  });

  test("Waybill itself, which switches an endpoint off that fails", async () => {
    const seen = await versionOf(endpoint);
    const disabled = { reason: "failing", sinceMs: 2, failingSinceMs: 1 } as const;
    await switchOff(runtime.redis, endpoint.split("/").at(-1) ?? "", disabled);
    const refused = await send("PATCH", endpoint, patch, { "if-match": seen });
    expect(refused.body).toMatchObject({ status: 412, changedBy: "waybill" });
  });
});

describe("a deletion that names a version", () => {
  const listed = async (path: string, id: string) => {
    const { body } = await send("GET", path, null);
    return `"${body.items.find((one: { id: string }) => one.id === id).version}"`;
  };

  test("is refused once there is another one, and made to that version otherwise", async () => {
    const hook = { url: "https://8.8.8.8/del", alertEmail: "ops@acme.test" };
    const made = await send("POST", `${CHANNEL}/webhooks`, hook);
    const own = `${API}/webhooks/${made.body.endpointId}`;
    const receiver = await send("POST", `${API}/alarm-receivers`, { email: "a@waybill.test" });
    const receivers = `${API}/alarm-receivers`;
    await send("POST", `${API}/companies`, { code: "ending" });
    const cases: readonly (readonly [string, () => Promise<string>])[] = [
      [own, () => versionOf(own)],
      [BOX, boxVersion],
      [TEMPLATE, templateVersion],
      [`${receivers}/${receiver.body.id}`, () => listed(receivers, receiver.body.id)],
      [`${API}/accounts/${member.account.id}`, accountVersion],
      [`${API}/companies/ending`, () => versionOf(`${API}/companies/ending`)],
    ];
    for (const [path, version] of cases) {
      const seen = await version();
      const stale = await send("DELETE", path, null, { "if-match": '"another"' });
      expect([path, stale.status]).toEqual([path, 412]);
      expect(await version()).toBe(seen);
      const deleted = await send("DELETE", path, null, { "if-match": seen });
      expect([path, deleted.status]).toEqual([path, 204]);
    }
  });
});

/** Accounts of several tenants: invitations to one address, limits, and guesses at what an account is protected by. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { AccountKind, Role } from "#core/accounts/rules/roles.ts";
import { totpCode } from "#core/accounts/rules/totp.ts";
import { knownAccounts } from "#core/accounts/store/account-index.ts";
import {
  ACCOUNTS_LIMIT,
  ACCOUNTS_PER_TENANT,
  inviteAccount,
  type NewAccount,
} from "#core/accounts/store/accounts.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { ACCOUNT_INDEX_KEY } from "#core/platform/redis/keys.ts";
import { WRONG_PASSWORDS } from "#core/platform/secrets/wrong-secrets.ts";
import { startPanel } from "#panel/main.ts";
import {
  ADDRESS_RATE,
  INVITER_RATE,
  TENANT_RATE,
  takeInvitation,
} from "#panel/server/accounts/invitation-rates.ts";
import type { Caller } from "#panel/server/caller.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { bytesOfBase32 } from "#test/support/data/base32.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { NO_CLICKHOUSE, openTestRuntime } from "#test/support/product/runtime.ts";
import { startMailServer } from "#test/support/servers/mail-server.ts";

const STEP_MS = 30_000;
const NEW_PASSWORD = "another long password";

let acme: TestAccount;
let beta: TestAccount;
let admin: TestAccount;

const mail = forAll(startMailServer);
const runtime = forAll(() =>
  openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
    TRUSTED_PROXIES: "127.0.0.1",
    SMTP_URL: mail.url,
  }),
);
const panel = forAll(() => startPanel(runtime));
beforeEach(async () => {
  mail.forget();
  acme = await makeAccount(runtime, "company", "owner", { companyCode: "acme" });
  beta = await makeAccount(runtime, "company", "owner", { companyCode: "beta" });
  admin = await makeAccount(runtime, "operator", "admin");
});
afterEach(async () => {
  const { redis } = runtime;
  const used = ["config:account:*", "rate:courier:*", "{secrets:*", "session:*"];
  const found = await Promise.all(used.map((pattern) => redis.keys(pattern)));
  await redis.del([...found.flat(), ACCOUNT_INDEX_KEY, "config:ids:account"]);
});

async function call(
  method: string,
  path: string,
  body: unknown,
  { cookie = "", from = "203.0.113.9" } = {},
) {
  const answer = await fetch(`${panel.url}/panel/api${path}`, {
    method,
    headers: {
      cookie,
      "sec-fetch-site": "same-origin",
      "x-forwarded-for": from,
      "x-request-id": "test-request",
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.text();
  const { status, headers } = answer;
  return { status, headers, body: text === "" ? null : JSON.parse(text) };
}

const asked = (email: string, companyCode = "acme") => ({
  email,
  name: "Ann",
  kind: "company",
  role: "member",
  companyCode,
});
const invite = ({ cookie, account }: TestAccount, email: string) =>
  call("POST", "/invitations", asked(email, account.companyCode), { cookie });
const accountsOf = async ({ cookie }: TestAccount) =>
  (await call("GET", "/accounts", undefined, { cookie })).body.items as { email: string }[];

/** The token of the newest mail to an address. */
function tokenTo(email: string): string {
  const own = mail.received.filter(({ to }) => to.includes(email));
  return /invitation\/([\w.-]+)/.exec(own.at(-1)?.raw.replaceAll("=\r\n", "") ?? "")?.[1] ?? "";
}
const codeOf = (work: Promise<unknown>) => work.then(() => 201).catch(({ code }) => code);
const accept = (token: string) => call("POST", `/invitations/${token}`, { password: NEW_PASSWORD });

/** What an answer says besides times and what is random. */
const shapeOf = ({ status, body }: { readonly status: number; readonly body: unknown }) => {
  const text = JSON.stringify(body).replace(/\d{4}-\d\d-\d\dT[^"]+/g, "T");
  return [status, text.replace(/acc_\w+/g, "ID").replace(/beta|acme/g, "TENANT")];
};

describe("an address that several tenants invite", () => {
  test("has an invitation of each, and none of them loses its own", async () => {
    const email = "shared@client.test";
    expect((await invite(acme, email)).status).toBe(201);
    const ofAcme = tokenTo(email);
    expect((await invite(beta, email)).status).toBe(201);
    const ofBeta = tokenTo(email);
    const operator = { email, name: "Ann", kind: "operator", role: "read-only" };
    expect((await call("POST", "/invitations", operator, admin)).status).toBe(201);
    for (const [token, kind] of [
      [ofAcme, "company"],
      [ofBeta, "company"],
      [tokenTo(email), "operator"],
    ]) {
      const shown = await call("GET", `/invitations/${token}`, undefined);
      expect([shown.status, shown.body.kind]).toEqual([200, kind]);
    }
    for (const owner of [acme, beta]) {
      expect((await accountsOf(owner)).filter((one) => one.email === email)).toHaveLength(1);
    }
  });

  test("has one account: of the first invitation that is accepted; the next link says so, and works once that account is deleted", async () => {
    const email = "first@client.test";
    await invite(acme, email);
    const ofAcme = tokenTo(email);
    await invite(beta, email);
    const ofBeta = tokenTo(email);
    expect((await accept(ofBeta)).status).toBe(204);
    const refused = await accept(ofAcme);
    expect([refused.status, refused.body.code]).toEqual([409, "ACCOUNT_EXISTS"]);
    const [account] = (await accountsOf(beta)).filter((one) => one.email === email);
    expect(account).toMatchObject({ state: "active", companyCode: "beta" });
    const { id } = account as unknown as { id: string };
    expect((await call("DELETE", `/accounts/${id}`, undefined, beta)).status).toBe(204);
    expect((await accept(ofAcme)).status).toBe(204);
    expect((await accountsOf(acme)).find((one) => one.email === email)).toMatchObject({
      state: "active",
    });
  });

  test("tells no inviter whether it is known elsewhere: status, body, list and mail are those of an unknown address", async () => {
    const known = beta.account.email;
    await invite(beta, "pending@client.test");
    mail.forget();
    const unknown = await invite(acme, "nobody@client.test");
    for (const email of [known, "pending@client.test", admin.account.email]) {
      const answer = await invite(acme, email);
      const [expected, text = ""] = shapeOf(unknown);
      expect(shapeOf(answer)).toEqual([
        expected ?? 0,
        String(text).replace("nobody@client.test", email.replace("beta", "TENANT")),
      ]);
      expect(mail.received.filter(({ to }) => to.includes(email))).toHaveLength(1);
    }
    expect(unknown.body).toMatchObject({ link: null, mailed: true });
    const states = (await accountsOf(acme)).map((one) => (one as { state?: string }).state);
    expect(states.sort()).toEqual(["active", "invited", "invited", "invited", "invited"]);
    // The account that was there is as it was.
    const me = await call("GET", "/me", undefined, beta);
    expect(me.body).toMatchObject({ email: known, companyCode: "beta", role: "owner" });
  });

  test("has its link in the mail alone, unless an operator invites", async () => {
    expect((await invite(acme, "mine@client.test")).body.link).toBeNull();
    const byOperator = await call("POST", "/invitations", asked("theirs@client.test"), admin);
    expect(byOperator.body.link).toContain(tokenTo("theirs@client.test"));
  });

  test("of its own tenant is 409 once it has an account there", async () => {
    const again = await invite(acme, acme.account.email.toUpperCase());
    expect([again.status, again.body.code]).toEqual([409, "ACCOUNT_EXISTS"]);
  });

  test("keeps an invitation and an account that an earlier version has stored", async () => {
    const { redis, live } = runtime;
    const email = "old@client.test";
    const owner = { name: "Ann", kind: "company", role: "member", courierCode: "" } as const;
    const old = { ...owner, email, companyCode: "beta" };
    const { token } = await inviteAccount(redis, old, live.now());
    await redis.del(ACCOUNT_INDEX_KEY);
    expect((await invite(acme, email)).status).toBe(201);
    expect((await accept(token)).status).toBe(204);
    await redis.del(ACCOUNT_INDEX_KEY);
    const login = { email, password: NEW_PASSWORD };
    expect((await call("POST", "/session", login)).status).toBe(204);
    expect((await accept(tokenTo(email))).status).toBe(409);
  });

  test("is free again when an earlier version has deleted its account", async () => {
    const { redis } = runtime;
    await redis.sRem("config:ids:account", beta.account.id);
    await redis.del(`config:account:${beta.account.id}`);
    const known = await knownAccounts(redis);
    expect(known.map(({ id }) => id)).not.toContain(beta.account.id);
    expect(await redis.hExists(ACCOUNT_INDEX_KEY, beta.account.id)).toBe(0);
  });
});

describe("limits of accounts", () => {
  const add = (kind: AccountKind, role: Role, code: string, name: string) =>
    inviteAccount(
      runtime.redis,
      {
        email: `${name}@limits.test`,
        name: "L",
        kind,
        role,
        companyCode: kind === "company" ? code : "",
        courierCode: "",
      },
      runtime.live.now(),
    );
  /** Entries as accounts have them, without the accounts. */
  async function fill(count: number, tenant: (at: number) => string): Promise<void> {
    const ids = Array.from({ length: count }, (_, at) => `acc_full${at}`);
    await runtime.redis.sAdd("config:ids:account", ids);
    const entries = ids.map((id, at) => [id, `company\n${tenant(at)}\n\n${id}@x.test`] as const);
    await runtime.redis.hSet(ACCOUNT_INDEX_KEY, Object.fromEntries(entries));
  }

  test(`${ACCOUNTS_PER_TENANT} of a company and of the operators, each, and not one more`, async () => {
    await fill(ACCOUNTS_PER_TENANT - 2, () => "acme");
    expect(await codeOf(add("company", "member", "acme", "last"))).toBe(201);
    expect(await codeOf(add("company", "member", "acme", "more"))).toBe("TOO_MANY_ACCOUNTS");
    expect(await codeOf(add("company", "member", "acme", "last"))).toBe(201);
    expect(await codeOf(add("company", "member", "beta", "other"))).toBe(201);
    for (let at = await operators(); at < ACCOUNTS_PER_TENANT; at += 1) {
      expect(await codeOf(add("operator", "read-only", "", `op-${at}`))).toBe(201);
    }
    expect(await codeOf(add("operator", "read-only", "", "op"))).toBe("TOO_MANY_ACCOUNTS");
  }, 60_000);

  test(`${ACCOUNTS_LIMIT} of all companies and couriers, and operators have room all the same`, async () => {
    const tenants = (await knownAccounts(runtime.redis)).filter(({ kind }) => kind !== "operator");
    await fill(ACCOUNTS_LIMIT - tenants.length - 1, (at) => `company-${at % 100}`);
    expect(await codeOf(add("company", "member", "acme", "last"))).toBe(201);
    expect(await codeOf(add("company", "member", "beta", "more"))).toBe("TOO_MANY_ACCOUNTS");
    expect(await codeOf(add("operator", "read-only", "", "op"))).toBe(201);
  });

  const operators = async () =>
    (await knownAccounts(runtime.redis)).filter(({ kind }) => kind === "operator").length;
});

describe("rates of invitations", () => {
  test(`${ADDRESS_RATE.burst} of a tenant to one address, and mails to nobody after that; another tenant's are its own`, async () => {
    const email = "often@client.test";
    for (let times = 0; times < ADDRESS_RATE.burst; times += 1) {
      expect((await invite(acme, email)).status).toBe(201);
    }
    const { status, body, headers } = await invite(acme, email);
    expect([status, body.code]).toEqual([429, "TOO_MANY_INVITATIONS"]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(mail.received).toHaveLength(ADDRESS_RATE.burst);
    expect((await invite(beta, email)).status).toBe(201);
  });

  test(`${INVITER_RATE.burst} by one person, ${TENANT_RATE.burst} by one company`, async () => {
    // At one moment, in which nothing is added to what is left.
    const nowMs = runtime.live.now();
    const deps = { ...runtime, live: { ...runtime.live, now: () => nowMs } };
    let sent = 0;
    const take = ({ account }: TestAccount) => {
      sent += 1;
      const wanted = { ...account, email: `rate-${sent}@client.test` } as NewAccount;
      const caller = { account, actor: "", kind: account.kind } as Caller;
      return codeOf(takeInvitation(deps, caller, wanted));
    };
    for (let by = 0; by < TENANT_RATE.burst / INVITER_RATE.burst; by += 1) {
      const more = { companyCode: "acme", email: `owner-${by}@acme.test` };
      const owner = await makeAccount(runtime, "company", "owner", more);
      for (let times = 0; times < INVITER_RATE.burst; times += 1) {
        expect(await take(owner)).toBe(201);
      }
      expect(await take(owner)).toBe("TOO_MANY_INVITATIONS");
    }
    expect(await take(acme)).toBe("TOO_MANY_INVITATIONS");
    expect(await take(beta)).toBe(201);
  });
});

describe("guesses with a session, from a network that the account is used from", () => {
  const from = "192.0.2.77";

  /** A session from there, and a second factor. */
  async function protectedOwner() {
    const { email } = acme.account;
    const login = { email, password: acme.password };
    const { headers } = await call("POST", "/session", login, { from });
    const at = { cookie: headers.get("set-cookie")?.split(";")[0] ?? "", from };
    const { password } = acme;
    const { body } = await call("POST", "/me/totp", { password }, at);
    const code = (steps: number) =>
      totpCode(bytesOfBase32(body.secret), Math.floor(runtime.live.now() / STEP_MS) + steps);
    await advance(STEP_MS - (runtime.live.now() % STEP_MS));
    const put = { password, code: code(-1) };
    expect((await call("PUT", "/me/totp", put, at)).status).toBe(204);
    return { at, email, password, code };
  }

  async function advance(ms: number): Promise<void> {
    await advanceClock(runtime.redis, Math.ceil(ms / 1000));
    await runtime.live.refresh();
  }

  async function exhaust(guess: (number: number) => Promise<{ status: number }>): Promise<void> {
    for (let number = 0; number < WRONG_PASSWORDS.burst; number += 1) {
      expect((await guess(number)).status).toBe(401);
    }
    expect((await guess(WRONG_PASSWORDS.burst)).status).toBe(429);
  }

  test("at the code are as few as at the log-in, and then the right one is refused as a wrong one is", async () => {
    const { at, password, code, email } = await protectedOwner();
    await exhaust((number) =>
      call("DELETE", "/me/totp", { password, code: String(100_000 + number) }, at),
    );
    const right = await call("DELETE", "/me/totp", { password, code: code(0) }, at);
    expect([right.status, right.body.code]).toEqual([429, "RATE_LIMITED"]);
    const login = await call("POST", "/session", { email, password, code: code(1) }, { from });
    expect(login.status).toBe(429);
    await advance(1_000 / WRONG_PASSWORDS.perSecond);
    expect((await call("DELETE", "/me/totp", { password, code: code(0) }, at)).status).toBe(204);
  });

  test.each([
    ["PATCH", "/me", (guess: string) => ({ password: { current: guess, next: NEW_PASSWORD } })],
    ["POST", "/me/totp", (guess: string) => ({ password: guess })],
    ["PUT", "/me/totp", (guess: string) => ({ password: guess, code: "123456" })],
    ["DELETE", "/me/totp", (guess: string) => ({ password: guess, code: "123456" })],
  ])(
    "at the password by %s %s are counted with those at the log-in",
    async (method, path, bodyOf) => {
      const { email } = acme.account;
      const login = (password: string) => call("POST", "/session", { email, password }, { from });
      const { headers } = await login(acme.password);
      const at = { cookie: headers.get("set-cookie")?.split(";")[0] ?? "", from };
      expect((await login("wrong at the log-in")).status).toBe(401);
      for (let number = 1; number < WRONG_PASSWORDS.burst; number += 1) {
        const guess = await call(method, path, bodyOf(`guess ${number}`), at);
        expect([guess.status, guess.body.code]).toEqual([401, "WRONG_PASSWORD"]);
      }
      for (const password of ["one more", acme.password]) {
        const { status, body } = await call(method, path, bodyOf(password), at);
        expect([status, body.code]).toEqual([429, "RATE_LIMITED"]);
      }
      expect((await login(acme.password)).status).toBe(429);
      // The session itself goes on.
      expect((await call("GET", "/me", undefined, at)).status).toBe(200);
    },
  );

  test("keep the owner out of no other network", async () => {
    const { email } = acme.account;
    const login = (password: string, where: string) =>
      call("POST", "/session", { email, password }, { from: where });
    const home = "198.51.100.200";
    expect((await login(acme.password, home)).status).toBe(204);
    expect((await login(acme.password, from)).status).toBe(204);
    const { at } = await sessionFrom(from);
    await exhaust((number) => call("POST", "/me/totp", { password: `guess ${number}` }, at));
    expect((await login(acme.password, home)).status).toBe(204);
    // And a network that is new is limited by strangers' guesses alone.
    expect((await login(acme.password, "198.51.100.201")).status).toBe(204);
  });

  async function sessionFrom(where: string) {
    const login = { email: acme.account.email, password: acme.password };
    const { headers } = await call("POST", "/session", login, { from: where });
    return { at: { cookie: headers.get("set-cookie")?.split(";")[0] ?? "", from: where } };
  }
});

describe("credentials", () => {
  test("are changed with the password alone, whatever the session", async () => {
    const { cookie } = acme;
    for (const [method, path, body] of [
      ["POST", "/me/totp", {}],
      ["PUT", "/me/totp", { code: "123456" }],
      ["DELETE", "/me/totp", { code: "123456" }],
      ["PATCH", "/me", { password: { next: NEW_PASSWORD } }],
    ] as const) {
      expect((await call(method, path, body, { cookie })).status).toBe(422);
    }
    expect((await call("PATCH", "/me", { name: "Ann" }, { cookie })).status).toBe(200);
  });
});

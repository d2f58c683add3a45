/** Accounts of the panel: the first admin, invitations, log-in, second factor, password reset, the end of sessions. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Role } from "#core/accounts/rules/roles.ts";
import { totpCode } from "#core/accounts/rules/totp.ts";
import { INVITATION_MS, RESET_MS } from "#core/accounts/store/accounts.ts";
import { entityKey } from "#core/configuration/store/entities.ts";
import { advanceClock } from "#core/configuration/store/live.ts";
import { allSealed } from "#core/configuration/store/sealed-fields.ts";
import { isFileRewriteMarked } from "#core/platform/redis/embedded/file-rewrite.ts";
import { FILE_REWRITE_KEY } from "#core/platform/redis/keys.ts";
import { hashPassword, verifyPassword } from "#core/platform/secrets/passwords.ts";
import { WRONG_PASSWORDS } from "#core/platform/secrets/wrong-secrets.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { startPanel } from "#panel/main.ts";
import { inviteFirstAdmin } from "#panel/server/accounts/first-admin.ts";
import { makeAccount } from "#test/support/data/accounts.ts";
import { bytesOfBase32 } from "#test/support/data/base32.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { watchLoop } from "#test/support/loop-holds.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";

const PASSWORD = "correct horse battery";
const LEAST_PASSWORD = 12;
/** RFC 6238: how long one code is the present one. */
const STEP_MS = 30_000;

let runtime: TestRuntime;
let mail: MailServer;
let panel: Running;
let admin: string;
/** What was printed at the start. */
let printed = "";

async function capturePrinted(work: () => Promise<void>): Promise<string> {
  const { write } = process.stderr;
  let text = "";
  process.stderr.write = ((chunk: string) => {
    text += chunk;
    return true;
  }) as typeof write;
  try {
    await work();
  } finally {
    process.stderr.write = write;
  }
  return text;
}

beforeAll(async () => {
  mail = await startMailServer();
  runtime = await openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
    TRUSTED_PROXIES: "127.0.0.1",
    SMTP_URL: mail.url,
  });
  printed = await capturePrinted(async () => {
    panel = await startPanel(runtime);
    await inviteFirstAdmin(runtime, panel.url ?? "");
  });
  admin = (await makeAccount(runtime, "operator", "admin")).cookie;
});
afterAll(async () => {
  await panel.stop();
  await runtime.end();
  await mail.stop();
});

let addresses = 0;
const newAddress = () => {
  addresses += 1;
  return `198.51.${addresses >> 8}.${addresses & 255}`;
};

interface Ask {
  readonly cookie?: string;
  readonly address?: string;
}

async function call(method: string, path: string, body?: unknown, ask: Ask = {}) {
  const answer = await fetch(`${panel.url}/panel/api${path}`, {
    method,
    headers: {
      // The same for all, so that answers that must not differ are equal.
      "x-request-id": "test-request",
      "sec-fetch-site": "same-origin",
      "x-forwarded-for": ask.address ?? newAddress(),
      ...(ask.cookie !== undefined && { cookie: ask.cookie }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.text();
  return {
    status: answer.status,
    cookie: answer.headers.get("set-cookie")?.split(";")[0] ?? "",
    headers: answer.headers,
    body: text === "" ? null : JSON.parse(text),
  };
}

const byAdmin = (method: string, path: string, body?: unknown) =>
  call(method, path, body, { cookie: admin });
const me = (cookie: string) => call("GET", "/me", undefined, { cookie });
const logIn = (email: string, more: object = {}, ask: Ask = {}) =>
  call("POST", "/session", { email, password: PASSWORD, ...more }, ask);
const tokenOf = (link: string) => link.slice(link.lastIndexOf("/") + 1);

let invitedPeople = 0;

async function invite(more: object = {}) {
  invitedPeople += 1;
  const email = `person-${invitedPeople}@acme.test`;
  const person = { email, name: "Ann", kind: "company", role: "member", companyCode: "acme" };
  const answer = await byAdmin("POST", "/invitations", { ...person, ...more });
  return { email, answer, token: tokenOf(answer.body?.link ?? "") };
}

/** Somebody who has accepted an invitation. */
async function person(role: Role = "member") {
  invitedPeople += 1;
  const own = { companyCode: "acme", email: `person-${invitedPeople}@acme.test` };
  const { account, cookie } = await makeAccount(runtime, "company", role, own);
  return { email: own.email, id: account.id, cookie };
}

async function advance(ms: number): Promise<void> {
  await advanceClock(runtime.redis, Math.ceil(ms / 1000));
  await runtime.live.refresh();
}

describe("the first start", () => {
  test("prints one link, which makes an admin with an address of their own, once", async () => {
    const link = /http:\S+\/invitation\/\S+/.exec(printed)?.[0] ?? "";
    expect(link).toStartWith(`${panel.url}/invitation/acc_first.`);
    const path = `/invitations/${tokenOf(link)}`;
    const shown = await call("GET", path);
    expect(shown.body).toMatchObject({ email: null, kind: "operator", role: "admin" });
    expect((await call("POST", path, { password: PASSWORD })).status).toBe(422);
    const body = { password: PASSWORD, email: "First@Waybill.test", name: "Root" };
    const accepted = await call("POST", path, body);
    expect(accepted.status).toBe(204);
    expect((await me(accepted.cookie)).body).toMatchObject({
      kind: "operator",
      role: "admin",
      name: "Root",
      email: "first@waybill.test",
    });
    expect((await call("POST", path, body)).status).toBe(404);
  });

  test("a later start prints nothing", async () => {
    expect(await capturePrinted(() => inviteFirstAdmin(runtime, ""))).toBe("");
  });
});

describe("invitations", () => {
  test("go out by mail in the company's language, work once, and log in", async () => {
    mail.forget();
    const { email, answer, token } = await invite();
    expect([answer.status, answer.body.mailed]).toEqual([201, true]);
    const [sent] = mail.received;
    expect([sent?.to, sent?.subject]).toEqual([[email], "Il tuo invito a Waybill"]);
    expect(sent?.raw.replaceAll("=\r\n", "")).toContain(token);
    const shown = await call("GET", `/invitations/${token}`);
    expect(shown.body).toMatchObject({ email, name: "Ann", kind: "company", role: "member" });
    const accepted = await call("POST", `/invitations/${token}`, { password: PASSWORD });
    expect((await me(accepted.cookie)).body).toMatchObject({ email, companyCode: "acme" });
    expect((await call("GET", `/invitations/${token}`)).status).toBe(404);
    expect((await logIn(email)).status).toBe(204);
  });

  test("of two who use a link at the same time one succeeds", async () => {
    const { token } = await invite();
    const both = await Promise.all(
      ["first password of two", "second password of two"].map((password) =>
        call("POST", `/invitations/${token}`, { password }),
      ),
    );
    expect(both.map(({ status }) => status).sort()).toEqual([204, 404]);
  });

  test("sent again the first link is worth nothing, and an existing account is 409", async () => {
    const { email, token } = await invite();
    const again = await invite({ email });
    expect((await call("GET", `/invitations/${token}`)).status).toBe(404);
    expect((await call("GET", `/invitations/${again.token}`)).status).toBe(200);
    await call("POST", `/invitations/${again.token}`, { password: PASSWORD });
    expect((await invite({ email })).answer.body).toMatchObject({ code: "ACCOUNT_EXISTS" });
  });

  test("are over after 7 days, and can be taken back", async () => {
    const { token, answer } = await invite();
    const other = await invite();
    const deleted = await byAdmin("DELETE", `/accounts/${answer.body.account.id}`);
    expect(deleted.status).toBe(204);
    expect((await call("GET", `/invitations/${token}`)).status).toBe(404);
    const { expiresAt } = (await call("GET", `/invitations/${other.token}`)).body;
    const left = Date.parse(expiresAt) - runtime.live.now();
    expect(left).toBeGreaterThan(INVITATION_MS - 60_000);
    expect(left).toBeLessThanOrEqual(INVITATION_MS);
  });

  test.each([
    [{ role: "admin" }, "role"],
    [{ companyCode: "nobody" }, "companyCode"],
    [{ courierCode: "GLS_ITA" }, "courierCode"],
    [{ email: "no address" }, "email"],
    [{ name: "two\r\nlines" }, "name"],
  ])("that fit no account are 422: %j", async (more, path) => {
    const { body, status } = (await invite(more)).answer;
    expect([status, body.violations[0].path]).toEqual([422, path]);
  });

  test("owners invite members of what is theirs, and nobody else", async () => {
    const owner = await person("owner");
    const ask = (more: object) => {
      const own = { name: "B", kind: "company", role: "member", companyCode: "acme" };
      const wanted = { ...own, email: `by-owner-${Math.random()}@acme.test`, ...more };
      return call("POST", "/invitations", wanted, { cookie: owner.cookie });
    };
    expect((await ask({})).status).toBe(201);
    const refused = [
      { companyCode: "beta" },
      { companyCode: "nobody" },
      { kind: "operator", role: "admin", companyCode: undefined },
      { kind: "courier", role: "owner", companyCode: undefined, courierCode: "GLS_ITA" },
    ];
    for (const more of refused) expect((await ask(more)).status).toBe(403);
  });

  test("the store has neither the link nor the password", async () => {
    const { token, answer } = await invite();
    const { id } = answer.body.account;
    await call("POST", `/invitations/${token}`, { password: PASSWORD });
    const text = JSON.stringify(await runtime.redis.hGetAll(entityKey("account", id)));
    expect(text).toContain("$argon2id$");
    expect(text).not.toContain(PASSWORD);
    expect(text).not.toContain(tokenOf(token).split(".")[1] ?? "");
  });
});

describe("passwords", () => {
  test(`of ${LEAST_PASSWORD} characters are taken, of one less are not`, async () => {
    const { token } = await invite();
    const short = await call("POST", `/invitations/${token}`, { password: "x".repeat(11) });
    expect(short.status).toBe(422);
    const enough = await call("POST", `/invitations/${token}`, { password: "x".repeat(12) });
    expect(enough.status).toBe(204);
  });

  test("of 200 characters are taken, of one more are not", async () => {
    const { token } = await invite();
    const long = (length: number) =>
      call("POST", `/invitations/${token}`, { password: "é".repeat(length) });
    expect([(await long(201)).status, (await long(200)).status]).toEqual([422, 204]);
  });

  test("are the same however the keyboard composes their letters", async () => {
    const hash = await hashPassword("perché no perché");
    expect(await verifyPassword("perché no perché".normalize("NFD"), hash)).toBe(true);
  });

  test("a wrong one and an address without an account are answered alike", async () => {
    const { email } = await person();
    const wrong = await logIn(email, { password: "wrong" });
    const nobody = await logIn("nobody@acme.test");
    expect([wrong.status, wrong.body]).toEqual([401, nobody.body]);
  });

  test("another one ends every session but the one that changed it", async () => {
    const { email, cookie } = await person();
    const other = (await logIn(email)).cookie;
    const change = (current: string) =>
      call("PATCH", "/me", { password: { current, next: "another password" } }, { cookie });
    expect((await change("wrong")).body.code).toBe("WRONG_PASSWORD");
    const changed = await change(PASSWORD);
    expect(changed.status).toBe(200);
    const statuses = await Promise.all([other, cookie, changed.cookie].map(me));
    expect(statuses.map(({ status }) => status)).toEqual([401, 401, 200]);
    expect((await logIn(email)).status).toBe(401);
    expect((await logIn(email, { password: "another password" })).status).toBe(204);
  });

  test("are verified off the event loop, a few at a time, and 503 when too many wait", async () => {
    const hash = await Bun.password.hash(PASSWORD, { algorithm: "argon2id", memoryCost: 4_096 });
    const watch = watchLoop();
    const fromMs = performance.now();
    const tries = Array.from({ length: 103 }, () =>
      verifyPassword("x", hash).catch((error) => error.status),
    );
    const answers = await Promise.all(tries);
    const tookMs = performance.now() - fromMs;
    const longestMs = watch.longestMs();
    watch.stop();
    // Two at work and a hundred behind them.
    expect(answers.filter((one) => one === false)).toHaveLength(102);
    expect(answers.at(-1)).toBe(503);
    // On the loop they would hold it up for all of that time.
    expect(longestMs).toBeLessThan(0.75 * tookMs);
  }, 300_000);
});

describe("guesses at one account", () => {
  test(`${WRONG_PASSWORDS.burst} from anywhere are judged, then only networks that it was used from get in`, async () => {
    const { email } = await person();
    const home = newAddress();
    expect((await logIn(email, {}, { address: home })).status).toBe(204);
    for (let tries = 0; tries < WRONG_PASSWORDS.burst; tries += 1) {
      expect((await logIn(email, { password: `guess ${tries}` })).status).toBe(401);
    }
    const strange = await logIn(email);
    expect(strange.status).toBe(429);
    expect(Number(strange.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await logIn(email, {}, { address: home })).status).toBe(204);
  });

  test("an address without an account is limited in the same way", async () => {
    const statuses: number[] = [];
    for (let tries = 0; tries <= WRONG_PASSWORDS.burst; tries += 1) {
      statuses.push((await logIn("somebody@acme.test")).status);
    }
    expect(statuses.slice(-2)).toEqual([401, 429]);
  });
});

describe("the second factor", () => {
  /** A person with one, and the codes of it, at the beginning of a step: it lasts longer than a test. */
  async function withTotp() {
    const { email, cookie, id } = await person();
    await advance(STEP_MS - (runtime.live.now() % STEP_MS));
    const { body } = await call("POST", "/me/totp", { password: PASSWORD }, { cookie });
    const secret = new URL(body.otpauthUrl).searchParams.get("secret") ?? "";
    expect(secret).toBe(body.secret);
    const codeOf = (steps: number) =>
      totpCode(bytesOfBase32(secret), Math.floor(runtime.live.now() / STEP_MS) + steps);
    const put = (code: string) => call("PUT", "/me/totp", { password: PASSWORD, code }, { cookie });
    return { email, id, cookie, codeOf, put };
  }

  test("counts once a code of it was shown; each code works once", async () => {
    const { email, codeOf, put, cookie } = await withTotp();
    expect((await logIn(email)).status).toBe(204);
    expect((await put("000000")).body.code).toBe("WRONG_CODE");
    expect((await put(codeOf(-1))).status).toBe(204);
    expect((await me(cookie)).body.totp).toBe(true);
    expect((await logIn(email)).body.code).toBe("TOTP_REQUIRED");
    expect((await logIn(email, { code: codeOf(-1) })).status).toBe(401);
    const code = codeOf(0);
    expect((await logIn(email, { code })).status).toBe(204);
    expect((await logIn(email, { code })).body.code).toBe("UNKNOWN_OPERATOR");
    await advance(STEP_MS);
    const remove = { password: PASSWORD, code: codeOf(1) };
    expect((await call("DELETE", "/me/totp", remove, { cookie })).status).toBe(204);
    expect((await logIn(email)).status).toBe(204);
  });

  test("its secret is sealed, and sealed again with the other secrets", async () => {
    const { id } = await withTotp();
    const { totpSecret } = await runtime.redis.hGetAll(entityKey("account", id));
    expect(await allSealed(runtime.redis)).toContain(totpSecret ?? "");
  });

  test("is needed for a new password by mail too, and an admin can take it away", async () => {
    const { email, id, codeOf, put } = await withTotp();
    await put(codeOf(0));
    mail.forget();
    await call("POST", "/password-reset", { email });
    await eventually(() => mail.received.length === 1, "the mails");
    const token = tokenFrom(mail.received[0]?.raw ?? "");
    const accept = () => call("POST", `/invitations/${token}`, { password: PASSWORD });
    expect((await accept()).body.code).toBe("TOTP_REQUIRED");
    const patched = await byAdmin("PATCH", `/accounts/${id}`, { totp: false });
    expect(patched.body.totp).toBe(false);
    expect((await accept()).status).toBe(204);
  });
});

const tokenFrom = (raw: string) =>
  /invitation\/([\w.-]+)/.exec(raw.replaceAll("=\r\n", ""))?.[1] ?? "";

describe("a forgotten password", () => {
  test("is answered alike for everybody, and mailed to those who have an account, three times", async () => {
    const { email } = await person();
    mail.forget();
    const reset = (address: string) => call("POST", "/password-reset", { email: address });
    for (let times = 0; times < 4; times += 1) {
      expect([(await reset(email)).status, (await reset("nobody@acme.test")).status]).toEqual([
        202, 202,
      ]);
    }
    await eventually(() => mail.received.length === 3, "the mails");
    expect(new Set(mail.received.flatMap(({ to }) => to))).toEqual(new Set([email]));
  });

  test("its link lasts an hour, and ends the sessions from before", async () => {
    const { email, cookie } = await person();
    mail.forget();
    await call("POST", "/password-reset", { email });
    await eventually(() => mail.received.length === 1, "the mails");
    const token = tokenFrom(mail.received[0]?.raw ?? "");
    const { expiresAt } = (await call("GET", `/invitations/${token}`)).body;
    expect(Date.parse(expiresAt) - runtime.live.now()).toBeLessThanOrEqual(RESET_MS);
    const password = "the password after";
    const accepted = await call("POST", `/invitations/${token}`, { password });
    expect([accepted.status, (await me(cookie)).status]).toEqual([204, 401]);
    expect((await logIn(email, { password })).status).toBe(204);
  });

  test("the link is over after the hour", async () => {
    const { email } = await person();
    mail.forget();
    await call("POST", "/password-reset", { email });
    await eventually(() => mail.received.length === 1, "the mails");
    const token = tokenFrom(mail.received[0]?.raw ?? "");
    await advance(RESET_MS);
    expect((await call("GET", `/invitations/${token}`)).status).toBe(404);
  });
});

describe("an account that is disabled", () => {
  test("has no session, at once and after it is enabled again, and no log-in meanwhile", async () => {
    const { email, id, cookie } = await person();
    expect((await byAdmin("PATCH", `/accounts/${id}`, { active: false })).body.state).toBe(
      "disabled",
    );
    expect([(await me(cookie)).status, (await logIn(email)).status]).toEqual([401, 401]);
    await byAdmin("PATCH", `/accounts/${id}`, { active: true });
    expect([(await me(cookie)).status, (await logIn(email)).status]).toEqual([401, 204]);
  });

  test("another role counts at once", async () => {
    const { id, cookie } = await person();
    await byAdmin("PATCH", `/accounts/${id}`, { role: "read-only" });
    const { body } = await me(cookie);
    expect([body.role, body.capabilities.includes("webhooks:write")]).toEqual(["read-only", false]);
  });

  test("once deleted, leaves the append-only file too", async () => {
    const { account } = await makeAccount(runtime, "operator", "read-only");
    await runtime.redis.del(FILE_REWRITE_KEY);
    expect((await byAdmin("DELETE", `/accounts/${account.id}`)).status).toBe(204);
    expect(await isFileRewriteMarked(runtime.redis)).toBe(true);
  });

  test("nobody changes or deletes their own", async () => {
    const accounts = (await byAdmin("GET", "/accounts?limit=200")).body.items;
    const own = accounts.find(({ email }: { email: string }) => email === "admin@operators.test");
    const change = await byAdmin("PATCH", `/accounts/${own.id}`, { active: false });
    const deletion = await byAdmin("DELETE", `/accounts/${own.id}`);
    expect([change.body.code, deletion.body.code]).toEqual(["OWN_ACCOUNT", "OWN_ACCOUNT"]);
  });
});

describe("GET /panel/api/accounts", () => {
  test("lists in pages, without a hash or a secret", async () => {
    await person();
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body } = await byAdmin("GET", `/accounts?limit=3&cursor=${cursor}`);
      expect(body.items.length).toBeLessThanOrEqual(3);
      expect(JSON.stringify(body)).not.toMatch(/argon2|linkHash|totpSecret/);
      seen.push(...body.items.map(({ email }: { email: string }) => email));
      cursor = body.nextCursor;
    }
    expect(seen).toEqual([...new Set(seen)].sort());
    expect(seen.length).toBeGreaterThan(4);
  });

  test.each(["limit=0", "limit=201", "cursor=%25"])("%s is 422", async (query) => {
    expect((await byAdmin("GET", `/accounts?${query}`)).status).toBe(422);
  });
});

describe("PANEL_TOKEN", () => {
  test("is an admin without an account", async () => {
    const headers = { authorization: `Bearer ${runtime.secrets.panelToken}` };
    const answer = await fetch(`${panel.url}/panel/api/me`, { headers });
    expect(await answer.json()).toMatchObject({ kind: "operator", role: "admin", email: null });
    const init = { method: "POST", headers };
    const totp = await fetch(`${panel.url}/panel/api/me/totp`, init);
    expect(totp.status).toBe(409);
  });
});

/** No caller of the panel slows the others down: each has a request rate, and an account is no part of the configuration. */
import { beforeAll, describe, expect, test } from "bun:test";
import { changeAccount, readAccount } from "#core/accounts/store/accounts.ts";
import { lockQueueKeys, SETUP_LOCK_KEY, SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import { takeLock } from "#core/platform/redis/lock.ts";
import {
  MEMBER_CALLS,
  MEMBER_CHANGES,
  OPERATOR_CALLS,
  OPERATOR_CHANGES,
  refuseTooMany,
} from "#panel/server/http/call-rate.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

let member: TestAccount;
let other: TestAccount;

const runtime = forAll(() => openTestRuntime(testSetup()));
const panel = forAll(() => openTestPanel(runtime));
beforeAll(async () => {
  member = await makeAccount(runtime, "company", "member", { companyCode: "acme" });
  other = await makeAccount(runtime, "company", "owner", { companyCode: "acme" });
});

function call(cookie: string, method: string, path: string, body?: object): Promise<Response> {
  const headers = {
    cookie,
    "sec-fetch-site": "same-origin",
    ...(body && { "content-type": "application/json" }),
  };
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  return panel.handle(new Request(`http://localhost${path}`, init));
}

const rename = ({ cookie }: TestAccount, name: string) =>
  call(cookie, "PATCH", "/panel/api/me", { name });

describe("a change of an account", () => {
  test("does not wait for whoever changes the configuration, and is announced to nobody", async () => {
    const terms = { leaseMs: 60_000, waitLimitMs: 0 };
    const lock = await takeLock(runtime.redis, SETUP_LOCK_KEY, terms);
    const before = await runtime.redis.hGetAll(SYSTEM_KEY);
    expect((await rename(member, "Anna Verdi")).status).toBe(200);
    expect(await runtime.redis.hGetAll(SYSTEM_KEY)).toEqual(before);
    expect((await readAccount(runtime.redis, member.account.id))?.name).toBe("Anna Verdi");
    await lock?.release();
  });

  test("loses no other change of the same account that is made at the same time", async () => {
    const { id } = member.account;
    const before = (await readAccount(runtime.redis, id))?.epoch ?? 0;
    const raise = () =>
      changeAccount(runtime.redis, id, ({ epoch }) => ({ epoch: Number(epoch) + 1 }));
    await Promise.all(Array.from({ length: 20 }, raise));
    expect((await readAccount(runtime.redis, id))?.epoch).toBe(before + 20);
    await changeAccount(runtime.redis, id, () => ({ epoch: before }));
  });
});

describe("a change of an operator", () => {
  const QUEUED = 150;
  /** One of the company's is at work, and one waits ahead; others may end before the operator's answer is here. */
  const ENDED_BEFORE = 15;

  test("does not wait until many changes of one company that were there before are made", async () => {
    const { redis } = runtime;
    const { cookie } = other;
    const path = "/panel/api/channels/acme-it/webhooks";
    const hook = { url: "https://merchant.example/hook", alertEmail: "ops@acme.test" };
    const { endpointId } = (await panel.call("POST", path, hook)).body;
    const lock = await takeLock(redis, SETUP_LOCK_KEY, { leaseMs: 60_000, waitLimitMs: 0 });
    let ended = 0;
    const changes = Array.from({ length: QUEUED }, async (_, at) => {
      const url = `https://merchant.example/hook/${at}`;
      const { status } = await call(cookie, "PATCH", `/panel/api/webhooks/${endpointId}`, { url });
      ended += 1;
      return status;
    });
    const { waiting } = lockQueueKeys(SETUP_LOCK_KEY);
    const isQueued = (count: number) => async () => (await redis.zCard(waiting)) === count;
    await eventually(isQueued(QUEUED), "the company's changes wait");
    const rate = { bucketSize: 312, refillRate: 152 };
    const operators = panel.call("PUT", "/panel/api/channels/acme-it/rate-limit", rate);
    await eventually(isQueued(QUEUED + 1), "the operator's change waits");
    await lock?.release();
    expect((await operators).status).toBe(200);
    expect(ended).toBeLessThan(ENDED_BEFORE);
    expect(new Set(await Promise.all(changes))).toEqual(new Set([200]));
  }, 120_000);
});

async function times(count: number, ask: () => Promise<void>): Promise<void> {
  for (let done = 0; done < count; done += 100) {
    await Promise.all(Array.from({ length: Math.min(100, count - done) }, ask));
  }
}

describe("requests of a caller", () => {
  const callerOf = (account: TestAccount["account"] | null, kind: "company" | "operator") =>
    ({ account, actor: "PANEL_TOKEN", kind }) as Parameters<typeof refuseTooMany>[1];

  test.each([
    ["readings of a member", "GET", MEMBER_CALLS, "company"],
    ["changes of a member", "PATCH", MEMBER_CHANGES, "company"],
    ["readings of the operator of PANEL_TOKEN", "GET", OPERATOR_CALLS, "operator"],
    ["changes of the operator of PANEL_TOKEN", "POST", OPERATOR_CHANGES, "operator"],
  ] as const)(
    "%s: as many as the burst at once, and not one more",
    async (_, method, limit, kind) => {
      const nowMs = runtime.live.now();
      const live = { ...runtime.live, now: () => nowMs };
      // Nobody else's calls have taken of its rate.
      const unused = { ...other.account, id: "acc_that_has_called_nothing" };
      const caller = callerOf(kind === "company" ? unused : null, kind);
      const ask = () => refuseTooMany({ redis: runtime.redis, live }, caller, method);
      await times(limit.burst, ask);
      await expect(ask()).rejects.toMatchObject({
        status: 429,
        code: "RATE_LIMITED",
        headers: { "retry-after": "1" },
      });
      const later = { ...live, now: () => nowMs + 1_000 };
      const next = () => refuseTooMany({ redis: runtime.redis, live: later }, caller, method);
      await times(limit.perSecond, next);
      await expect(next()).rejects.toMatchObject({ status: 429 });
    },
    300_000,
  );

  test("over the rate are answered 429 with Retry-After, and cost another account nothing", async () => {
    let refused: Response | null = null;
    let answered = 0;
    for (; refused === null; answered += 1) {
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, at) => rename(member, `Anna ${answered} ${at}`)),
      );
      refused = answers.find(({ status }) => status === 429) ?? null;
    }
    expect(answered * 16).toBeGreaterThan(MEMBER_CHANGES.burst);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.json()).toMatchObject({ code: "RATE_LIMITED" });
    // One's readings, and another account's changes, have buckets of their own.
    expect((await call(member.cookie, "GET", "/panel/api/me")).status).toBe(200);
    expect((await panel.call("POST", "/panel/api/channels/acme-it/deactivate")).status).toBe(200);
  }, 300_000);
});

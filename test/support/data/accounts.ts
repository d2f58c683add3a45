/** Accounts of the control panel, and their sessions, for tests that are not about the way to them. */
import type { AccountKind, Role } from "#core/accounts/rules/roles.ts";
import { acceptLink, inviteAccount } from "#core/accounts/store/accounts.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import { logInAccount } from "#panel/server/accounts/log-in.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";

export interface TestAccount {
  readonly account: AccountEntity;
  /** Name and value. */
  readonly cookie: string;
  readonly password: string;
}

const PASSWORD = "correct horse battery";
/** A hash names what it costs: one that is quick to verify, since tests log in hundreds of times. */
export const QUICK_HASH = await Bun.password.hash(PASSWORD, {
  algorithm: "argon2id",
  memoryCost: 64,
  timeCost: 1,
});

/** @param owner by default the address is named after the role and the tenant */
export async function makeAccount(
  runtime: TestRuntime,
  kind: AccountKind,
  role: Role,
  owner: {
    readonly companyCode?: string;
    readonly courierCode?: string;
    readonly email?: string;
  } = {},
): Promise<TestAccount> {
  const { redis, live } = runtime;
  const { companyCode = "", courierCode = "" } = owner;
  const own = `${role}@${companyCode || courierCode || "operators"}.test`.toLowerCase();
  const { email = own } = owner;
  const wanted = { email, name: role, kind, role, companyCode, courierCode };
  const { token } = await inviteAccount(redis, wanted, live.now());
  const acceptance = { passwordHash: QUICK_HASH, name: null, email: null };
  const account = await acceptLink(redis, token, acceptance, live.now());
  const cookie = (await logInAccount(runtime, account)).split(";")[0] ?? "";
  return { account, cookie, password: PASSWORD };
}

/** Accounts of the control panel, and their sessions, for tests that are not about the way to them. */
import type { AccountKind, Role } from "#core/accounts/rules/roles.ts";
import { acceptLink, inviteAccount } from "#core/accounts/store/accounts.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import { hashPassword } from "#core/platform/secrets/passwords.ts";
import { logInAccount } from "#panel/server/accounts/log-in.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";

export interface TestAccount {
  readonly account: AccountEntity;
  /** Name and value. */
  readonly cookie: string;
  readonly password: string;
}

let hash: Promise<string> | undefined;
const PASSWORD = "correct horse battery";

export async function makeAccount(
  runtime: TestRuntime,
  kind: AccountKind,
  role: Role,
  owner: { readonly companyCode?: string; readonly courierCode?: string } = {},
): Promise<TestAccount> {
  const { redis, live } = runtime;
  const { companyCode = "", courierCode = "" } = owner;
  const email = `${role}@${companyCode || courierCode || "operators"}.test`.toLowerCase();
  const wanted = { email, name: role, kind, role, companyCode, courierCode };
  const { token } = await inviteAccount(redis, wanted, live.now());
  hash ??= hashPassword(PASSWORD);
  const acceptance = { passwordHash: await hash, name: null, email: null };
  const account = await acceptLink(redis, token, acceptance, live.now());
  const cookie = (await logInAccount(runtime, account)).split(";")[0] ?? "";
  return { account, cookie, password: PASSWORD };
}

/**
 * Accounts of the control panel. An account's id is made from its e-mail address, so that the address is its owner's alone
 * and is found without an index. Passwords, sessions and codes are checked by the panel (`panel/log-in.ts`).
 */
import { randomBytes } from "node:crypto";
import { type AccountKind, capabilitiesOf, type Role } from "#core/domain/accounts/roles.ts";
import { TOTP_LIFE_MS } from "#core/domain/accounts/totp.ts";
import { Problem } from "#core/problem.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { noteErased } from "#core/redis/client/file-rewrite.ts";
import { usedCodeKey } from "#core/redis/client/keys.ts";
import { hashToken, type Vault } from "#core/secrets.ts";
import {
  type AccountEntity,
  allEntities,
  entityIds,
  readEntity,
  removeEntity,
  saveEntity,
} from "./entities.ts";
import { underAccountLock, underNewAccountLock } from "./setup-lock.ts";

/** Of an installation, invited ones included: lists read all of them. */
const ACCOUNTS_LIMIT = 5_000;
/** From an invitation or a request for a new password to the use of its link. */
export const INVITATION_MS = 7 * 86_400_000;
export const RESET_MS = 3_600_000;
const LINK_BYTES = 32;
/** The first admin's account, while it has no e-mail address. */
export const FIRST_ACCOUNT_ID = "acc_first";
const LINK = /^(acc_[a-z0-9]{5,16})\.[\w-]{43}$/;

export interface NewAccount {
  readonly email: string;
  readonly name: string;
  readonly kind: AccountKind;
  readonly role: Role;
  readonly companyCode: string;
  readonly courierCode: string;
}

/** Addresses are compared without regard to case, as practically every mail server does. */
export function normalEmail(text: string): string {
  return text.trim().toLowerCase();
}

export function accountIdOf(vault: Vault, email: string): string {
  return `acc_${vault.mac(`account ${normalEmail(email)}`)}`;
}

export function readAccount(redis: Redis, id: string): Promise<AccountEntity | null> {
  return readEntity(redis, "account", id);
}

/** In no order that means anything. */
export function allAccounts(redis: Redis): Promise<AccountEntity[]> {
  return allEntities(redis, "account");
}

/** Whether the account may log in, whatever its password. */
export function isUsable({ active, passwordHash }: AccountEntity): boolean {
  return active && passwordHash !== "";
}

/**
 * A new account, or the same one once more while its first invitation has not been used.
 * @returns the account, and the token of its link, which is shown this once
 * @throws {Problem} 409
 */
export function inviteAccount(
  redis: Redis,
  vault: Vault,
  wanted: NewAccount,
  nowMs: number,
): Promise<{ readonly account: AccountEntity; readonly token: string }> {
  const email = normalEmail(wanted.email);
  const id = email === "" ? FIRST_ACCOUNT_ID : accountIdOf(vault, email);
  const work = async () => {
    const known = await readAccount(redis, id);
    const isOpen = known !== null && id === FIRST_ACCOUNT_ID && nowMs < known.linkUntilMs;
    if (isOpen || (known && known.passwordHash !== "")) {
      throw new Problem(409, "ACCOUNT_EXISTS", "There is an account with this e-mail address.");
    }
    if (!known && (await entityIds(redis, "account")).length >= ACCOUNTS_LIMIT) {
      throw new Problem(409, "TOO_MANY_ACCOUNTS", `At most ${ACCOUNTS_LIMIT} accounts.`);
    }
    const fresh: AccountEntity = {
      ...{ ...wanted, id, email, active: true, passwordHash: "" },
      ...{ totpSecret: "", totpActive: false, epoch: 0, linkHash: "", linkUntilMs: 0 },
      createdAtMs: nowMs,
    };
    const { account, token } = withLink(fresh, nowMs + INVITATION_MS);
    await saveEntity(redis, "account", id, account);
    return { account, token };
  };
  return underNewAccountLock(redis, () => underAccountLock(redis, id, work));
}

/** @returns the token of a link that gives the account another password; null if it cannot log in anyway */
export function resetPassword(
  redis: Redis,
  id: string,
  nowMs: number,
): Promise<{ readonly account: AccountEntity; readonly token: string } | null> {
  return underAccountLock(redis, id, async () => {
    const known = await readAccount(redis, id);
    if (!known || !isUsable(known)) return null;
    const { account, token } = withLink(known, nowMs + RESET_MS);
    await saveEntity(redis, "account", id, account);
    return { account, token };
  });
}

function withLink(account: AccountEntity, linkUntilMs: number) {
  const token = `${account.id}.${randomBytes(LINK_BYTES).toString("base64url")}`;
  return { account: { ...account, linkHash: hashToken(token), linkUntilMs }, token };
}

/** The account that a link belongs to; null = the link is wrong, used or over. */
export async function accountOfLink(
  redis: Redis,
  token: string,
  nowMs: number,
): Promise<AccountEntity | null> {
  const id = LINK.exec(token)?.[1];
  const account = id === undefined ? null : await readAccount(redis, id);
  if (!account?.active || account.linkHash !== hashToken(token)) return null;
  return nowMs < account.linkUntilMs ? account : null;
}

export interface Acceptance {
  readonly passwordHash: string;
  readonly name: string | null;
  /** What the first admin says; of others it is known. */
  readonly email: string | null;
}

/**
 * Uses a link: the account has a password from now on, and every session from before is over.
 * @throws {Problem} 404 the link has been used meanwhile, 409
 */
export function acceptLink(
  redis: Redis,
  vault: Vault,
  token: string,
  { passwordHash, name, email }: Acceptance,
  nowMs: number,
): Promise<AccountEntity> {
  const linkedId = LINK.exec(token)?.[1];
  if (linkedId === undefined) return Promise.reject(invitationNotFound());
  return underAccountLock(redis, linkedId, async () => {
    const account = await accountOfLink(redis, token, nowMs);
    if (!account) throw invitationNotFound();
    const address = account.email === "" ? normalEmail(email ?? "") : account.email;
    const id = accountIdOf(vault, address);
    const accepted: AccountEntity = {
      ...{ ...account, id, email: address, name: name ?? account.name, passwordHash },
      ...{ epoch: account.epoch + 1, linkHash: "", linkUntilMs: 0 },
    };
    if (id === account.id) await saveEntity(redis, "account", id, accepted);
    else await moveAccount(redis, account.id, accepted);
    return accepted;
  });
}

/** Nobody waits for these two locks in the other order: the first admin's account alone changes its id. */
async function moveAccount(redis: Redis, fromId: string, account: AccountEntity): Promise<void> {
  await underAccountLock(redis, account.id, async () => {
    if (await readAccount(redis, account.id)) {
      throw new Problem(409, "ACCOUNT_EXISTS", "There is an account with this e-mail address.");
    }
    await saveEntity(redis, "account", account.id, account);
  });
  await removeEntity(redis, "account", fromId);
}

/**
 * @param change throws what the caller must be told
 * @returns null if there is no such account; the same twice if nothing changes, and then nothing is written
 */
export function changeAccount(
  redis: Redis,
  id: string,
  change: (account: AccountEntity) => Partial<AccountEntity>,
): Promise<{ readonly before: AccountEntity; readonly after: AccountEntity } | null> {
  return underAccountLock(redis, id, async () => {
    const before = await readAccount(redis, id);
    if (!before) return null;
    const after = { ...before, ...change(before) };
    await saveEntity(redis, "account", id, after);
    return { before, after };
  });
}

/** @returns what it was; null if there is none */
export function deleteAccount(redis: Redis, id: string): Promise<AccountEntity | null> {
  return underAccountLock(redis, id, async () => {
    const account = await readAccount(redis, id);
    if (!account) return null;
    await removeEntity(redis, "account", id);
    await noteErased(redis, Date.now());
    return account;
  });
}

/** @returns false if this code of the account was used before */
export async function useCode(redis: Redis, accountId: string, step: number): Promise<boolean> {
  const options = { condition: "NX", expiration: { type: "PX", value: 2 * TOTP_LIFE_MS } } as const;
  return (await redis.set(usedCodeKey(accountId, step), "1", options)) !== null;
}

/** Whether somebody can log in who may do everything, or has been invited to. */
export async function hasAdmin(redis: Redis, nowMs: number): Promise<boolean> {
  const all = await allAccounts(redis);
  return all.some(
    (one) =>
      one.kind === "operator" &&
      capabilitiesOf("operator", one.role).includes("accounts:write") &&
      (isUsable(one) || nowMs < one.linkUntilMs),
  );
}

export function invitationNotFound(): Problem {
  const detail = "There is no such invitation: it was used, replaced, or is over.";
  return new Problem(404, "INVITATION_NOT_FOUND", detail);
}

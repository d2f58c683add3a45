/**
 * Accounts of the control panel. An account belongs to one tenant, which is a company, a courier or the operators, and so does
 * an invitation: several tenants may invite one address, and none of them learns of the others. The first invitation that is
 * accepted makes the address's account, of which there is one; any other link then answers 409.
 * Passwords, sessions and codes are checked by the panel (`panel/server/accounts/log-in.ts`).
 */
import { randomBytes } from "node:crypto";
import { type AccountKind, capabilitiesOf, type Role } from "#core/accounts/rules/roles.ts";
import { TOTP_LIFE_MS } from "#core/accounts/rules/totp.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import { refuseStale } from "#core/configuration/store/change-context.ts";
import {
  readEntities,
  readEntity,
  removeEntity,
  type Stored,
  saveEntity,
} from "#core/configuration/store/entities.ts";
import { underAccountLock, underNewAccountLock } from "#core/configuration/store/setup-lock.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { erasing } from "#core/platform/redis/embedded/file-rewrite.ts";
import { usedCodeKey } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hashToken, type Vault } from "#core/platform/secrets/secrets.ts";
import {
  indexAccount,
  type KnownAccount,
  knownAccounts,
  tenantOf,
  unindexAccount,
} from "./account-index.ts";

/** Of all companies and couriers together, invited ones included. Operators have room of their own. */
export const ACCOUNTS_LIMIT = limit(
  5_000,
  "accounts of all companies and couriers, invited ones included",
  "409",
);
/** Of one company, of one courier, and of the operators, invited ones included. */
export const ACCOUNTS_PER_TENANT = limit(
  200,
  "accounts of one company or courier, or of the operators, who are not among the former",
  "409",
);
export const INVITATION_MS = limit(7 * 86_400_000, "life of an invitation", "404");
export const RESET_MS = limit(3_600_000, "life of a link for another password", "404");
const LINK_BYTES = 32;
const ID_BYTES = 8;
/** The first admin's account, while it has no e-mail address. */
export const FIRST_ACCOUNT_ID = "acc_first";
export type StoredAccount = Stored<"account">;
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

/** What is counted for an address, such as wrong passwords, is counted under this, whether or not it has an account. */
export function addressIdOf(vault: Vault, email: string): string {
  return `acc_${vault.mac(`account ${normalEmail(email)}`)}`;
}

export function readAccount(redis: Redis, id: string): Promise<StoredAccount | null> {
  return readEntity(redis, "account", id);
}

/** Those of ids that exist. */
export function readAccounts(redis: Redis, ids: readonly string[]): Promise<StoredAccount[]> {
  return readEntities(redis, "account", [...ids]);
}

/** The account that an address logs in to; null if no invitation of it has been accepted. */
export async function accountOfAddress(redis: Redis, email: string): Promise<AccountEntity | null> {
  const address = normalEmail(email);
  const known = (await knownAccounts(redis)).filter((one) => one.email === address);
  const read = await readAccounts(redis, known.map(({ id }) => id).sort());
  // One that was deleted in between has no fields.
  return read.find(({ passwordHash }) => Boolean(passwordHash)) ?? null;
}

/** Whether the account may log in, whatever its password. */
export function isUsable({ active, passwordHash }: AccountEntity): boolean {
  return active && passwordHash !== "";
}

/**
 * A new account of a tenant, or the same one once more while its first invitation has not been used.
 * @returns the account, and the token of its link, which is shown this once
 * @throws {Problem} 409
 */
export function inviteAccount(
  redis: Redis,
  wanted: NewAccount,
  nowMs: number,
): Promise<{ readonly account: AccountEntity; readonly token: string }> {
  const email = normalEmail(wanted.email);
  return underNewAccountLock(redis, async () => {
    const all = await knownAccounts(redis);
    // Among the tenant's own: what is read and answered is the same whatever other tenants have.
    const own = all.filter(({ tenant }) => tenant === tenantOf(wanted));
    const listed = own.find((one) => one.email === email);
    if (!listed && email !== "") refuseTooMany(all, own.length, wanted);
    const id = listed?.id ?? newId(email);
    return underAccountLock(redis, id, async () => {
      const known = await readAccount(redis, id);
      const isOpen = id === FIRST_ACCOUNT_ID && known !== null && nowMs < known.linkUntilMs;
      if (isOpen || (known && known.passwordHash !== "")) throw accountExists();
      const fresh: AccountEntity = {
        ...wanted,
        id,
        email,
        active: true,
        passwordHash: "",
        totpSecret: "",
        totpActive: false,
        epoch: 0,
        linkHash: "",
        linkUntilMs: 0,
        createdAtMs: nowMs,
      };
      const { account, token } = withLink(fresh, nowMs + INVITATION_MS);
      await save(redis, account);
      return { account, token };
    });
  });
}

function newId(email: string): string {
  return email === "" ? FIRST_ACCOUNT_ID : `acc_${randomBytes(ID_BYTES).toString("hex")}`;
}

/** @throws {Problem} 409 */
function refuseTooMany(all: readonly KnownAccount[], own: number, { kind }: NewAccount): void {
  if (own >= ACCOUNTS_PER_TENANT) {
    const whose = `a company, a courier and the operators have at most ${ACCOUNTS_PER_TENANT} each`;
    throw new Problem(409, "TOO_MANY_ACCOUNTS", `Delete an account first: ${whose}.`);
  }
  const shared = all.filter((one) => one.kind !== "operator").length;
  if (kind !== "operator" && shared >= ACCOUNTS_LIMIT) {
    const detail = `All companies and couriers together have at most ${ACCOUNTS_LIMIT} accounts.`;
    throw new Problem(409, "TOO_MANY_ACCOUNTS", detail);
  }
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
  token: string,
  { passwordHash, name, email }: Acceptance,
  nowMs: number,
): Promise<AccountEntity> {
  const linkedId = LINK.exec(token)?.[1];
  if (linkedId === undefined) return Promise.reject(invitationNotFound());
  const accept = async () => {
    const account = await accountOfLink(redis, token, nowMs);
    if (!account) throw invitationNotFound();
    const address = account.email === "" ? normalEmail(email ?? "") : account.email;
    const holder = await accountOfAddress(redis, address);
    if (holder && holder.id !== account.id) throw accountExists();
    const id = account.email === "" ? newId(address) : account.id;
    const accepted: AccountEntity = {
      ...account,
      id,
      email: address,
      name: name ?? account.name,
      passwordHash,
      epoch: account.epoch + 1,
      linkHash: "",
      linkUntilMs: 0,
    };
    await save(redis, accepted);
    if (id !== account.id) await remove(redis, account);
    return accepted;
  };
  // One after the other: an address gets one account.
  return underNewAccountLock(redis, () => underAccountLock(redis, linkedId, accept));
}

/**
 * @param change throws what the caller must be told
 * @returns null if there is no such account; the same twice if nothing changes, and then nothing is written
 */
export function changeAccount(
  redis: Redis,
  id: string,
  change: (account: AccountEntity) => Partial<AccountEntity>,
): Promise<{ readonly before: StoredAccount; readonly after: StoredAccount } | null> {
  return underAccountLock(redis, id, async () => {
    const before = await readAccount(redis, id);
    if (!before) return null;
    const wanted = { ...before, ...change(before) };
    const { entity: after } = await saveEntity(redis, "account", id, wanted);
    return { before, after };
  });
}

/** @returns what it was; null if there is none */
export function deleteAccount(redis: Redis, id: string): Promise<AccountEntity | null> {
  return underAccountLock(redis, id, async () => {
    const account = await readAccount(redis, id);
    refuseStale(account);
    if (!account) return null;
    await erasing(redis, Date.now(), () => remove(redis, account));
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
  const operators = (await knownAccounts(redis)).filter(({ kind }) => kind === "operator");
  const read = await readAccounts(
    redis,
    operators.map(({ id }) => id),
  );
  return read.some(
    (one) =>
      capabilitiesOf("operator", one.role).includes("accounts:write") &&
      (isUsable(one) || nowMs < one.linkUntilMs),
  );
}

export function invitationNotFound(): Problem {
  const detail = "There is no such invitation: it was used, replaced, or has expired.";
  return new Problem(404, "INVITATION_NOT_FOUND", detail);
}

function accountExists(): Problem {
  const detail = "There is an account with this e-mail address; an address has one account.";
  return new Problem(409, "ACCOUNT_EXISTS", detail);
}

/** A new account, or an existing one whose address is given now. */
async function save(redis: Redis, account: AccountEntity): Promise<void> {
  await saveEntity(redis, "account", account.id, account);
  await indexAccount(redis, account);
}

async function remove(redis: Redis, { id }: AccountEntity): Promise<void> {
  await unindexAccount(redis, id);
  await removeEntity(redis, "account", id);
}

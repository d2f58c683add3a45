/**
 * Which accounts there are, of which tenants and addresses: one small hash, so that a limit is counted and a list is paged without
 * every account being read. The accounts themselves decide. An entry is written after its account and removed before it, and a
 * reader adds what is missing, which is also how accounts of earlier versions get one.
 */

import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import { entityIds, readEntities } from "#core/configuration/store/entities.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { ACCOUNT_INDEX_KEY } from "#core/platform/redis/keys.ts";

type Owned = Pick<AccountEntity, "kind" | "companyCode" | "courierCode">;

export interface KnownAccount extends Owned {
  readonly id: string;
  readonly email: string;
  readonly tenant: string;
}

/** Whose the account is: the same text for all accounts of a company, of a courier, and of the operators. */
export function tenantOf({ kind, companyCode, courierCode }: Owned): string {
  return `${kind} ${companyCode}${courierCode}`;
}

export async function indexAccount(redis: Redis, account: AccountEntity): Promise<void> {
  await redis.hSet(ACCOUNT_INDEX_KEY, account.id, entryOf(account));
}

export async function unindexAccount(redis: Redis, id: string): Promise<void> {
  await redis.hDel(ACCOUNT_INDEX_KEY, id);
}

/** In no order that means anything. */
export async function knownAccounts(redis: Redis): Promise<KnownAccount[]> {
  // The index first: an entry whose account is gone afterwards was left by an earlier version that deleted it.
  const entries = new Map(Object.entries(await redis.hGetAll(ACCOUNT_INDEX_KEY)));
  const ids = new Set(await entityIds(redis, "account"));
  for (const id of entries.keys()) {
    if (ids.has(id)) continue;
    entries.delete(id);
    await unindexAccount(redis, id);
  }
  const missing = [...ids].filter((id) => !entries.has(id));
  for (const account of await readEntities(redis, "account", missing)) {
    // Deleted in between: it has no fields.
    if (!account.id) continue;
    entries.set(account.id, entryOf(account));
    await indexAccount(redis, account);
  }
  return [...entries].map(([id, entry]) => knownOf(id, entry));
}

/** Neither codes nor addresses have line ends. */
function entryOf({ kind, companyCode, courierCode, email }: AccountEntity): string {
  return [kind, companyCode, courierCode, email].join("\n");
}

function knownOf(id: string, entry: string): KnownAccount {
  const [kind = "", companyCode = "", courierCode = "", email = ""] = entry.split("\n");
  const owned = { kind, companyCode, courierCode };
  return { id, email, ...owned, tenant: tenantOf(owned) };
}

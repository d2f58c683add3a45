/**
 * Which key the store's secrets are sealed with, so that a process with another key finds out at startup.
 *
 * | Field    | Holds                                                                                          |
 * |----------|------------------------------------------------------------------------------------------------|
 * | `ring`   | key id, canary (known text, sealed), key of `mac` (sealed), ids of keys that have been replaced |
 * | `next`   | id of the key that secrets are being re-encrypted with; absent = none                           |
 * | `jwt` …  | keyed hash of a secret that all processes must share                                            |
 */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { KEY_USERS_KEY, KEYRING_KEY } from "#core/platform/redis/keys.ts";
import { swapField } from "#core/platform/redis/swap-field.ts";
import { limit } from "#core/platform/schema/limit.ts";
import keyUsersSource from "./key-users.lua" with { type: "text" };

const keyUsersScript = script(keyUsersSource);

export interface Ring {
  readonly keyId: string;
  readonly canary: string;
  readonly macKey: string;
  /** Ids of keys that must not seal again. */
  readonly replaced: readonly string[];
}

export interface Keyring {
  /** Null = no process, or none of this version, has started on this store yet. */
  readonly ring: Ring | null;
  readonly nextKeyId: string | null;
}

export async function readKeyring(redis: Redis): Promise<Keyring> {
  const [ring, next] = await redis.hmGet(KEYRING_KEY, ["ring", "next"]);
  const known = ring ? (JSON.parse(ring) as Ring) : null;
  return { ring: known, nextKeyId: next && next !== known?.keyId ? next : null };
}

/** @returns false if another process was faster */
export async function claimKeyring(redis: Redis, ring: Ring): Promise<boolean> {
  return (await redis.hSetNX(KEYRING_KEY, "ring", JSON.stringify(ring))) === 1;
}

/** From now on a process that would seal with another key is refused at startup. */
export async function announceKey(redis: Redis, keyId: string): Promise<void> {
  await redis.hSet(KEYRING_KEY, "next", keyId);
}

/** @returns false if the ring has changed in the meantime */
export async function moveKeyring(redis: Redis, before: Ring, after: Ring): Promise<boolean> {
  const change = { from: JSON.stringify(before), to: JSON.stringify(after) };
  const isMoved = await swapField(redis, KEYRING_KEY, "ring", change);
  if (isMoved) await redis.hDel(KEYRING_KEY, "next");
  return isMoved;
}

export type SharedSecret = "jwt" | "panel";

export async function sharedSecretOf(redis: Redis, name: SharedSecret): Promise<string | null> {
  return redis.hGet(KEYRING_KEY, name);
}

/** @returns the hash that was stored first */
export async function claimSharedSecret(
  redis: Redis,
  name: SharedSecret,
  hash: string,
): Promise<string> {
  await redis.hSetNX(KEYRING_KEY, name, hash);
  return (await sharedSecretOf(redis, name)) ?? hash;
}

export async function replaceSharedSecret(
  redis: Redis,
  name: SharedSecret,
  hash: string,
): Promise<void> {
  await redis.hSet(KEYRING_KEY, name, hash);
}

export const KEY_USER_LIFE_MS = limit(
  15_000,
  "time that a process counts as alive after its heartbeat, for `reencrypt`",
  "it no longer counts",
);

export interface KeyUser {
  /** Host and process id, for operators. */
  readonly process: string;
  readonly keyId: string;
  /** The layout of the store that it reads and writes; absent = the first one. */
  readonly layout?: number;
}

/** @returns the processes that are alive */
export async function keyUsers(
  redis: Redis,
  what: "beat" | "leave" | "list",
  user?: KeyUser,
): Promise<KeyUser[]> {
  const args = [what, user ? JSON.stringify(user) : "", String(KEY_USER_LIFE_MS)];
  const texts = await run<string[]>(redis, keyUsersScript, [KEY_USERS_KEY], args);
  return texts.map((text) => JSON.parse(text) as KeyUser);
}

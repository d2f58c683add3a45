/**
 * Re-seals every secret in the store with `ENCRYPTION_KEY` while the product runs. It can be repeated safely at any time.
 */

import {
  announceKey,
  KEY_USER_LIFE_MS,
  keyUsers,
  moveKeyring,
  readKeyring,
} from "#core/configuration/store/keyring.ts";
import { resealAll } from "#core/configuration/store/sealed-fields.ts";
import { announceChanges } from "#core/configuration/store/setup-lock.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { erasing } from "#core/platform/redis/embedded/file-rewrite.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { SecretRefused } from "#core/platform/secrets/secret-files.ts";
import { WrongKey } from "#core/platform/secrets/secrets.ts";
import { type OpenedSecrets, sealRing, unsealRing } from "./open-secrets.ts";

const LOOK_EVERY_MS = 500;
/** A killed process still counts as alive for a while. */
const WAIT_LIMIT_MS = limit(
  KEY_USER_LIFE_MS + 5_000,
  "wait of `npx waybill reencrypt` for processes with another key",
  "refused, listing those processes",
);
/** The second pass usually finds nothing; more are needed only if the setup lock was lost. */
const PASSES_LIMIT = 10;

/**
 * @returns how many secrets were re-sealed
 * @throws {SecretRefused} while a live process would seal with another key, or for a secret that no key opens
 */
export async function reencrypt(
  redis: Redis,
  opened: OpenedSecrets,
  waitLimitMs = WAIT_LIMIT_MS,
): Promise<number> {
  const { keyId } = opened.user;
  await announceKey(redis, keyId);
  await othersFollow(redis, keyId, waitLimitMs);
  // What the old key sealed stands in the append-only file.
  const sealed = await erasing(redis, Date.now(), () => resealWithRing(redis, opened));
  await announceChanges(redis);
  return sealed;
}

async function resealWithRing(
  redis: Redis,
  { secrets, user, keys }: OpenedSecrets,
): Promise<number> {
  const sealed = await resealEverything(redis, secrets.vault);
  const { ring } = await readKeyring(redis);
  if (ring !== null && ring.keyId !== user.keyId) {
    const { macKey } = unsealRing(ring, keys);
    const replaced = [...ring.replaced, ring.keyId];
    const moved = sealRing({ key: keys.key, macKey, replaced });
    if (!(await moveKeyring(redis, ring, moved))) {
      throw new SecretRefused("Another re-encryption finished in the meantime: run this again.");
    }
  }
  return sealed;
}

/**
 * After this nobody seals with another key: all live processes have ours, and a process that starts with another one is
 * refused.
 */
async function othersFollow(redis: Redis, keyId: string, waitLimitMs: number): Promise<void> {
  const untilMs = Date.now() + waitLimitMs;
  for (;;) {
    const users = await keyUsers(redis, "list");
    const others = users.filter((one) => one.keyId !== keyId).map((one) => one.process);
    if (others.length === 0) return;
    if (Date.now() > untilMs) {
      throw new SecretRefused(
        `Nothing was re-encrypted: another ENCRYPTION_KEY is in use by ${others.join(", ")}. Restart them with this ENCRYPTION_KEY and the previous key in ENCRYPTION_KEY_PREVIOUS, then run this again.`,
      );
    }
    await Bun.sleep(LOOK_EVERY_MS);
  }
}

async function resealEverything(
  redis: Redis,
  vault: OpenedSecrets["secrets"]["vault"],
): Promise<number> {
  let sealed = 0;
  try {
    for (let pass = 0; pass < PASSES_LIMIT; pass += 1) {
      const now = await resealAll(redis, vault);
      if (now === 0) return sealed;
      sealed += now;
    }
  } catch (error) {
    if (error instanceof WrongKey) throw new SecretRefused(error.message);
    throw error;
  }
  throw new SecretRefused("Secrets sealed with the previous key keep reappearing: run this again.");
}

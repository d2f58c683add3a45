/**
 * The secrets of this process, checked against the key that the store was sealed with and the secrets other processes use.
 */
import { hostname } from "node:os";
import {
  claimKeyring,
  claimSharedSecret,
  type Keyring,
  type KeyUser,
  keyUsers,
  type Ring,
  readKeyring,
  replaceSharedSecret,
  type SharedSecret,
  sharedSecretOf,
} from "#core/configuration/store/keyring.ts";
import { LAYOUT } from "#core/configuration/store/layout.ts";
import { allSealed } from "#core/configuration/store/sealed-fields.ts";
import type { Config } from "#core/platform/environment/config.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import {
  generateSecretFile,
  readSecretFile,
  removeSecretFile,
  type SecretName,
  SecretRefused,
  secretPath,
} from "#core/platform/secrets/secret-files.ts";
import { createVault, firstMacKey, keyIdOf, type Vault } from "#core/platform/secrets/secrets.ts";
import { keepUnshown } from "#core/platform/secrets/unshown-secrets.ts";

export interface Secrets {
  /** @throws {SecretRefused} if this machine lacks the secret that other processes use */
  readonly jwtSecret: string;
  /** @throws as `jwtSecret` */
  readonly panelToken: string;
  readonly vault: Vault;
}

export interface OpenedSecrets {
  readonly secrets: Secrets;
  /** The id of this process in the store. */
  readonly user: KeyUser;
  readonly keys: Keys;
  /** Stops the heartbeat. */
  readonly close: () => Promise<void>;
}

export interface Keys {
  readonly key: string;
  readonly previous: string | null;
}

/** The plain text of the canary. */
const CANARY = "waybill canary";
const BEAT_EVERY_MS = 5_000;

export interface SecretUse {
  /** The re-encryption command may seal with a key that the store does not expect yet. */
  readonly isRotating?: boolean;
  /** False for a command beside the product: it must not replace a secret that running processes use. */
  readonly isServing?: boolean;
}

/** @throws {SecretRefused} whose message says what to do */
export async function openSecrets(
  config: Config,
  redis: Redis,
  log: Log,
  { isRotating = false, isServing = true }: SecretUse = {},
): Promise<OpenedSecrets> {
  const keys = await chooseKeys(config, redis);
  const user = {
    process: `${hostname()}:${process.pid}`,
    keyId: keyIdOf(keys.key),
    layout: LAYOUT,
  };
  // Sent before the ring is read, so that a rotation that begins now either sees this process or is seen by it.
  await keyUsers(redis, "beat", user);
  let isReplaced = false;
  try {
    const keyring = await readKeyring(redis);
    const ring = checkedRing(keyring, keys, isRotating);
    const { previous } = keys;
    const vault = createVault({
      key: keys.key,
      previous,
      isReplaced: () => isReplaced,
      macKey: unsealRing(ring, keys).macKey,
    });
    const beating = setInterval(async () => {
      await keyUsers(redis, "beat", user).catch(() => {});
      const now = await readKeyring(redis).catch(() => null);
      if (isReplaced || !now?.ring?.replaced.includes(user.keyId)) return;
      isReplaced = true;
      log.error(
        "ENCRYPTION_KEY has been replaced in the store: restart this process with the new key",
      );
    }, BEAT_EVERY_MS);
    beating.unref();
    const close = async () => {
      clearInterval(beating);
      await keyUsers(redis, "leave", user).catch(() => {});
    };
    const secrets = await shareSecrets({ config, redis, vault, log, isServing });
    return { secrets, user, keys, close };
  } catch (error) {
    await keyUsers(redis, "leave", user).catch(() => {});
    throw error;
  }
}

export function sealRing({ key, macKey, replaced }: SealedWith): Ring {
  const vault = createVault({ key, previous: null, macKey });
  return {
    keyId: keyIdOf(key),
    canary: vault.seal(CANARY),
    macKey: vault.seal(macKey),
    replaced,
  };
}

interface SealedWith {
  readonly key: string;
  readonly macKey: string;
  readonly replaced: readonly string[];
}

/** @throws {SecretRefused} if none of the keys opens the canary */
export function unsealRing(ring: Ring, { key, previous }: Keys): { readonly macKey: string } {
  const vault = createVault({ key, previous, macKey: "" });
  try {
    if (vault.open(ring.canary) === CANARY) return { macKey: vault.open(ring.macKey) };
  } catch {
    // Fall through.
  }
  throw wrongKey();
}

/** The current key of this store, or a new one if nothing has been sealed yet. */
async function chooseKeys(config: Config, redis: Redis): Promise<Keys> {
  const { dataDir, encryptionKeyPrevious: previous } = config;
  const readOwn = () => readSecretFile(dataDir, "encryption-key");
  let own = config.encryptionKey ?? (await readOwn());
  if (own === null && (await isSealed(redis))) {
    // A process of this machine that started at the same time may have made the key since.
    own = await readOwn();
    if (own === null) throw missing("ENCRYPTION_KEY", "encryption-key", config);
  }
  if (own !== null) {
    const keys = { key: own, previous };
    await claim(redis, keys);
    return keys;
  }
  const { value, isNew } = await generateSecretFile(dataDir, "encryption-key");
  const keys = { key: value, previous };
  if (!(await claim(redis, keys)) && isNew && !(await isOurs(redis, value))) {
    // Another machine generated one at the same time, and the store is sealed with that.
    await removeSecretFile(dataDir, "encryption-key");
    throw missing("ENCRYPTION_KEY", "encryption-key", config);
  }
  return keys;
}

async function isSealed(redis: Redis): Promise<boolean> {
  return (await readKeyring(redis)).ring !== null || (await allSealed(redis)).length > 0;
}

async function isOurs(redis: Redis, key: string): Promise<boolean> {
  return (await readKeyring(redis)).ring?.keyId === keyIdOf(key);
}

/**
 * The first start on a store writes the canary, after checking that the key opens everything an earlier version sealed.
 * @returns false if there is one already
 */
async function claim(redis: Redis, { key, previous }: Keys): Promise<boolean> {
  if ((await readKeyring(redis)).ring !== null) return false;
  const sealed = await allSealed(redis);
  const opens = (one: string) => {
    const vault = createVault({ key: one, previous: null, macKey: "" });
    return (text: string) => vault.isCurrent(text);
  };
  const [byKey, byPrevious] = [opens(key), previous === null ? () => false : opens(previous)];
  if (!sealed.every((text) => byKey(text) || byPrevious(text))) throw wrongKey();
  // Earlier versions derived this key from the encryption key in use at the time.
  const isOlder = previous !== null && sealed.some((text) => !byKey(text));
  const first = isOlder ? previous : key;
  const ring = sealRing({ key: first, macKey: firstMacKey(first), replaced: [] });
  return claimKeyring(redis, ring);
}

/** @throws {SecretRefused} if the key may not be used for sealing in this store */
function checkedRing({ ring, nextKeyId }: Keyring, keys: Keys, isRotating: boolean): Ring {
  if (ring === null) throw new SecretRefused("The store was emptied while this process started.");
  const keyId = keyIdOf(keys.key);
  // First of all: a replaced key opens nothing any more, so it would pass for any wrong one.
  if (ring.replaced.includes(keyId)) {
    throw new SecretRefused(
      "ENCRYPTION_KEY is a key that was replaced: set it to the new one and leave ENCRYPTION_KEY_PREVIOUS out.",
    );
  }
  unsealRing(ring, keys);
  if (!isRotating && nextKeyId !== null && nextKeyId !== keyId) {
    throw new SecretRefused(
      "Secrets are being re-encrypted with another key: set ENCRYPTION_KEY to the new one and ENCRYPTION_KEY_PREVIOUS to this one.",
    );
  }
  return ring;
}

function wrongKey(): SecretRefused {
  return new SecretRefused(
    "ENCRYPTION_KEY is not the key that the secrets in this store were sealed with: set it to that key, or to a new one with that key in ENCRYPTION_KEY_PREVIOUS.",
  );
}

function missing(variable: string, name: SecretName, { dataDir }: Config): SecretRefused {
  return new SecretRefused(
    `${variable} is not set, ${secretPath(dataDir, name)} does not exist, and other processes of this installation use one already: set ${variable} to theirs.`,
  );
}

const SHARED = {
  jwt: { variable: "JWT_SECRET", file: "jwt-secret", configured: "jwtSecret" },
  panel: { variable: "PANEL_TOKEN", file: "panel-token", configured: "panelToken" },
} as const;

interface Shared {
  /** Null = missing on this machine. */
  readonly value: string | null;
  readonly isNew: boolean;
}

interface Sharing {
  readonly config: Config;
  readonly redis: Redis;
  readonly vault: Vault;
  readonly log: Log;
  readonly isServing: boolean;
}

async function shareSecrets(sharing: Sharing): Promise<Secrets> {
  const { config, vault } = sharing;
  const jwt = await shareSecret(sharing, "jwt");
  const panel = await shareSecret(sharing, "panel");
  if (panel.isNew && panel.value !== null) {
    await keepUnshown(config.dataDir, [{ owner: "operator", secret: panel.value }]);
  }
  const required = (name: SharedSecret, { value }: Shared) => {
    if (value !== null) return value;
    throw missing(SHARED[name].variable, SHARED[name].file, config);
  };
  // Roles that use neither start without them.
  return {
    vault,
    get jwtSecret() {
      return required("jwt", jwt);
    },
    get panelToken() {
      return required("panel", panel);
    },
  };
}

/**
 * One secret for all processes of the store. If it is generated, the first machine generates it, and no other machine does.
 */
async function shareSecret(
  { config, redis, vault, log, isServing }: Sharing,
  name: SharedSecret,
): Promise<Shared> {
  const { variable, file, configured } = SHARED[name];
  const hashOf = (secret: string) => vault.mac(`${name} ${secret}`);
  const known = await sharedSecretOf(redis, name);
  const given = config[configured];
  if (given !== null) {
    if (known !== null && known !== hashOf(given)) {
      log.warn(`${variable} has changed: processes with another one reject what this one issues`);
    }
    await replaceSharedSecret(redis, name, hashOf(given));
    return { value: given, isNew: false };
  }
  const isEmbedded = config.redisUrl === null && config.redisClusterUrls === null;
  const kept = await readSecretFile(config.dataDir, file);
  const mayReplace = isEmbedded && isServing;
  if (kept === null && known !== null && !mayReplace) return { value: null, isNew: false };
  const { value, isNew } =
    kept === null ? await generateSecretFile(config.dataDir, file) : { value: kept, isNew: false };
  // The embedded store is next to the file: whoever deletes the file wants a new secret.
  if (isEmbedded) await replaceSharedSecret(redis, name, hashOf(value));
  else if ((await claimSharedSecret(redis, name, hashOf(value))) !== hashOf(value)) {
    if (isNew) await removeSecretFile(config.dataDir, file);
    return { value: null, isNew: false };
  }
  if (isNew && !isEmbedded) {
    log.warn(`${variable} was generated in DATA_DIR: set it where other machines share this Redis`);
  }
  return { value, isNew };
}

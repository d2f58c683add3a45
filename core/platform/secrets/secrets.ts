/** Secrets at rest: keys and tokens only as hashes; what must be read back to sign is encrypted. */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto";

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Results that a process keeps of each kind; at the limit it starts over. */
const REMEMBERED_TEXTS = 10_000;

/** SHA-256 in hex: keys and tokens are random or at least secret, so a plain hash finds them and hides them. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** A new random text of 256 bits with a telling prefix, such as `key_…`. */
export function newToken(prefix: string): string {
  return `${prefix}${randomBytes(32).toString("hex")}`;
}

/** AES-256-GCM. Text form: base64url of iv, tag and ciphertext; it does not contain the id of its key. */
export interface Vault {
  /**
   * Seals with the current key.
   * @throws {WrongKey} after `ENCRYPTION_KEY` has been replaced in the store
   */
  seal(secret: string): string;
  /**
   * Opens with the current key, otherwise with the previous one.
   * @throws {WrongKey} if neither of them sealed the text
   */
  open(sealed: string): string;
  /** Whether the current key opens the text. */
  isCurrent(sealed: string): boolean;
  /**
   * Keyed hash of 64 bits in hex, for values that must be distinguishable but not readable. Its key survives every
   * rotation.
   */
  mac(text: string): string;
  /** A key of 256 bits for one purpose, such as the archive of a company. It survives every rotation. */
  keyFor(purpose: string): Buffer;
}

/** A text in the store that no key of this process opens, or a key that may no longer seal. */
export class WrongKey extends Error {}

/** Identifies a key without revealing it: 64 bits. */
export function keyIdOf(key: string): string {
  return createHash("sha256").update(`waybill key id ${key}`).digest("hex").slice(0, 16);
}

/** The key of `mac`, derived from the first key of an installation; after that it is stored sealed (`core/configuration/store/keyring.ts`). */
export function firstMacKey(key: string): string {
  return createHash("sha256").update(`waybill mac ${key}`).digest("base64url");
}

export interface VaultKeys {
  readonly key: string;
  /** The previous key, while secrets are re-encrypted; null = none. */
  readonly previous: string | null;
  /** Base64url. */
  readonly macKey: string;
  /** Checked before each sealing. */
  readonly isReplaced?: () => boolean;
}

export function createVault({ key, previous, macKey, isReplaced }: VaultKeys): Vault {
  const current = cipherOf(bytesOf(key));
  const others = previous === null ? [] : [cipherOf(bytesOf(previous))];
  const macBytes = Buffer.from(macKey, "base64url");
  return {
    seal(secret) {
      if (isReplaced?.()) throw new WrongKey("ENCRYPTION_KEY of this process has been replaced.");
      return current.seal(secret);
    },
    open: remember((sealed) => {
      for (const { open } of [current, ...others]) {
        const secret = open(sealed);
        if (secret !== null) return secret;
      }
      throw new WrongKey("A secret in the store was sealed with another ENCRYPTION_KEY.");
    }),
    isCurrent: (sealed) => current.open(sealed) !== null,
    mac: remember((text) => createHmac("sha256", macBytes).update(text).digest("hex").slice(0, 16)),
    keyFor: remember((purpose) =>
      createHmac("sha256", macBytes).update(`waybill key for ${purpose}`).digest(),
    ),
  };
}

function bytesOf(key: string): Buffer {
  return createHash("sha256").update(`waybill vault ${key}`).digest();
}

/** AES-256-GCM in the vault's text form. @param bytes 32, such as those of `Vault.keyFor` */
export function cipherOf(bytes: Buffer) {
  return {
    seal(secret: string): string {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", bytes, iv);
      const text = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64url");
    },
    /** Null = not sealed with this key, or damaged: the tag does not match. */
    open(sealed: string): string | null {
      const raw = Buffer.from(sealed, "base64url");
      if (raw.length < IV_BYTES + TAG_BYTES) return null;
      const decipher = createDecipheriv("aes-256-gcm", bytes, raw.subarray(0, IV_BYTES));
      decipher.setAuthTag(raw.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const text = decipher.update(raw.subarray(IV_BYTES + TAG_BYTES));
      try {
        return Buffer.concat([text, decipher.final()]).toString("utf8");
      } catch {
        return null;
      }
    },
  };
}

/** The same few texts are asked for with every message and every row. */
function remember<Result>(compute: (text: string) => Result): (text: string) => Result {
  const known = new Map<string, Result>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const result = compute(text);
    if (known.size >= REMEMBERED_TEXTS) known.clear();
    known.set(text, result);
    return result;
  };
}

/** Secrets at rest: keys and tokens only as hashes; what must be read back to sign is encrypted. */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "./config.ts";

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Results that a process keeps of each kind; at the limit it begins anew. */
const REMEMBERED_TEXTS = 10_000;

/** SHA-256 in hex: keys and tokens are random or at least secret, so a plain hash finds them and hides them. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** A new random text of 256 bits with a telling prefix, such as `key_…`. */
export function newToken(prefix: string): string {
  return `${prefix}${randomBytes(32).toString("hex")}`;
}

/** AES-256-GCM with one key of the installation. Text form: base64url of iv, tag and cipher text. */
export interface Vault {
  seal(secret: string): string;
  /** @throws when the text was not sealed with this key. */
  open(sealed: string): string;
  /** Keyed hash of 64 bits in hex, for what must be told apart but not known. */
  mac(text: string): string;
}

export function createVault(key: string): Vault {
  const keyBytes = createHash("sha256").update(`waybill vault ${key}`).digest();
  const macKey = createHash("sha256").update(`waybill mac ${key}`).digest();
  return {
    seal(secret) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", keyBytes, iv);
      const text = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64url");
    },
    open: remember((sealed) => {
      const bytes = Buffer.from(sealed, "base64url");
      const decipher = createDecipheriv("aes-256-gcm", keyBytes, bytes.subarray(0, IV_BYTES));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const text = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString("utf8");
    }),
    mac: remember((text) => createHmac("sha256", macKey).update(text).digest("hex").slice(0, 16)),
  };
}

/** The same few texts are asked for with every message and every row. */
function remember(compute: (text: string) => string): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const result = compute(text);
    if (known.size >= REMEMBERED_TEXTS) known.clear();
    known.set(text, result);
    return result;
  };
}

export interface Secrets {
  readonly jwtSecret: string;
  readonly panelToken: string;
  readonly vault: Vault;
  /** The panel token when this start made it: to be printed once. */
  readonly newPanelToken: string | null;
}

/** Takes each secret from the configuration, else from `dataDir`, where the first start generates it. */
export async function loadSecrets(config: Config): Promise<Secrets> {
  const jwt = await kept(config.dataDir, "jwt-secret", config.jwtSecret);
  const panel = await kept(config.dataDir, "panel-token", config.panelToken);
  const key = await kept(config.dataDir, "encryption-key", config.encryptionKey);
  return {
    jwtSecret: jwt.value,
    panelToken: panel.value,
    vault: createVault(key.value),
    newPanelToken: panel.isNew ? panel.value : null,
  };
}

async function kept(
  dataDir: string,
  name: string,
  configured: string | null,
): Promise<{ value: string; isNew: boolean }> {
  if (configured !== null) return { value: configured, isNew: false };
  const folder = join(dataDir, "secrets");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, name);
  const value = randomBytes(32).toString("base64url");
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, value, { mode: 0o600 });
  try {
    // A link appears whole or not at all, so that roles starting together agree on one secret.
    await link(draft, path);
    return { value, isNew: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return { value: (await readFile(path, "utf8")).trim(), isNew: false };
  } finally {
    await rm(draft, { force: true });
  }
}

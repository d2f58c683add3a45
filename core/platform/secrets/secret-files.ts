/** Generated secrets, one file each under `DATA_DIR/secrets`, that only the product's user may read. */
import { randomBytes } from "node:crypto";
import { link, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";

/** A start that is refused because a secret is missing, wrong or readable by others: the message says what to do. */
export class SecretRefused extends Error {}

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const MIN_LENGTH = 16;

export type SecretName = "encryption-key" | "jwt-secret" | "panel-token";

export function secretPath(dataDir: string, name: SecretName): string {
  return join(dataDir, "secrets", name);
}

/**
 * @returns null if there is none
 * @throws {SecretRefused} for a file that others can read, or that contains no secret
 */
export async function readSecretFile(dataDir: string, name: SecretName): Promise<string | null> {
  const path = secretPath(dataDir, name);
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw new SecretRefused(`${path} cannot be read: ${error.message}.`);
  });
  if (file === null) return null;
  try {
    const mode = (await file.stat()).mode & 0o777;
    if ((mode & 0o077) !== 0) {
      throw new SecretRefused(
        `${path} is open to other users of this machine (mode ${mode.toString(8)}): run chmod 600 on it, and replace the secret if others may have read it.`,
      );
    }
    const secret = (await file.readFile("utf8")).trim();
    if (secret.length >= MIN_LENGTH) return secret;
    throw new SecretRefused(
      `${path} holds no secret of ${MIN_LENGTH} characters or more: restore it, or delete it if the store holds no data yet.`,
    );
  } finally {
    await file.close();
  }
}

/**
 * The secret is on disk before it is returned, since sealed texts must not outlive it.
 * @returns the secret that was stored first, and whether this call stored it
 */
export async function generateSecretFile(
  dataDir: string,
  name: SecretName,
): Promise<{ readonly value: string; readonly isNew: boolean }> {
  const folder = join(dataDir, "secrets");
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  const path = secretPath(dataDir, name);
  const value = randomBytes(32).toString("base64url");
  const draft = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  await writeSynced(draft, value);
  try {
    // A link appears completely or not at all, so that roles that start together agree on one secret.
    await link(draft, path);
    await syncFolder(folder);
    return { value, isNew: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return { value: (await readSecretFile(dataDir, name)) ?? value, isNew: false };
  } finally {
    await rm(draft, { force: true });
  }
}

/** Removes the file of a secret that another machine generated first. */
export async function removeSecretFile(dataDir: string, name: SecretName): Promise<void> {
  await rm(secretPath(dataDir, name), { force: true });
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", FILE_MODE);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

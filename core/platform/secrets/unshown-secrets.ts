/**
 * Generated secrets that nobody has seen yet. They are stored as hashes, so one that is lost is lost for good: each is on disk
 * before the store has its hash, is printed on standard error, in no log line, once everything is up, and is then deleted. What a start
 * that fails has generated is printed by the next one on the same DATA_DIR.
 */
import { createHash } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

export interface GeneratedSecret {
  /** For example `channel acme-it, API key main`; a later secret of the same owner replaces an earlier one. */
  readonly owner: string;
  readonly secret: string;
}

const folderOf = (dataDir: string) => join(dataDir, "secrets", "unshown");

export async function keepUnshown(
  dataDir: string,
  secrets: readonly GeneratedSecret[],
): Promise<void> {
  if (secrets.length === 0) return;
  const folder = folderOf(dataDir);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const secret of secrets) {
    const path = join(folder, createHash("sha256").update(secret.owner).digest("hex"));
    const draft = `${path}.${process.pid}`;
    await writeSynced(draft, JSON.stringify(secret));
    await rename(draft, path);
  }
  const handle = await open(folder);
  await handle.sync().finally(() => handle.close());
}

/** Prints what is there; a process that is killed in between leaves it to the next. */
export async function showUnshown(dataDir: string): Promise<void> {
  const folder = folderOf(dataDir);
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((one) => !one.includes("."))) {
    const path = join(folder, name);
    const text = await readFile(path, "utf8").catch(() => null);
    // Another process of this machine was faster.
    if (text === null) continue;
    const { owner, secret } = JSON.parse(text) as GeneratedSecret;
    process.stderr.write(`generated secret for ${owner}, shown only now: ${secret}\n`);
    await rm(path, { force: true });
  }
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A restore that was interrupted must not be taken for an empty installation: a mark stands in DATA_DIR from its first to its last step. */
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

/** Reported without a stack. */
export class RestoreUnfinished extends Error {}

const pathOf = (dataDir: string) => join(dataDir, "restore-unfinished");

export async function beginRestore(dataDir: string, backup: string): Promise<void> {
  // Whole or not at all, whenever this process is killed.
  const written = `${pathOf(dataDir)}.part`;
  const file = await open(written, "w", 0o600);
  try {
    await file.writeFile(backup);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(written, pathOf(dataDir));
  await syncFolder(dataDir);
}

export async function endRestore(dataDir: string): Promise<void> {
  await rm(pathOf(dataDir), { force: true });
  await syncFolder(dataDir);
}

export async function isRestoreUnfinished(dataDir: string): Promise<boolean> {
  return (await interruptedRestore(dataDir)) !== null;
}

/** @throws {RestoreUnfinished} */
export async function expectRestored(dataDir: string): Promise<void> {
  const backup = await interruptedRestore(dataDir);
  if (backup === null) return;
  throw new RestoreUnfinished(
    `A restore into ${dataDir} was interrupted: run \`npx waybill restore ${backup}\` again with this DATA_DIR. ` +
      "It starts over. Without the backup, use another DATA_DIR.",
  );
}

function interruptedRestore(dataDir: string): Promise<string | null> {
  return readFile(pathOf(dataDir), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  await folder.sync().finally(() => folder.close());
}

/** Where an embedded program keeps its files and its socket: in folders that only this user owns. */
import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readlink, realpath, rename, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StoreUnreachable } from "#core/platform/redis/client.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** The shortest `sun_path` of our platforms (macOS: 104 bytes) without the terminating zero. */
export const SOCKET_PATH_BYTES = limit(
  103,
  "path of a Unix socket",
  "reached through a link with a shorter path",
);
const PRIVATE_MODE = 0o700;

/** Identifies a folder, wherever it is moved to. */
export interface FolderIdentity {
  readonly dev: number;
  readonly ino: number;
}

export async function identityOf(path: string): Promise<FolderIdentity | null> {
  const found = await stat(path).catch(() => null);
  return found && { dev: found.dev, ino: found.ino };
}

export function isSame(one: FolderIdentity | null, other: FolderIdentity | null): boolean {
  return one !== null && other !== null && one.dev === other.dev && one.ino === other.ino;
}

/**
 * Creates `<dataDir>/<name>` if it is missing.
 * @param title of the program, for messages
 * @returns its path without symbolic links
 * @throws {StoreUnreachable} if it cannot be created or belongs to another user
 */
export async function prepareDataFolder(
  dataDir: string,
  name: string,
  title: string,
): Promise<string> {
  const path = join(dataDir, name);
  try {
    await mkdir(path, { recursive: true, mode: PRIVATE_MODE });
    const folder = await realpath(path);
    const { uid, mode } = await lstat(folder);
    if (uid !== userId()) throw new StoreUnreachable(refusal(folder, "is another user's", title));
    // A volume may be mounted with wider permissions. Anything that others created there meanwhile, above all a socket, is
    // recognized by its owner.
    if ((mode & 0o777) !== PRIVATE_MODE) await chmod(folder, PRIVATE_MODE);
    return folder;
  } catch (error) {
    if (error instanceof StoreUnreachable) throw error;
    throw new StoreUnreachable(
      `The embedded ${title} cannot keep its files in ${path}: ${(error as Error).message}. ` +
        "Set DATA_DIR to a folder that this user may write to.",
    );
  }
}

/**
 * A path of the socket that is short enough to connect to: its own, otherwise that of a link to it.
 * @throws {StoreUnreachable} if the folder of the link is not ours
 */
export async function reachableAddress(
  folder: string,
  socketName: string,
  title: string,
): Promise<string> {
  const socket = join(folder, socketName);
  if (isShort(socket)) return socket;
  const name = createHash("sha256").update(folder).digest("hex").slice(0, 16);
  const socketFolder = join(tmpdir(), `waybill-${name}`);
  const address = join(socketFolder, socketName);
  if (!isShort(address)) {
    throw new StoreUnreachable(
      `A socket's path has at most ${SOCKET_PATH_BYTES} bytes, and ${socket} and ${address} have more. ` +
        "Set DATA_DIR or TMPDIR to a shorter path.",
    );
  }
  await preparePrivateFolder(socketFolder, title);
  if ((await readlink(address).catch(() => null)) === socket) return address;
  const draft = `${address}.${process.pid}`;
  await symlink(socket, draft);
  await rename(draft, address);
  return address;
}

/** @throws {StoreUnreachable} if somebody else created it */
export async function preparePrivateFolder(path: string, title: string): Promise<void> {
  await mkdir(path, { mode: PRIVATE_MODE }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const found = await lstat(path);
  const fault =
    (found.isSymbolicLink() && "is a link") ||
    (!found.isDirectory() && "is no folder") ||
    (found.uid !== userId() && "is another user's") ||
    ((found.mode & 0o777) !== PRIVATE_MODE && "is open to other users");
  if (fault) throw new StoreUnreachable(refusal(path, fault, title));
}

/** False if the socket at `path` was created by another user. */
export async function isOurSocket(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found === null || found.uid === userId();
}

function refusal(path: string, fault: string, title: string): string {
  return `The folder ${path} ${fault}: the embedded ${title} would trust whoever made it. Remove it or choose another DATA_DIR.`;
}

function isShort(path: string): boolean {
  return Buffer.byteLength(path) <= SOCKET_PATH_BYTES;
}

function userId(): number {
  return process.getuid?.() ?? -1;
}

/**
 * A program of ours or of others that serves a folder of `DATA_DIR` on a Unix socket: at most one at a time, whatever happens to its
 * socket, its folder or the process that started it.
 *
 * A server holds the lock of its folder while it is running, through a descriptor that it inherits, and nobody starts one without
 * that lock. A process that finds one running joins it. One that is running but unreachable is stopped first.
 */
import { type ChildProcess, execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type FileLock, tryLock, waitForLock } from "#core/platform/process/file-lock.ts";
import type { Log } from "#core/platform/process/log.ts";
import { StoreUnreachable } from "#core/platform/redis/client.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  type FolderIdentity,
  identityOf,
  isSame,
  prepareDataFolder,
  reachableAddress,
} from "./embedded-folder.ts";

/** Also limits the wait for another process to start it, and for an unreachable server to exit. */
const START_LIMIT_MS = limit(
  60_000,
  "wait for another process to start an embedded store, or for an unreachable server to exit",
  "the start is refused with an explanation",
);
const STOP_LIMIT_MS = 8_000;
const POLL_MS = 20;

/**
 * "busy": it is loading its data or running a script; "foreign": it keeps other files than ours or belongs to another user.
 */
export type Verdict = "absent" | "busy" | "ready" | "foreign";

export interface EmbeddedProgram {
  /** For messages. */
  readonly title: string;
  /** Below `DATA_DIR`. */
  readonly folder: string;
  readonly socket: string;
  /** Names under which the kernel knows it. */
  readonly names: readonly string[];
  /** Where it is not installed. */
  readonly missing: string;
  /** Of the folder. */
  readonly logName: string;
  /** A server that holds the lock but is not listening may be about to listen, or about to exit: for so long it is waited for. */
  readonly unreachableAfterMs: number;
  /** Identifies the server at an address, and whether it keeps its files in our folder. */
  readonly probe: (address: string, folder: FolderIdentity) => Promise<Verdict>;
  /** @param lock a descriptor that the server keeps open as long as it is running */
  readonly launch: (served: Served, lock: number) => Promise<ChildProcess> | ChildProcess;
}

/** A program's folder in use. */
export interface Served {
  readonly program: EmbeddedProgram;
  readonly folder: string;
  readonly identity: FolderIdentity;
  readonly log: Log;
}

/** @throws {StoreUnreachable} if the folder is not ours */
export async function openFolder(
  program: EmbeddedProgram,
  dataDir: string,
  log: Log,
): Promise<Served> {
  const folder = await prepareDataFolder(dataDir, program.folder, program.title);
  const identity = await identityOf(folder);
  if (identity === null) throw new StoreUnreachable(`The folder ${folder} is gone.`);
  return { program, folder, identity, log };
}

const startLock = ({ folder }: Served) => join(folder, "start.lock");

/**
 * Joins the running server, or starts one.
 * @param whileLocked nobody else starts or stops it meanwhile
 * @returns its address, and the server if this call has started it
 * @throws {StoreUnreachable} if the program is not installed or does not start, or if its folder is not ours
 */
export async function ensureRunning(
  served: Served,
  whileLocked: () => void = () => {},
): Promise<{ readonly address: string; readonly child: ChildProcess | null }> {
  const { folder, program } = served;
  await expectUnmoved(served);
  const starting = await waitForLock(startLock(served), START_LIMIT_MS);
  if (starting === null) {
    throw new StoreUnreachable(
      `Another process has been starting the ${program.title} of ${folder} for a minute.`,
    );
  }
  try {
    const address = await reachableAddress(folder, program.socket, program.title);
    const child = await bringUp(served, address);
    whileLocked();
    return { address, child };
  } finally {
    starting.release();
  }
}

/** Keeps others from starting a server. @returns null if one is being started for longer than `limitMs` */
export function lockStarts(served: Served, limitMs: number): Promise<FileLock | null> {
  return waitForLock(startLock(served), limitMs);
}

export async function isUnmoved({ folder, identity }: Served): Promise<boolean> {
  return isSame(await identityOf(folder), identity);
}

/** A process that still uses a folder that was moved must not start an empty store in its old place. */
async function expectUnmoved(served: Served): Promise<void> {
  if (await isUnmoved(served)) return;
  const { folder } = served;
  throw new StoreUnreachable(
    `The folder ${folder} was moved or replaced while it was in use. Stop this process and start it with the new path of the folder.`,
  );
}

/** Joins the running server, or starts one if there is none: one that was about to end is replaced. */
async function bringUp(served: Served, address: string): Promise<ChildProcess | null> {
  const { program, identity } = served;
  let child: ChildProcess | null = null;
  let deadline = performance.now() + START_LIMIT_MS;
  for (;;) {
    const verdict = await program.probe(address, identity);
    if (verdict === "ready") return child;
    if (verdict === "foreign") throw foreign(program, address);
    if (verdict === "absent" && child === null) {
      const lock = await takeFolder(served, address);
      if (lock !== null) child = await launch(served, lock);
      deadline = performance.now() + START_LIMIT_MS;
    }
    await expectStarting(served, child, deadline);
    await Bun.sleep(POLL_MS);
  }
}

async function launch(served: Served, lock: FileLock): Promise<ChildProcess> {
  try {
    return await served.program.launch(served, lock.fd);
  } finally {
    lock.release();
  }
}

/**
 * Waits until no server is running on the folder, and stops one that cannot be reached.
 * @returns null if one can be reached after all
 */
async function takeFolder(served: Served, address: string): Promise<FileLock | null> {
  const { program, identity, log } = served;
  const from = performance.now();
  let isEnding = false;
  for (;;) {
    const lock = await lockUnserved(served);
    if (lock !== null) return lock;
    if ((await program.probe(address, identity)) !== "absent") return null;
    const waitedMs = performance.now() - from;
    if (waitedMs > START_LIMIT_MS) throw await stillLives(served);
    if (waitedMs > program.unreachableAfterMs && !isEnding) {
      log.error(`the embedded ${program.title} is running but its socket is gone; restarting it`);
      await signalServers(served);
      isEnding = true;
    }
    await Bun.sleep(POLL_MS);
  }
}

/** @returns null if a server is running on the folder, whether it holds the lock or was started without one */
async function lockUnserved({ folder, identity, program }: Served): Promise<FileLock | null> {
  const lock = tryLock(folder, "r");
  if (lock === null) return null;
  if ((await serversOf(program, identity)).length === 0) return lock;
  lock.release();
  return null;
}

async function stillLives({ folder, identity, program }: Served): Promise<StoreUnreachable> {
  const pids = await serversOf(program, identity);
  const who =
    pids.length > 0 ? `process ${pids.join(", ")}` : "in another container or of another user";
  return new StoreUnreachable(
    `A ${program.title} server (${who}) is using ${folder}, cannot be reached and does not exit. ` +
      "A second one would corrupt its files: stop it, then start again.",
  );
}

async function signalServers({ identity, program }: Served): Promise<void> {
  for (const pid of await serversOf(program, identity)) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // It has exited in the meantime.
    }
  }
}

/** Stops every server of the folder. */
export async function endServers(served: Served): Promise<void> {
  await signalServers(served);
  const deadline = performance.now() + STOP_LIMIT_MS;
  const isRunning = async () => (await serversOf(served.program, served.identity)).length > 0;
  while ((await isRunning()) && performance.now() < deadline) await Bun.sleep(POLL_MS);
}

/** @param child null = it is another process's */
async function expectStarting(
  { folder, program }: Served,
  child: ChildProcess | null,
  deadline: number,
): Promise<void> {
  if (child && child.pid === undefined) throw new StoreUnreachable(program.missing);
  const hasEnded = child !== null && (child.exitCode !== null || child.signalCode !== null);
  if (hasEnded || performance.now() > deadline) {
    const words = await lastWords(folder, program.logName);
    throw new StoreUnreachable(`The embedded ${program.title} did not start: ${words}`);
  }
}

/** The last lines of the server's log. */
async function lastWords(folder: string, logName: string): Promise<string> {
  const log = await readFile(join(folder, logName), "utf8").catch(() => "");
  return log.slice(-1_000);
}

export function foreign({ title }: EmbeddedProgram, address: string): StoreUnreachable {
  return new StoreUnreachable(
    `What answers at ${address} is not the ${title} of that folder: it is another user's or keeps its files elsewhere. Stop it, then start again.`,
  );
}

/**
 * Processes that serve this folder, found by their program and working directory, not by a pid file: that may be missing,
 * or name an old process whose number has been reused. Processes of other users and containers are not visible.
 */
export async function serversOf(
  { names }: Pick<EmbeddedProgram, "names">,
  folder: FolderIdentity,
): Promise<number[]> {
  const found = process.platform === "linux" ? await fromProc(names) : await fromOpenFiles(names);
  const folders = await Promise.all(found.map(({ cwd }) => identityOf(cwd)));
  return found.filter((_, at) => isSame(folders[at] ?? null, folder)).map(({ pid }) => pid);
}

interface Candidate {
  readonly pid: number;
  /** Path of its working directory. */
  readonly cwd: string;
}

async function fromProc(names: readonly string[]): Promise<Candidate[]> {
  const found: Candidate[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const program = await readFile(`/proc/${name}/comm`, "utf8").catch(() => "");
    if (names.includes(program.trim())) {
      found.push({ pid: Number(name), cwd: `/proc/${name}/cwd` });
    }
  }
  return found;
}

/** For systems without /proc, such as macOS. `lsof` exits with status 1 if it finds nothing. */
async function fromOpenFiles(names: readonly string[]): Promise<Candidate[]> {
  const args = ["-a", "-d", "cwd", ...names.flatMap((name) => ["-c", name]), "-Fpn"];
  const { stdout } = await promisify(execFile)("lsof", args).catch(() => ({ stdout: "" }));
  return [...stdout.matchAll(/^p(\d+)\n(?:f.*\n)?n(.*)$/gm)].map(([, pid, cwd = ""]) => ({
    pid: Number(pid),
    cwd,
  }));
}

/**
 * The embedded Redis: a private `redis-server` child with append-only persistence under `DATA_DIR`.
 *
 * It listens only on a Unix socket and is restarted when it dies. A process that finds one running on the same folder joins
 * it; if the process that started it was killed, the joining one takes it over and stops it on exit.
 *
 * Two servers on one append-only file would corrupt it. A server holds the lock of its folder while it is running, through
 * a descriptor that it inherits, and nobody starts one without that lock. One that is running but unreachable is stopped first.
 */
import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
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
import {
  cutTornEnd,
  holdConnection,
  lastWords,
  launchServer,
  probe,
  serversOf,
} from "./embedded-server.ts";

/** Also limits the wait for another process to start it, and for an unreachable server to exit. */
const START_LIMIT_MS = limit(
  60_000,
  "wait for another process to start the embedded Redis, or for an unreachable server to exit",
  "the start is refused with an explanation",
);
const STOP_LIMIT_MS = 8_000;
/** On exit we wait for another start, but not for long: our exit has a limit too. */
const STOP_WAITS_FOR_START_MS = 1_000;
/** A server that holds the lock but is not listening may be about to listen, or about to exit. */
const UNREACHABLE_AFTER_MS = 1_000;
const POLL_MS = 20;
/** A server that was killed is back within a second. */
const WATCH_EVERY_MS = 500;
/** The same for a server that keeps its connection open. */
const PROBE_EVERY_MS = 10_000;

export interface EmbeddedRedis {
  /** Path of the Unix socket. */
  readonly address: string;
  readonly stop: () => Promise<void>;
}

interface Served {
  readonly folder: string;
  readonly identity: FolderIdentity;
  readonly log: Log;
}

/** @throws {StoreUnreachable} if `redis-server` is not installed or does not start, or if its folder is not ours */
export async function startEmbeddedRedis(dataDir: string, log: Log): Promise<EmbeddedRedis> {
  const folder = await prepareDataFolder(dataDir);
  const identity = await identityOf(folder);
  if (identity === null) throw new StoreUnreachable(`The folder ${folder} is gone.`);
  const served: Served = { folder, identity, log };
  const startLock = join(folder, "start.lock");
  /** Whoever holds it stops the server on exit. */
  let ownership: FileLock | null = null;

  async function ensureRunning(): Promise<string> {
    await expectUnmoved(served);
    const starting = await waitForLock(startLock, START_LIMIT_MS);
    if (starting === null) {
      throw new StoreUnreachable(
        `Another process has been starting the Redis of ${folder} for a minute.`,
      );
    }
    try {
      const address = await reachableAddress(folder);
      await bringUp(served, address);
      takeOwnership();
      return address;
    } finally {
      starting.release();
    }
  }

  function takeOwnership(): void {
    ownership ??= tryLock(join(folder, "owner.lock"), "a");
  }

  const address = await ensureRunning();
  const endWatch = watch(served, address, ensureRunning);

  async function end(): Promise<void> {
    await endWatch();
    const isThere = isSame(await identityOf(folder), identity);
    const starting = isThere ? await waitForLock(startLock, STOP_WAITS_FOR_START_MS) : null;
    if (isThere) takeOwnership();
    if (ownership !== null) await endServers(served);
    ownership?.release();
    starting?.release();
  }

  let ending: Promise<void> | null = null;
  return {
    address,
    stop() {
      ending ??= end();
      return ending;
    },
  };
}

/** Whether a process uses the embedded Redis of a folder. Nothing is started or written. */
export async function isEmbeddedRunning(dataDir: string): Promise<boolean> {
  const folder = await realpath(join(dataDir, "redis")).catch(() => null);
  const identity = folder && (await identityOf(folder));
  if (!folder || !identity) return false;
  return ["ready", "busy"].includes(await probe(await reachableAddress(folder), identity));
}

/** @returns a function that stops it */
function watch(
  served: Served,
  address: string,
  ensureRunning: () => Promise<unknown>,
): () => Promise<void> {
  const { identity, log } = served;
  let looking: Promise<void> | null = null;
  let lastReason = "";
  let held = holdConnection(address);
  let probedAtMs = 0;

  /** A server whose connection is open is alive: whether it is still ours is asked less often. */
  const isKnown = () =>
    held.isOpen() && existsSync(address) && performance.now() < probedAtMs + PROBE_EVERY_MS;

  async function look(): Promise<void> {
    const verdict = await probe(address, identity);
    if (verdict === "foreign") throw foreign(address);
    if (verdict === "absent") {
      if (lastReason === "") log.error("the embedded Redis has exited; restarting it");
      await ensureRunning();
    }
    lastReason = "";
    probedAtMs = performance.now();
    if (held.isOpen()) return;
    held.close();
    held = holdConnection(address);
  }

  const timer = setInterval(() => {
    if (isKnown()) return;
    looking ??= look()
      .catch(({ message }: Error) => {
        if (message !== lastReason)
          log.error({ reason: message }, "the embedded Redis cannot be restarted");
        lastReason = message;
      })
      .finally(() => {
        looking = null;
      });
  }, WATCH_EVERY_MS);
  return async () => {
    clearInterval(timer);
    await looking;
    held.close();
  };
}

/** A process that still uses a folder that was moved must not start an empty store in its old place. */
async function expectUnmoved({ folder, identity }: Served): Promise<void> {
  if (isSame(await identityOf(folder), identity)) return;
  throw new StoreUnreachable(
    `The folder ${folder} was moved or replaced while it was in use. Stop this process and start it with the new path of the folder.`,
  );
}

/** Joins the running server, or starts one if there is none: one that was about to end is replaced. */
async function bringUp(served: Served, address: string): Promise<void> {
  let child: ChildProcess | null = null;
  let deadline = performance.now() + START_LIMIT_MS;
  for (;;) {
    const verdict = await probe(address, served.identity);
    if (verdict === "ready") return;
    if (verdict === "foreign") throw foreign(address);
    if (verdict === "absent" && child === null) {
      const lock = await takeFolder(served, address);
      if (lock !== null) child = await launch(served, lock);
      deadline = performance.now() + START_LIMIT_MS;
    }
    await expectStarting(served, child, deadline);
    await Bun.sleep(POLL_MS);
  }
}

async function launch({ folder, log }: Served, lock: FileLock): Promise<ChildProcess> {
  try {
    const { cut, reason } = await cutTornEnd(folder, lock.fd);
    if (cut !== "") log.warn({ cut }, "removed an unfinished write from the append-only file");
    if (reason !== "") log.warn({ reason }, "cannot examine the end of the append-only file");
    return launchServer(folder, lock.fd);
  } finally {
    lock.release();
  }
}

/**
 * Waits until no server is running on the folder, and stops one that cannot be reached.
 * @returns null if one can be reached after all
 */
async function takeFolder(served: Served, address: string): Promise<FileLock | null> {
  const from = performance.now();
  let isEnding = false;
  for (;;) {
    const lock = await lockUnserved(served);
    if (lock !== null) return lock;
    if ((await probe(address, served.identity)) !== "absent") return null;
    const waitedMs = performance.now() - from;
    if (waitedMs > START_LIMIT_MS) throw await stillLives(served);
    if (waitedMs > UNREACHABLE_AFTER_MS && !isEnding) {
      served.log.error("the embedded Redis is running but its socket is gone; restarting it");
      await signalServers(served);
      isEnding = true;
    }
    await Bun.sleep(POLL_MS);
  }
}

/** @returns null if a server is running on the folder, whether it holds the lock or was started without one */
async function lockUnserved({ folder, identity }: Served): Promise<FileLock | null> {
  const lock = tryLock(folder, "r");
  if (lock === null) return null;
  if ((await serversOf(identity)).length === 0) return lock;
  lock.release();
  return null;
}

async function stillLives({ folder, identity }: Served): Promise<StoreUnreachable> {
  const pids = await serversOf(identity);
  const who =
    pids.length > 0 ? `process ${pids.join(", ")}` : "in another container or of another user";
  return new StoreUnreachable(
    `A Redis server (${who}) is using ${folder}, cannot be reached and does not exit. ` +
      "A second one would corrupt its files: stop it, then start again.",
  );
}

async function signalServers({ identity }: Served): Promise<void> {
  for (const pid of await serversOf(identity)) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // It has exited in the meantime.
    }
  }
}

async function endServers(served: Served): Promise<void> {
  await signalServers(served);
  const deadline = performance.now() + STOP_LIMIT_MS;
  while ((await serversOf(served.identity)).length > 0 && performance.now() < deadline) {
    await Bun.sleep(POLL_MS);
  }
}

/** @param child null = it is another process's */
async function expectStarting(
  { folder }: Served,
  child: ChildProcess | null,
  deadline: number,
): Promise<void> {
  if (child && child.pid === undefined) {
    throw new StoreUnreachable("redis-server is not installed.");
  }
  const hasEnded = child !== null && (child.exitCode !== null || child.signalCode !== null);
  if (hasEnded || performance.now() > deadline) {
    throw new StoreUnreachable(`redis-server did not start: ${await lastWords(folder)}`);
  }
}

function foreign(address: string): StoreUnreachable {
  return new StoreUnreachable(
    `What answers at ${address} is not the Redis of that folder: it is another user's or keeps its files elsewhere. Stop it, then start again.`,
  );
}

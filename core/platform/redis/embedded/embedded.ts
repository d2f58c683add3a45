/**
 * The embedded Redis: a private `redis-server` child with append-only persistence under `DATA_DIR`.
 *
 * It listens only on a Unix socket and is restarted when it dies. A process that finds one running on the same folder joins
 * it; if the process that started it was killed, the joining one takes it over and stops it on exit. Two servers on one
 * append-only file would corrupt it (`embedded-program.ts` says what prevents that).
 */
import { existsSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { identityOf, reachableAddress } from "#core/platform/embedded/embedded-folder.ts";
import {
  endServers,
  ensureRunning,
  foreign,
  isUnmoved,
  lockStarts,
  openFolder,
  type Served,
} from "#core/platform/embedded/embedded-program.ts";
import { type FileLock, tryLock } from "#core/platform/process/file-lock.ts";
import type { Log } from "#core/platform/process/log.ts";
import { holdConnection, probe, REDIS_PROGRAM } from "./embedded-server.ts";

/** On exit we wait for another start, but not for long: our exit has a limit too. */
const STOP_WAITS_FOR_START_MS = 1_000;
/** A server that was killed is back within a second. */
const WATCH_EVERY_MS = 500;
/** The same for a server that keeps its connection open. */
const PROBE_EVERY_MS = 10_000;

export interface EmbeddedRedis {
  /** Path of the Unix socket. */
  readonly address: string;
  readonly stop: () => Promise<void>;
}

/** @throws {StoreUnreachable} if `redis-server` is not installed or does not start, or if its folder is not ours */
export async function startEmbeddedRedis(dataDir: string, log: Log): Promise<EmbeddedRedis> {
  const served = await openFolder(REDIS_PROGRAM, dataDir, log);
  /** Whoever holds it stops the server on exit. */
  let ownership: FileLock | null = null;

  function takeOwnership(): void {
    ownership ??= tryLock(join(served.folder, "owner.lock"), "a");
  }

  const { address } = await ensureRunning(served, takeOwnership);
  const endWatch = watch(served, address, () => ensureRunning(served, takeOwnership));

  async function end(): Promise<void> {
    await endWatch();
    const isThere = await isUnmoved(served);
    const starting = isThere ? await lockStarts(served, STOP_WAITS_FOR_START_MS) : null;
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
  const { folder: name, socket, title } = REDIS_PROGRAM;
  const folder = await realpath(join(dataDir, name)).catch(() => null);
  const identity = folder && (await identityOf(folder));
  if (!folder || !identity) return false;
  const address = await reachableAddress(folder, socket, title);
  return ["ready", "busy"].includes(await probe(address, identity));
}

/** @returns a function that stops it */
function watch(
  { identity, log }: Served,
  address: string,
  restart: () => Promise<unknown>,
): () => Promise<void> {
  let looking: Promise<void> | null = null;
  let lastReason = "";
  let held = holdConnection(address);
  let probedAtMs = 0;

  /** A server whose connection is open is alive: whether it is still ours is asked less often. */
  const isKnown = () =>
    held.isOpen() && existsSync(address) && performance.now() < probedAtMs + PROBE_EVERY_MS;

  async function look(): Promise<void> {
    const verdict = await probe(address, identity);
    if (verdict === "foreign") throw foreign(REDIS_PROGRAM, address);
    if (verdict === "absent") {
      if (lastReason === "") log.error("the embedded Redis has exited; restarting it");
      await restart();
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

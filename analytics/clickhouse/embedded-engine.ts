/**
 * The embedded ClickHouse: a child process (`analytics/engine/main.ts`) over `DATA_DIR/clickhouse`, started by the first connection to
 * it. It may end at any time, since it sleeps when nobody asks: the next connection starts it again. So a crash needs no watch, and
 * several processes share the one engine of a folder. It ends with the process that has started it; the others start another.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { ADDRESS_BYTES, OVERTIME_MS, SLEEP_AFTER_MS } from "#analytics/engine/engine-limits.ts";
import { SOCKET_NAME } from "#analytics/engine/socket-name.ts";
import { type FolderIdentity, isOurSocket } from "#core/platform/embedded/embedded-folder.ts";
import {
  type EmbeddedProgram,
  ensureRunning,
  openFolder,
  type Served,
  type Verdict,
} from "#core/platform/embedded/embedded-program.ts";
import { createLog, type Log } from "#core/platform/process/log.ts";
import { StoreUnreachable } from "#core/platform/redis/client.ts";

export const ENGINE_FOLDER = "clickhouse";
/** Names of Bun's program, whichever way it was installed. */
export const ENGINE_NAMES: readonly string[] = ["bun", "bun.exe", basename(process.execPath)];
const SCRIPT = join(import.meta.dir, "..", "engine", "main.ts");
const LOG_NAME = "engine.log";
/** An engine may end between its start and the first statement: it is killed, or a busy machine lets it sleep too soon. */
const START_TRIES = 3;
const NOBODY_LISTENS: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOENT"]);
const PING_LIMIT_MS = 1_000;
/** An engine that cannot be started is not tried more often. */
const RETRY_MS = 1_000;
/** Longer than the engine waits for its statements when it ends. */
const STOP_LIMIT_MS = 8_000;
/**
 * The whole environment: the engine is given no secret of ours. A thread for each statement that runs, and some for the rest: by itself
 * Bun has as many as there are cores.
 */
const ENVIRONMENT = { UV_THREADPOOL_SIZE: "32", MIMALLOC_PURGE_DELAY: "60000" };

export interface EngineTimes {
  readonly sleepAfterMs: number;
  readonly overtimeMs: number;
}

const TIMES: EngineTimes = { sleepAfterMs: SLEEP_AFTER_MS, overtimeMs: OVERTIME_MS };

async function probe(address: string, folder: FolderIdentity): Promise<Verdict> {
  if (!(await isOurSocket(address))) return "foreign";
  try {
    const signal = AbortSignal.timeout(PING_LIMIT_MS);
    const headers = { connection: "close" };
    const answer = await fetch("http://engine/ping", { unix: address, signal, headers });
    return (await answer.text()) === JSON.stringify(folder) ? "ready" : "foreign";
  } catch (error) {
    return (error as Error).name === "TimeoutError" ? "busy" : "absent";
  }
}

function launch({ folder }: Served, lock: number, times: EngineTimes): ChildProcess {
  if (!existsSync(SCRIPT) || !isInstalled()) {
    throw new StoreUnreachable(
      "no image and no binary contains the embedded ClickHouse: set CLICKHOUSE_URL",
    );
  }
  const log = openSync(join(folder, LOG_NAME), "w", 0o600);
  try {
    const options = [`--max-http-header-size=${ADDRESS_BYTES}`];
    const args = [folder, String(times.sleepAfterMs), String(times.overtimeMs)];
    const child = spawn(process.execPath, [...options, SCRIPT, ...args], {
      cwd: folder,
      // Ctrl-C reaches only us, and we stop it last.
      detached: true,
      env: ENVIRONMENT,
      stdio: ["pipe", log, log, lock],
    });
    child.on("error", () => {
      // `exitCode` stays null if the program does not exist; callers check `pid`.
    });
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

function isInstalled(): boolean {
  try {
    return import.meta.resolve("chdb") !== "";
  } catch {
    return false;
  }
}

/** The engine of a folder, as one process uses it. */
interface Engine {
  /** Where it was last; null before its first start. */
  readonly address: () => string | null;
  /** @returns where it listens; starts it if nobody does @throws {StoreUnreachable} */
  readonly start: () => Promise<string>;
  /** Why the latest start failed; null = it did not. */
  readonly fault: () => string | null;
  /** Ends it if this process has started it. */
  readonly stop: () => Promise<void>;
}

function engineOf(dataDir: string, log: Log, times: EngineTimes): Engine {
  const program: EmbeddedProgram = {
    title: "ClickHouse",
    folder: ENGINE_FOLDER,
    socket: SOCKET_NAME,
    names: ENGINE_NAMES,
    missing: "Bun is not where it was.",
    logName: LOG_NAME,
    unreachableAfterMs: STOP_LIMIT_MS,
    probe,
    launch: (served, lock) => launch(served, lock, times),
  };
  let served: Served | null = null;
  let address: string | null = null;
  let child: ChildProcess | null = null;
  let starting: Promise<void> | null = null;
  let fault: string | null = null;

  async function start(): Promise<void> {
    served ??= await openFolder(program, dataDir, log);
    const running = await ensureRunning(served);
    address = running.address;
    if (running.child === null) return;
    child = running.child;
    child.on("exit", (status, signal) => {
      if (status !== 0) log.error({ status, signal }, "the embedded ClickHouse has exited");
    });
  }

  function startOnce(): Promise<void> {
    starting ??= start().then(
      () => {
        fault = null;
        starting = null;
      },
      (error: Error) => {
        fault = error.message;
        setTimeout(() => {
          starting = null;
        }, RETRY_MS).unref();
        throw error;
      },
    );
    return starting;
  }

  return {
    address: () => address,
    async start() {
      await startOnce();
      return address ?? "";
    },
    fault: () => fault,
    async stop() {
      await starting?.catch(() => {});
      if (child !== null) await end(child);
    },
  };
}

/**
 * Each statement has a connection of its own, which takes as long as one that is kept (0.05 ms): only one that nobody accepted has
 * certainly not arrived, and is sent again.
 */
async function ask(engine: Engine, path: string, init: RequestInit): Promise<Response> {
  const to = (unix: string) =>
    fetch(`http://engine${path}`, Object.assign({ unix, keepalive: false }, init));
  for (let tries = START_TRIES; ; tries -= 1) {
    try {
      return await to(engine.address() ?? (await engine.start()));
    } catch (error) {
      const neverArrived = NOBODY_LISTENS.has(String((error as { code?: unknown }).code));
      if (!neverArrived || tries === 0) throw error;
      await engine.start();
    }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((done) => child.once("exit", done));
  child.kill("SIGTERM");
  const deadline = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
  await exited;
  clearTimeout(deadline);
}

/** Of this process, by folder, with the number of clients that may ask. */
const engines = new Map<string, { readonly engine: Engine; users: number }>();

export interface EngineUse {
  /** Asks the engine, which is started if nobody listens. @throws if it ends meanwhile */
  readonly fetch: (path: string, init: RequestInit) => Promise<Response>;
  readonly fault: () => string | null;
  /** The last one of this process ends the engine that it has started. */
  readonly release: () => Promise<void>;
}

/** @param times for tests; they count where this process starts the engine */
export function useEngine(dataDir: string, times = TIMES): EngineUse {
  const key = resolve(dataDir);
  const known = engines.get(key) ?? {
    engine: engineOf(dataDir, createLog("warn"), times),
    users: 0,
  };
  engines.set(key, known);
  known.users += 1;
  const { engine } = known;
  let isReleased = false;
  return {
    fetch: (path, init) => ask(engine, path, init),
    fault: engine.fault,
    async release() {
      if (isReleased) return;
      isReleased = true;
      known.users -= 1;
      if (known.users > 0) return;
      engines.delete(key);
      await engine.stop();
    },
  };
}

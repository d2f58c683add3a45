/**
 * The embedded Redis: a private `redis-server` child with append-only persistence under `DATA_DIR`.
 *
 * It listens on a Unix socket only, and is started again when it dies. A process that finds one alive for the same folder joins it; where the process that
 * started it was killed, the one that joins takes it over and stops it at its own end.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log } from "#core/log.ts";

const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 8_000;
const POLL_MS = 20;
/** A server that was killed is back within a second. */
const WATCH_EVERY_MS = 500;
const LOG_NAME = "redis.log";
/**
 * When the append-only file is written anew: with the defaults (at twice its size, from 64 MB on) that took a sixth of the
 * machine at high rates. Values are packed already, so they are not compressed once more. The price is a longer file to
 * read at the start: `docs/operations.md`, "The append-only file".
 */
const REWRITE = {
  "auto-aof-rewrite-percentage": "300",
  "auto-aof-rewrite-min-size": "512mb",
  rdbcompression: "no",
};

export interface EmbeddedRedis {
  /** Path of the Unix socket. */
  readonly address: string;
  readonly stop: () => Promise<void>;
}

/** @throws when there is no `redis-server` on the path or it does not start. */
export async function startEmbeddedRedis(dataDir: string, log: Log): Promise<EmbeddedRedis> {
  const folder = join(dataDir, "redis");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const address = await socketPath(folder);
  const ownerFile = join(folder, "owner.pid");
  const pidFile = join(folder, "redis.pid");
  let isOwner = false;
  let watching: Promise<void> | null = null;

  /** Joins the server that runs, takes it over where its owner is gone, or starts it. */
  async function ensureRunning(): Promise<void> {
    const release = await takeLock(join(folder, "start.lock"));
    try {
      if ((await probe(address)) !== "absent") {
        await waitUntilReady(address, folder, null);
        const owner = await readPid(ownerFile);
        if (owner !== null && owner !== process.pid && isAlive(owner)) return;
      } else {
        await waitUntilReady(address, folder, launch(folder, address, pidFile));
      }
      await writeFile(ownerFile, String(process.pid));
      isOwner = true;
    } finally {
      await release();
    }
  }

  async function watch(): Promise<void> {
    if ((await probe(address)) !== "absent") return;
    log.error("the embedded Redis is gone and is started again");
    await ensureRunning();
  }

  await ensureRunning();
  const timer = setInterval(() => {
    watching ??= watch()
      .catch((error: Error) =>
        log.error({ reason: error.message }, "the embedded Redis stays away"),
      )
      .finally(() => {
        watching = null;
      });
  }, WATCH_EVERY_MS);
  return {
    address,
    async stop() {
      clearInterval(timer);
      await watching;
      const pid = isOwner ? await readPid(pidFile) : null;
      if (pid === null || !isAlive(pid)) return;
      process.kill(pid, "SIGTERM");
      const deadline = Date.now() + STOP_LIMIT_MS;
      while (isAlive(pid) && Date.now() < deadline) await Bun.sleep(POLL_MS);
    },
  };
}

/** Two servers on one append-only file would ruin it: only one process at a time looks and starts. */
async function takeLock(path: string): Promise<() => Promise<void>> {
  for (;;) {
    try {
      await writeFile(path, String(process.pid), { flag: "wx" });
      return () => rm(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const holder = await readPid(path);
    if (holder === null || !isAlive(holder)) await rm(path, { force: true });
    await Bun.sleep(POLL_MS);
  }
}

/** Socket paths are limited to some 100 bytes, folders are not: the socket's place is named after the folder. */
async function socketPath(folder: string): Promise<string> {
  const name = createHash("sha256")
    .update(await realpath(folder))
    .digest("hex")
    .slice(0, 16);
  const place = join(tmpdir(), `waybill-${name}`);
  await mkdir(place, { recursive: true, mode: 0o700 });
  return join(place, "redis.sock");
}

/** Starts the server in a session of its own, so that Ctrl-C reaches only us and we stop it last. */
function launch(folder: string, address: string, pidFile: string): ChildProcess {
  const options: Record<string, string> = {
    port: "0",
    unixsocket: address,
    unixsocketperm: "700",
    dir: folder,
    pidfile: pidFile,
    logfile: join(folder, LOG_NAME),
    appendonly: "yes",
    appendfsync: "always",
    "maxmemory-policy": "noeviction",
    save: "",
    ...REWRITE,
    loglevel: "warning",
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn("redis-server", args, { detached: true, stdio: "ignore" });
  child.on("error", () => {
    // `exitCode` stays null for a program that is not there; `waitUntilReady` looks at `pid`.
  });
  child.unref();
  return child;
}

async function waitUntilReady(
  address: string,
  folder: string,
  child: ChildProcess | null,
): Promise<void> {
  const deadline = Date.now() + START_LIMIT_MS;
  while ((await probe(address)) !== "ready") {
    if (child && child.pid === undefined) throw new Error("redis-server is not installed");
    if ((child && child.exitCode !== null) || Date.now() > deadline) {
      const log = await readFile(join(folder, LOG_NAME), "utf8").catch(() => "");
      throw new Error(`redis-server did not start: ${log.slice(-1_000)}`);
    }
    await Bun.sleep(POLL_MS);
  }
}

/** "ready" answers PING; "busy" is there and loads its data. */
function probe(address: string): Promise<"absent" | "busy" | "ready"> {
  return new Promise((resolve) => {
    const socket = createConnection(address);
    const finish = (verdict: "absent" | "busy" | "ready") => {
      socket.destroy();
      resolve(verdict);
    };
    let connected = false;
    socket.setTimeout(1_000, () => finish(connected ? "busy" : "absent"));
    socket.on("error", () => finish(connected ? "busy" : "absent"));
    socket.on("connect", () => {
      connected = true;
      socket.write("PING\r\n");
    });
    socket.on("data", (chunk) => finish(chunk.toString().startsWith("+PONG") ? "ready" : "busy"));
  });
}

async function readPid(file: string): Promise<number | null> {
  const text = await readFile(file, "utf8").catch(() => "");
  const pid = Number.parseInt(text, 10);
  return Number.isInteger(pid) && pid > 0 ? pid : null;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

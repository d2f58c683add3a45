/** The `redis-server` of a folder: what answers on its socket, and how to start one. */
import { type ChildProcess, spawn } from "node:child_process";
import { createConnection } from "node:net";
import {
  type FolderIdentity,
  identityOf,
  isOurSocket,
  isSame,
} from "#core/platform/embedded/embedded-folder.ts";
import type { EmbeddedProgram, Served, Verdict } from "#core/platform/embedded/embedded-program.ts";
import { DURABLE_SETTINGS } from "#core/platform/redis/embedded/durable-settings.ts";
import cutTornEndSource from "./cut-torn-end.sh" with { type: "text" };

const ANSWER_LIMIT_MS = 1_000;
const LOG_NAME = "redis.log";
const SOCKET_NAME = "redis.sock";
/**
 * When the append-only file is rewritten: with the defaults (at twice its size, from 64 MB on) rewrites took a sixth of the
 * machine at high rates. Values are packed already, so they are not compressed again. The price is a longer file to read at
 * startup: `docs/operations/redis.md`, "The append-only file".
 */
const REWRITE = {
  "auto-aof-rewrite-percentage": "300",
  "auto-aof-rewrite-min-size": "512mb",
  rdbcompression: "no",
};

export const REDIS_PROGRAM: EmbeddedProgram = {
  title: "Redis",
  folder: "redis",
  socket: SOCKET_NAME,
  // Debian's Valkey installs a link with the old name.
  names: ["redis-server", "valkey-server"],
  missing: "redis-server is not installed.",
  logName: LOG_NAME,
  unreachableAfterMs: 1_000,
  probe,
  launch,
};

async function launch({ folder, log }: Served, lock: number): Promise<ChildProcess> {
  const { cut, reason } = await cutTornEnd(folder, lock);
  if (cut !== "") log.warn({ cut }, "removed an unfinished write from the append-only file");
  if (reason !== "") log.warn({ reason }, "cannot examine the end of the append-only file");
  return launchServer(folder, lock);
}

/**
 * Starts the server in a session of its own, so that Ctrl-C reaches only us and we stop it last.
 *
 * File names are relative to the folder, so that they stay valid if it is moved and a long path does not matter.
 * @param lock a descriptor that the server keeps open as long as it is running
 */
function launchServer(folder: string, lock: number): ChildProcess {
  const options: Record<string, string> = {
    port: "0",
    unixsocket: SOCKET_NAME,
    unixsocketperm: "700",
    dir: folder,
    pidfile: "redis.pid",
    logfile: LOG_NAME,
    ...DURABLE_SETTINGS,
    save: "",
    ...REWRITE,
    loglevel: "warning",
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const stdio = ["ignore", "ignore", "ignore", lock] as const;
  const child = spawn("redis-server", args, { cwd: folder, detached: true, stdio: [...stdio] });
  child.on("error", () => {
    // `exitCode` stays null if the program does not exist; callers check `pid`.
  });
  child.unref();
  return child;
}

/**
 * Removes the write that a crash has cut short from the end of the append-only file.
 * @param lock a descriptor that keeps servers away, also from what this process leaves running if it is killed
 * @returns what was removed, and why the file was left as it is; "" for nothing
 */
async function cutTornEnd(folder: string, lock: number) {
  const child = Bun.spawn(["/bin/sh", "-c", cutTornEndSource, "cut-torn-end", folder], {
    stdio: ["ignore", "pipe", "pipe", lock],
  });
  const [cut, reason] = await Promise.all([
    Bun.readableStreamToText(child.stdout),
    Bun.readableStreamToText(child.stderr),
  ]);
  return { cut, reason };
}

/** Identifies the server at an address, and whether it keeps its files in our folder. */
export async function probe(address: string, folder: FolderIdentity): Promise<Verdict> {
  if (!(await isOurSocket(address))) return "foreign";
  const answer = await ask(address, ["PING", "CONFIG GET dir"]);
  if (answer === null) return "absent";
  const [pong = "", ...rest] = answer.split("\r\n");
  if (rest.length === 0 || /^-(BUSY|LOADING)/.test(rest[0] ?? "")) return "busy";
  const cwd = rest[0]?.startsWith("*2") ? (rest[4] ?? "") : "";
  if (!isSame(await identityOf(cwd), folder)) return "foreign";
  return pong === "+PONG" ? "ready" : "busy";
}

/** An open connection that asks nothing: it closes when the server ends. */
export interface HeldConnection {
  readonly isOpen: () => boolean;
  readonly close: () => void;
}

export function holdConnection(address: string): HeldConnection {
  const socket = createConnection(address);
  let isOpen = false;
  const ended = () => {
    isOpen = false;
    socket.destroy();
  };
  socket.on("connect", () => {
    isOpen = true;
  });
  for (const event of ["error", "end", "close"]) socket.on(event, ended);
  return { isOpen: () => isOpen, close: ended };
}

/** @returns what was received in time, "" for nothing; null if nobody is listening */
function ask(address: string, commands: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createConnection(address);
    let connected = false;
    let answer = "";
    const finish = () => {
      socket.destroy();
      resolve(connected ? answer : null);
    };
    socket.setTimeout(ANSWER_LIMIT_MS, finish);
    socket.on("error", finish);
    socket.on("close", finish);
    socket.on("connect", () => {
      connected = true;
      socket.write(`${commands.join("\r\n")}\r\n`);
    });
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      answer += chunk;
      if (isWhole(answer)) finish();
    });
  });
}

/** One line for PING, then either an error or an array of two strings. */
function isWhole(answer: string): boolean {
  const lines = answer.split("\r\n");
  return lines.length > (lines[1]?.startsWith("*2") ? 6 : 2);
}

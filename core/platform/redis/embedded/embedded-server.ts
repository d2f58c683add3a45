/** The `redis-server` processes of a folder: which are running, what answers on their socket, and how to start one. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { DURABLE_SETTINGS } from "#core/platform/redis/durable-settings.ts";
import cutTornEndSource from "./cut-torn-end.sh" with { type: "text" };
import {
  type FolderIdentity,
  identityOf,
  isOurSocket,
  isSame,
  SOCKET_NAME,
} from "./embedded-folder.ts";

const ANSWER_LIMIT_MS = 1_000;
const LOG_NAME = "redis.log";
/** Names under which the kernel knows the program; Debian's Valkey installs a link with the old name. */
const PROGRAMS = ["redis-server", "valkey-server"];
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

/**
 * Starts the server in a session of its own, so that Ctrl-C reaches only us and we stop it last.
 *
 * File names are relative to the folder, so that they stay valid if it is moved and a long path does not matter.
 * @param lock a descriptor that the server keeps open as long as it is running
 */
export function launchServer(folder: string, lock: number): ChildProcess {
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
export async function cutTornEnd(folder: string, lock: number) {
  const child = Bun.spawn(["/bin/sh", "-c", cutTornEndSource, "cut-torn-end", folder], {
    stdio: ["ignore", "pipe", "pipe", lock],
  });
  const [cut, reason] = await Promise.all([
    Bun.readableStreamToText(child.stdout),
    Bun.readableStreamToText(child.stderr),
  ]);
  return { cut, reason };
}

/**
 * Processes that serve this folder, found by their program and working directory, not by a pid file: that may be missing,
 * or name an old process whose number has been reused. Processes of other users and containers are not visible.
 */
export async function serversOf(folder: FolderIdentity): Promise<number[]> {
  const found = process.platform === "linux" ? await fromProc() : await fromOpenFiles();
  const folders = await Promise.all(found.map(({ cwd }) => identityOf(cwd)));
  return found.filter((_, at) => isSame(folders[at] ?? null, folder)).map(({ pid }) => pid);
}

interface Candidate {
  readonly pid: number;
  /** Path of its working directory. */
  readonly cwd: string;
}

async function fromProc(): Promise<Candidate[]> {
  const found: Candidate[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const program = await readFile(`/proc/${name}/comm`, "utf8").catch(() => "");
    if (PROGRAMS.includes(program.trim())) {
      found.push({ pid: Number(name), cwd: `/proc/${name}/cwd` });
    }
  }
  return found;
}

/** For systems without /proc, such as macOS. `lsof` exits with status 1 if it finds nothing. */
async function fromOpenFiles(): Promise<Candidate[]> {
  const args = ["-a", "-d", "cwd", ...PROGRAMS.flatMap((name) => ["-c", name]), "-Fpn"];
  const { stdout } = await promisify(execFile)("lsof", args).catch(() => ({ stdout: "" }));
  return [...stdout.matchAll(/^p(\d+)\n(?:f.*\n)?n(.*)$/gm)].map(([, pid, cwd = ""]) => ({
    pid: Number(pid),
    cwd,
  }));
}

/**
 * "busy": it is loading its data or running a script; "foreign": it keeps other files than ours or belongs to another user.
 */
export type Verdict = "absent" | "busy" | "ready" | "foreign";

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

/** The last lines of the server's log. */
export async function lastWords(folder: string): Promise<string> {
  const log = await readFile(join(folder, LOG_NAME), "utf8").catch(() => "");
  return log.slice(-1_000);
}

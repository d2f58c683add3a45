/**
 * The embedded ClickHouse, a program that `analytics/clickhouse/embedded-engine.ts` starts: chDB behind HTTP on a Unix socket in its
 * folder, which only its user may enter. It ends when its standard input ends, which is when whoever started it has ended, after a while
 * without a statement, or together with a statement that does not keep its time.
 *
 * `main.ts FOLDER SLEEP_AFTER_MS OVERTIME_MS`, with the folder as working directory.
 */
import { dlopen } from "bun:ffi";
import { statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { Session } from "chdb";
import type { FolderIdentity } from "#core/platform/embedded/embedded-folder.ts";
import {
  BODY_BYTES,
  DRAIN_LIMIT_MS,
  SIDE_BY_SIDE,
  UNTIMED_LIMIT_SECONDS,
} from "./engine-limits.ts";
import {
  answerException,
  answerOf,
  exceptionOf,
  execute,
  readStatement,
  type Statement,
} from "./http-interface.ts";
import { keepSessions } from "./kept-sessions.ts";
import { SOCKET_NAME } from "./socket-name.ts";

const [folder = "", sleepAfter = "", overtime = ""] = Bun.argv.slice(2);
const [sleepAfterMs, overtimeMs] = [Number(sleepAfter), Number(overtime)];
/** While the engine merges or changes rows, it does not end: it is asked again. */
const BUSY_AGAIN_MS = 60_000;
/** Connections that were made just before the socket went wait to be accepted. */
const ACCEPT_MS = 50;
const BACKGROUND_WORK = `SELECT (SELECT count() FROM system.merges)
  + (SELECT count() FROM system.mutations WHERE NOT is_done)`;

const name = process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6";
/** Ends at once. By itself the engine waits for its threads, and may do so for ever; what it has confirmed is on disk. */
const { _exit } = dlopen(name, { _exit: { args: ["i32"], returns: "void" } }).symbols;

/** Asked with each statement: waiting for a thread would take longer than the answer. */
function identityNow(): FolderIdentity | null {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found ? { dev: found.dev, ino: found.ino } : null;
}

/** As long as one connection is open, so is the folder. */
const opened = new Session(folder);
opened.query("SELECT 1");
const identity = JSON.stringify(identityNow());

const sessions = keepSessions(folder);
let running = 0;
let isEnding = false;
let sleeping: Timer;
const waiting: (() => void)[] = [];
/** What runs, by the ids of statements: one of the same id waits. */
const runningIds = new Map<string, Promise<unknown>>();

/** @returns false if it does not keep its time, and goes on running */
async function inTime(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  const timer = Promise.withResolvers<false>();
  const timeout = setTimeout(() => timer.resolve(false), limitMs);
  const done = work.then(
    () => true as const,
    () => true as const,
  );
  try {
    return await Promise.race([done, timer.promise]);
  } finally {
    clearTimeout(timeout);
  }
}

function timeLimitMs({ settings }: Statement): number {
  return (Number(settings["max_execution_time"]) || UNTIMED_LIMIT_SECONDS) * 1_000 + overtimeMs;
}

async function run(statement: Statement): Promise<Response> {
  const limitMs = timeLimitMs(statement);
  const { queryId } = statement;
  while (runningIds.has(queryId)) await runningIds.get(queryId)?.catch(() => {});
  const work = execute(sessions, statement).finally(() => runningIds.delete(queryId));
  runningIds.set(queryId, work);
  if (await inTime(work, limitMs)) return answerOf(statement, await work);
  process.stderr.write(`ended with a statement that ran for more than ${limitMs} ms\n`);
  void end(1);
  return answerException({
    code: "159",
    type: "TIMEOUT_EXCEEDED",
    message: `Timeout exceeded: more than ${limitMs} ms`,
  });
}

async function answer(request: Request): Promise<Response> {
  // A folder that was moved is served by the engine that is started in its new place.
  if (JSON.stringify(identityNow()) !== identity) _exit(1);
  if (new URL(request.url).pathname === "/ping") {
    sleepAfterAWhile(sleepAfterMs);
    return new Response(identity);
  }
  try {
    const statement = await readStatement(request);
    if (running >= SIDE_BY_SIDE) await new Promise<void>((resolve) => waiting.push(resolve));
    clearTimeout(sleeping);
    running++;
    try {
      return await run(statement);
    } finally {
      running--;
      waiting.shift()?.();
      sleepAfterAWhile(sleepAfterMs);
    }
  } catch (error) {
    return answerException(exceptionOf(error));
  }
}

function sleepAfterAWhile(waitMs: number): void {
  clearTimeout(sleeping);
  sleeping = setTimeout(async () => {
    const [, work = "0"] = /(\d+)/.exec(opened.query(BACKGROUND_WORK, "TSV")) ?? [];
    if (running > 0) return;
    if (work === "0") await end(0);
    else sleepAfterAWhile(BUSY_AGAIN_MS);
  }, waitMs);
}

process.umask(0o077);
await rm(SOCKET_NAME, { force: true });
const server = Bun.serve({
  unix: SOCKET_NAME,
  maxRequestBodySize: BODY_BYTES,
  async fetch(request, self) {
    // Statements have limits of their own.
    self.timeout(request, 0);
    const response = await answer(request);
    if (isEnding) response.headers.set("connection", "close");
    return response;
  },
});

/** Who comes now starts another engine, which waits for this one to end. */
async function end(status: number): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  await rm(SOCKET_NAME, { force: true });
  await Bun.sleep(ACCEPT_MS);
  const deadline = performance.now() + DRAIN_LIMIT_MS;
  const stopped = server.stop();
  while (running > 0 && performance.now() < deadline) await Bun.sleep(ACCEPT_MS);
  await Promise.race([stopped, Bun.sleep(ACCEPT_MS)]);
  _exit(status);
}

sleepAfterAWhile(sleepAfterMs);
process.on("SIGTERM", () => void end(0));
process.stdin.on("end", () => void end(0)).resume();

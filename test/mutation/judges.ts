/** Processes that run tests against mutants, each one mutant at a time; one that hangs is ended and another takes its place. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { productEnv } from "#test/support/product/product.ts";
import type { Question, Verdict } from "./judge.ts";

/** A process keeps every module that it has loaded, so it ends after so many mutants. */
const QUESTIONS_PER_PROCESS = 150;
/** Where it is there: the servers of the tests sync their files, which waits for no disk in memory. */
const MEMORY_FOLDER = "/dev/shm";

export interface Judge {
  /** A mutant that hangs is "slow", one that takes the process with it "ended". */
  readonly ask: (question: Question, limitMs: number) => Promise<Verdict>;
  readonly end: () => Promise<void>;
}

export async function startJudge(): Promise<Judge> {
  const inMemory = await Bun.file(`${MEMORY_FOLDER}/.`).exists();
  const folder = await mkdtemp(join(inMemory ? MEMORY_FOLDER : tmpdir(), "waybill-mutants-"));
  let child: ChildProcess | null = null;
  let asked = 0;

  /** With the servers that its tests have started. */
  async function end(): Promise<void> {
    const ending = child;
    child = null;
    if (!ending?.pid || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = once(ending, "exit");
    process.kill(-ending.pid, "SIGKILL");
    await ended;
  }

  return {
    async ask(question, limitMs) {
      if (asked % QUESTIONS_PER_PROCESS === 0) await end();
      asked += 1;
      child ??= spawn("bun", [join(import.meta.dir, "judge.ts")], {
        env: { ...productEnv(), TMPDIR: folder },
        stdio: ["ignore", "ignore", "ignore", "ipc"],
        detached: true,
      });
      const answered = Promise.withResolvers<Verdict>();
      const own = child;
      const timer = setTimeout(
        () => answered.resolve({ failure: "slow", cpuMs: limitMs }),
        limitMs,
      );
      own.once("message", answered.resolve);
      own.once("exit", () => answered.resolve({ failure: "ended", cpuMs: 0 }));
      own.send(question);
      const verdict = await answered.promise;
      clearTimeout(timer);
      own.removeAllListeners();
      if (verdict.failure === "slow" || verdict.failure === "ended") await end();
      return verdict;
    },
    async end() {
      await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

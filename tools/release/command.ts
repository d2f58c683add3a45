import { Refused } from "#core/runtime/runtime.ts";

const running = new Set<Bun.Subprocess>();
let isInterrupted = false;

/** @returns what the command has printed @throws {Refused} with its output if it fails, and once the release is interrupted */
export async function run(command: readonly string[], cwd: string): Promise<string> {
  if (isInterrupted) throw new Refused(`interrupted before ${command.join(" ")}`);
  return finish(command, cwd);
}

/** Also after an interruption, to undo something. @returns null if the command fails or is not there */
export function attempt(command: readonly string[], cwd: string): Promise<string | null> {
  return finish(command, cwd).catch(() => null);
}

async function finish(command: readonly string[], cwd: string): Promise<string> {
  // In a process group of its own: a signal must also end what it has started, which would hold its output open.
  const child = Bun.spawn([...command], {
    cwd,
    detached: true,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  running.add(child);
  const [text, errors, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  running.delete(child);
  if (status !== 0) throw new Refused(`${command.join(" ")} failed:\n${text}${errors}`.trim());
  return text.trim();
}

/** An interrupted command fails, the next one does not begin, and the release clears up as after any failure. */
export function failOnSignals(): void {
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      isInterrupted = true;
      for (const { pid } of running) signalGroup(pid, name);
    });
  }
}

function signalGroup(pid: number, name: "SIGINT" | "SIGTERM"): void {
  try {
    process.kill(-pid, name);
  } catch {
    // It has just ended.
  }
}

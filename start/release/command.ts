import { Refused } from "#core/runtime.ts";

const running = new Set<Bun.Subprocess>();

/** @returns what the command has printed @throws {Refused} with its output if it fails */
export async function run(command: readonly string[], cwd: string): Promise<string> {
  const child = Bun.spawn([...command], { cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
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

/** Null if the command fails or is not there. */
export function attempt(command: readonly string[], cwd: string): Promise<string | null> {
  return run(command, cwd).catch(() => null);
}

/** An interrupted command fails, and the release clears up as after any failure. */
export function failOnSignals(): void {
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      for (const child of running) child.kill(name);
    });
  }
}

/** Programs run as a user runs them, on free ports, with nothing of this environment but PATH and HOME. */
import { delimiter } from "node:path";

interface Options {
  readonly cwd?: string;
  /** What the program reads from standard input. */
  readonly input?: string;
  /** Folders whose programs come before those of PATH. */
  readonly programs?: readonly string[];
}

export function startCommand(
  command: string[],
  env: Readonly<Record<string, string>>,
  { cwd = ".", input = "", programs = [] }: Options = {},
) {
  const { PATH = "", HOME = "" } = process.env;
  return Bun.spawn(command, {
    cwd,
    stdin: new Blob([input]),
    env: {
      PATH: [...programs, PATH].join(delimiter),
      HOME,
      INGEST_PORT: "0",
      API_PORT: "0",
      PANEL_PORT: "0",
      DRAIN_SECONDS: "0",
      ...env,
    },
    stdout: "pipe",
    stderr: "pipe",
  });
}

export async function outcomeOf(process: ReturnType<typeof startCommand>) {
  const [output, errors, status] = await Promise.all([
    new Response(process.stdout).text(),
    new Response(process.stderr).text(),
    process.exited,
  ]);
  return { output, errors, status };
}

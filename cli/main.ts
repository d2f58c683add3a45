/** `waybill`: the program of operators and developers. `cli/run.mjs` provides Bun for it where only Node.js is installed. */
import { inColumns } from "#core/platform/process/command-line.ts";
import { VERSION } from "#core/platform/process/version.ts";
import { runProgram } from "#core/runtime/runtime.ts";
import { COMMANDS } from "./commands.ts";

const HELP = `usage: waybill <command> [options]
       waybill --version

${inColumns(Object.entries(COMMANDS).map(([name, { about }]) => [name, about]))}
"waybill <command> --help" explains a command. Exit status: 0 = done, 1 = refused or something found, 2 = wrong usage.
`;

async function waybill([name = "", ...args]: readonly string[], env: NodeJS.ProcessEnv) {
  if (["--help", "-h"].includes(name)) {
    process.stdout.write(HELP);
    return 0;
  }
  if (["--version", "-v"].includes(name)) {
    process.stdout.write(`${VERSION}\n`);
    return 0;
  }
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry !== undefined) return (await entry.load())(args, env);
  const fault = name === "" ? "A command is missing." : `Unknown command '${name}'.`;
  process.stderr.write(`${fault}\n${HELP}`);
  return 2;
}

await runProgram(waybill, process);

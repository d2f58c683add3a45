/** `npm run tool -- NAME`. */
import { resolve } from "node:path";
import { inColumns } from "#core/platform/process/command-line.ts";
import { TOOLS } from "./tools.ts";

const HELP = `usage: npm run tool -- NAME [arguments]

${inColumns(Object.entries(TOOLS).map(([name, [, about]]) => [name, about]))}`;

const [program = "", , name = "", ...args] = process.argv;
const [file] = Object.hasOwn(TOOLS, name) ? (TOOLS[name] ?? []) : [];
if (file !== undefined) {
  process.argv = [program, resolve(file), ...args];
  await import(resolve(file));
} else if (["--help", "-h"].includes(name)) {
  process.stdout.write(HELP);
} else {
  process.stderr.write(name === "" ? HELP : `Unknown tool '${name}'.\n${HELP}`);
  process.exitCode = 2;
}

/** `npm run tool -- NAME`. */
import { join } from "node:path";
import { inColumns, type Program } from "#core/platform/process/command-line.ts";
import { runProgram } from "#core/runtime/runtime.ts";
import { TOOLS } from "./tools.ts";

const HELP = `usage: npm run tool -- NAME [arguments]

${inColumns(Object.entries(TOOLS).map(([name, [, about]]) => [name, about]))}
"npm run tool -- NAME --help" explains a tool.
`;

const runTool: Program = async ([name = "", ...args], env) => {
  if (["--help", "-h"].includes(name)) {
    process.stdout.write(HELP);
    return 0;
  }
  const [file] = Object.hasOwn(TOOLS, name) ? (TOOLS[name] ?? []) : [];
  if (file !== undefined) {
    const { tool }: { readonly tool: Program } = await import(join(import.meta.dir, "..", file));
    return tool(args, env);
  }
  process.stderr.write(
    `${name === "" ? "A tool is missing." : `Unknown tool '${name}'.`}\n${HELP}`,
  );
  return 2;
};

await runProgram(runTool, process);

/** `waybill setup`. compose.yaml and the chart start this file itself: `bun cli/setup/main.ts FILE`. */
import { readConfig } from "#core/platform/environment/config.ts";
import { command, JSON_OPTION, WrongUsage } from "#core/platform/process/command-line.ts";
import { commandLog } from "#core/platform/process/log.ts";
import { publishedSchema } from "#core/platform/schema/published-schema.ts";
import { showUnshown } from "#core/platform/secrets/unshown-secrets.ts";
import { applySetupFile, openRuntime, readSetup, runProgram } from "#core/runtime/runtime.ts";
import { SetupFile } from "#core/setup/rules/setup.ts";

/** @returns how many entities were written */
async function apply(path: string, env: Readonly<Record<string, string | undefined>>) {
  const file = await readSetup(path);
  const config = readConfig({ ...env, SETUP_FILE: undefined });
  const runtime = await openRuntime(config, commandLog(), { isServing: false });
  try {
    const written = await applySetupFile(runtime, file);
    await showUnshown(config.dataDir);
    return written;
  } finally {
    await runtime.close();
  }
}

export const setup = command({
  name: "waybill setup",
  forms: ["FILE [--json]", "--schema"],
  about: `Applies a setup file to the stores and prints how many entities were written: none if the file changes nothing. Secrets that
it generates are printed once, on standard error. If the file has errors, it lists them all and changes nothing.`,
  options: {
    schema: { type: "boolean", about: "prints the JSON Schema of a setup file" },
    json: JSON_OPTION,
  },
  operands: [0, 1],
  async run({ values, operands: [file], env, report }) {
    if ((file === undefined) === (values.schema !== true)) {
      throw new WrongUsage("Name a setup file, or --schema.");
    }
    if (file === undefined) {
      const $schema = "https://json-schema.org/draft/2020-12/schema";
      const $id = "urn:waybill:setup-file:1";
      const text = JSON.stringify({ $schema, $id, ...publishedSchema(SetupFile) }, null, 2);
      process.stdout.write(`${text}\n`);
    } else {
      const written = await apply(file, env);
      report({ file, written }, `${file}: ${written} written`);
    }
  },
});

if (import.meta.main) await runProgram(setup, process);

/** `bun run setup FILE` applies a setup file by hand; `bun run setup --schema` prints its JSON Schema. */
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { publishedSchema } from "#core/platform/schema/published-schema.ts";
import { showUnshown } from "#core/platform/secrets/unshown-secrets.ts";
import { applySetupFile, guarded, openRuntime, Refused, readSetup } from "#core/runtime/runtime.ts";
import { SetupFile } from "#core/setup/rules/setup.ts";

const USAGE = "usage: bun run setup FILE, or bun run setup --schema";

async function apply(path: string): Promise<void> {
  const file = await readSetup(path);
  const config = readConfig({ ...process.env, SETUP_FILE: undefined });
  const runtime = await openRuntime(config, createLog("warn"), { isServing: false });
  try {
    const written = await applySetupFile(runtime, file);
    await showUnshown(config.dataDir);
    process.stdout.write(`${path}: ${written} written\n`);
  } finally {
    await runtime.close();
  }
}

await guarded(async () => {
  const [argument, ...more] = process.argv.slice(2);
  if (argument === undefined || more.length > 0) throw new Refused(USAGE);
  if (argument === "--schema") {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      ...publishedSchema(SetupFile),
    };
    process.stdout.write(`${JSON.stringify(schema, null, 2)}\n`);
  } else {
    await apply(argument);
  }
});

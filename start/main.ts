/** The whole product in one process. Without a setup file it comes with its demo; `--quiet` starts it bare. */
import { parseArgs } from "node:util";
import { ANALYTICS } from "#analytics/main.ts";
import { API } from "#api/main.ts";
import { readConfig } from "#core/config.ts";
import { createLog } from "#core/log.ts";
import { guarded, Refused, type Role, serve } from "#core/runtime.ts";
import { INGEST } from "#ingest/main.ts";
import { PANEL } from "#panel/main.ts";
import { PROCESSORS } from "#processors/main.ts";
import { runDemo } from "#start/demo/demo.ts";

/** Upstream last: roles stop in the opposite order, so that nothing comes in for one that has stopped. */
const ROLES: readonly Role[] = [ANALYTICS, PROCESSORS, PANEL, API, INGEST];

/** @throws {Refused} for an argument that does not exist */
function isQuiet(args: string[]): boolean {
  try {
    const { values } = parseArgs({ args, options: { quiet: { type: "boolean" } } });
    return values.quiet ?? false;
  } catch (error) {
    throw new Refused(`${(error as Error).message.split(".")[0]}; known is --quiet`);
  }
}

await guarded(async () => {
  const quiet = isQuiet(process.argv.slice(2));
  const config = readConfig(process.env);
  if (quiet || config.setupFile !== null) {
    const log = createLog(config.logLevel);
    await serve(config, log, ROLES);
  } else {
    // The live line is what a newcomer reads; the log comes in between only when something is wrong.
    const log = createLog(process.env["LOG_LEVEL"] ? config.logLevel : "warn");
    await runDemo({ ...config, logLevel: log.level }, log, ROLES);
  }
});

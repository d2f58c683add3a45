/** The whole product in one process. Without a setup file it comes with its demo; `--quiet` starts it bare, and
 * `--reset-demo` empties the demo's stores first. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ANALYTICS } from "#analytics/main.ts";
import { API } from "#api/main.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { tryLock } from "#core/platform/process/file-lock.ts";
import { createLog } from "#core/platform/process/log.ts";
import { guarded, Refused, type Role, serve } from "#core/runtime/runtime.ts";
import { runDemo } from "#demo/demo.ts";
import { resetDemo } from "#demo/reset-demo.ts";
import { INGEST } from "#ingest/main.ts";
import { PANEL } from "#panel/main.ts";
import { PROCESSORS } from "#processors/main.ts";

const DEMO_DATA_DIR = join(".data", "demo");

/** Upstream last: roles stop in the opposite order, so that nothing comes in for one that has stopped. */
const ROLES: readonly Role[] = [ANALYTICS, PROCESSORS, PANEL, API, INGEST];

interface Flags {
  readonly quiet: boolean;
  readonly resetDemo: boolean;
}

/** @throws {Refused} for an argument that does not exist */
function flagsOf(args: string[]): Flags {
  const flag = { type: "boolean", default: false } as const;
  try {
    const { values } = parseArgs({ args, options: { quiet: flag, "reset-demo": flag } });
    return { quiet: values.quiet, resetDemo: values["reset-demo"] };
  } catch (error) {
    const [what] = (error as Error).message.split(".");
    throw new Refused(`${what}; known are --quiet and --reset-demo`);
  }
}

/** Without SETUP_FILE the demo runs, in a folder of its own. */
function configOf(env: NodeJS.ProcessEnv, quiet: boolean): Config {
  const isDemo = !quiet && !env["SETUP_FILE"];
  if (!isDemo) return readConfig(env);
  const own = {
    DATA_DIR: env["DATA_DIR"] || DEMO_DATA_DIR,
    // Nobody but its own couriers sends to it, and they stop with it.
    DRAIN_SECONDS: env["DRAIN_SECONDS"] || "0",
  };
  return { ...readConfig({ ...env, ...own }), isDemo };
}

await guarded(async () => {
  const { quiet, resetDemo: isReset } = flagsOf(process.argv.slice(2));
  const config = configOf(process.env, quiet);
  // The live line is what a newcomer reads; the log comes in between only when something is wrong.
  const level = config.isDemo && !process.env["LOG_LEVEL"] ? "warn" : config.logLevel;
  const log = createLog(level);
  if (config.isDemo || isReset) holdDemo(config);
  if (isReset) await resetDemo(config, log);
  if (config.isDemo) await runDemo({ ...config, logLevel: log.level }, log, ROLES);
  else await serve(config, log, ROLES);
});

/**
 * A second demo on the same folder would point the endpoints of the first to itself. Held until this process ends.
 * @throws {Refused}
 */
function holdDemo({ dataDir }: Config): void {
  if (tryLock(join(dataDir, "demo.lock"), "a") !== null) return;
  throw new Refused(
    `The demo is running on ${dataDir} already: use it, stop it, or set DATA_DIR to another folder.`,
  );
}

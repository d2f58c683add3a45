/** `waybill start`: the whole product in one process. Without a setup file it comes with its demo. */
import { join } from "node:path";
import { ANALYTICS } from "#analytics/main.ts";
import { SQL_PORT } from "#analytics/sql-port.ts";
import { API } from "#api/main.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { command } from "#core/platform/process/command-line.ts";
import { tryLock } from "#core/platform/process/file-lock.ts";
import { createLog } from "#core/platform/process/log.ts";
import { Refused, type Role, serve } from "#core/runtime/runtime.ts";
import { runDemo } from "#demo/demo.ts";
import { resetDemo } from "#demo/reset-demo.ts";
import { INGEST } from "#ingest/main.ts";
import { PANEL } from "#panel/main.ts";
import { PROCESSORS } from "#processors/main.ts";
import { DEMO_DATA_DIR } from "./store-config.ts";

/** Upstream last: roles stop in the opposite order, so that nothing comes in for one that has stopped. */
const ROLES: readonly Role[] = [ANALYTICS, SQL_PORT, PROCESSORS, PANEL, API, INGEST];

/** Without SETUP_FILE the demo runs, in a folder of its own. */
function configOf(env: Readonly<Record<string, string | undefined>>, quiet: boolean): Config {
  const isDemo = !quiet && !env["SETUP_FILE"];
  if (!isDemo) return readConfig(env);
  const own = {
    DATA_DIR: env["DATA_DIR"] || DEMO_DATA_DIR,
    // Nobody but its own couriers sends to it, and they stop with it.
    DRAIN_SECONDS: env["DRAIN_SECONDS"] || "0",
  };
  return { ...readConfig({ ...env, ...own }), isDemo };
}

export const start = command({
  name: "waybill start",
  forms: ["[--quiet] [--reset-demo]"],
  about: `Runs all roles in one process and prints its log, a JSON line for each entry. Without SETUP_FILE and --quiet it starts the demo,
whose data are in .data/demo.`,
  options: {
    quiet: { type: "boolean", about: "starts without the demo" },
    "reset-demo": { type: "boolean", about: "empties the demo's stores first" },
  },
  async run({ values: { quiet = false, "reset-demo": isReset = false }, env }) {
    const config = configOf(env, quiet);
    // The live line is what a newcomer reads; the log comes in between only when something is wrong.
    const level = config.isDemo && !env["LOG_LEVEL"] ? "warn" : config.logLevel;
    const log = createLog(level);
    if (config.isDemo || isReset) holdDemo(config);
    if (isReset) await resetDemo(config, log);
    if (config.isDemo) await runDemo({ ...config, logLevel: log.level }, log, ROLES);
    else await serve(config, log, ROLES);
  },
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

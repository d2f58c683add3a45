/** Which store a command means beside the demo, which keeps its data apart from real data. */
import { join } from "node:path";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { isEmbeddedRunning } from "#core/platform/redis/embedded/embedded.ts";
import { Refused } from "#core/runtime/runtime.ts";

export const DEMO_DATA_DIR = join(".data", "demo");

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the demo alone is running, or beside real data; null = it is not, or the environment names a store. */
async function demoBeside(env: Environment, config: Config): Promise<"alone" | "too" | null> {
  const isNamed = env["DATA_DIR"] || config.redisUrl !== null || config.redisClusterUrls !== null;
  if (isNamed || !(await isEmbeddedRunning(DEMO_DATA_DIR))) return null;
  return (await isEmbeddedRunning(config.dataDir)) ? "too" : "alone";
}

/**
 * The installation that runs: the demo where nothing else does.
 * @param say which one it is, where there may be two
 */
export async function readStoreConfig(
  env: Environment,
  say: (line: string) => void = () => {},
): Promise<Config> {
  const config = readConfig(env);
  const demo = await demoBeside(env, config);
  if (demo === null) return config;
  if (demo === "too") {
    say(`This is the store in ${config.dataDir}. For the demo's, set DATA_DIR=${DEMO_DATA_DIR}.`);
    return config;
  }
  say(
    `This is the demo's store, in ${DEMO_DATA_DIR}: nothing else is running. For the other, set DATA_DIR=${config.dataDir}.`,
  );
  return readConfig({ ...env, DATA_DIR: DEMO_DATA_DIR });
}

/** For what is kept: that of a store that was not meant would be found out too late. @throws {Refused} where the demo alone is running */
export async function readNamedConfig(env: Environment): Promise<Config> {
  const config = readConfig(env);
  if ((await demoBeside(env, config)) !== "alone") return config;
  throw new Refused(
    `The demo is running, and nothing else. For the demo's store, set DATA_DIR=${DEMO_DATA_DIR}; for the other, DATA_DIR=${config.dataDir}.`,
  );
}

/** `npm start -- --reset-demo`: empties the demo's embedded stores, and nothing else. It may be repeated after it was interrupted. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { beginEmptying } from "#core/configuration/store/store-kind.ts";
import type { Config } from "#core/platform/environment/config.ts";
import type { Log } from "#core/platform/process/log.ts";
import { openStore, Refused, storePlace } from "#core/runtime/runtime.ts";

/** Beside Redis, which is emptied after them: it holds the mark that keeps starts away meanwhile. */
const FOLDERS = ["clickhouse", "outbox", "demo"];

/**
 * @throws {WrongStore} for real data {Refused} for servers, which other programs may use too
 */
export async function resetDemo(config: Config, log: Log): Promise<void> {
  if (config.redisUrl ?? config.redisClusterUrls ?? config.clickhouseUrl) {
    throw new Refused(
      "--reset-demo empties the embedded stores only: empty the databases of REDIS_URL and CLICKHOUSE_URL by their own means.",
    );
  }
  const { dataDir } = config;
  const store = await openStore(config, log);
  try {
    if (!(await beginEmptying(store.redis, storePlace(config)))) return;
    for (const name of FOLDERS) await rm(join(dataDir, name), { recursive: true, force: true });
    await store.redis.flushAll();
  } finally {
    await store.close();
  }
  // The tokens and keys of the demo: nothing is sealed with them any more.
  await rm(join(dataDir, "secrets"), { recursive: true, force: true });
}

/** The analytics role's part of a backup of the embedded stores. */
import { join } from "node:path";
import type { KeptClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import {
  answerBackupRequest,
  type FrozenTables,
  takeBackupRequest,
} from "#core/configuration/store/backup-requests.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import { beginSnapshot } from "#core/platform/redis/embedded/snapshot.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { freezeTables } from "./freeze.ts";

const LOOK_EVERY_MS = 1_000;

/**
 * @param whileNotWriting runs the work while nothing is written to ClickHouse: the snapshot of Redis then has every change
 * that ClickHouse has not, and no acknowledged one that it lacks
 * @returns null with a server of either store, which is backed up by its own means
 */
export function answerBackups(
  { config, redis, log }: Runtime,
  store: KeptClickhouse,
  whileNotWriting: (work: () => Promise<FrozenTables>) => Promise<FrozenTables>,
): Ticking | null {
  const isEmbedded = config.redisUrl === null && config.redisClusterUrls === null;
  if (!isEmbedded || config.clickhouseUrl !== null) return null;
  return startTickingThroughOutages(log, "backups", LOOK_EVERY_MS, async () => {
    const id = await takeBackupRequest(redis);
    if (id === null) return;
    const fromMs = performance.now();
    try {
      const tables = await whileNotWriting(async () => {
        const frozen = await freezeTables(await store.client(), join(config.dataDir, "clickhouse"));
        await beginSnapshot(redis);
        return frozen;
      });
      await answerBackupRequest(redis, id, { tables });
      const pausedMs = Math.round(performance.now() - fromMs);
      log.info({ pausedMs }, "both stores are ready for their backup");
    } catch (error) {
      await answerBackupRequest(redis, id, { fault: (error as Error).message });
      throw error;
    }
  });
}

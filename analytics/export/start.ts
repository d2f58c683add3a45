/** Exports on schedule while the analytics role runs: one process at a time, when the latest export is old enough. */
import type { ClickHouseSettings } from "@clickhouse/client";
import { keepClickhouse, openBare } from "#analytics/clickhouse/clickhouse.ts";
import { exportFinished } from "#core/platform/process/metrics.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import { EXPORT_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { takeLock } from "#core/platform/redis/lock.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { type ExportDeps, exportDays, readManifest } from "./export-days.ts";
import { openTarget } from "./open-target.ts";

const LOOK_EVERY_MS = 30_000;
const LOCK = { leaseMs: 30_000, waitLimitMs: 0 };
/** A table is read whole, in the background. */
const LIMIT_SECONDS = 3_600;
export const EXPORT_MEMORY_BYTES = limit(
  2 * 1024 * 1024 * 1024,
  "memory of a statement of the export",
  "the export fails, and is retried",
);
/** So much of it may be in use before sorting goes to disk. */
const SORT_BYTES = 256 * 1024 ** 2;
const SETTINGS: ClickHouseSettings = {
  max_execution_time: LIMIT_SECONDS,
  max_memory_usage: String(EXPORT_MEMORY_BYTES),
  max_bytes_before_external_sort: String(SORT_BYTES),
  max_threads: 1,
  do_not_merge_across_partitions_select_final: 1,
  // Fixed strings are text in every reader of a lake.
  output_format_parquet_fixed_string_as_fixed_byte_array: 0,
};

/** @returns null if no export is configured */
export function startExport({ config, redis, live, log }: Runtime): Ticking | null {
  const { exportTo } = config;
  if (exportTo === null) return null;
  const target = openTarget({ ...config, exportTo });
  const store = keepClickhouse(() => openBare(config, SETTINGS, LIMIT_SECONDS * 1_000));

  async function exportIfDue(deps: Pick<ExportDeps, "clickhouse" | "assertHeld" | "isStopping">) {
    const manifest = await readManifest({ target, log });
    const nowMs = live.now();
    const ageMs = nowMs - (manifest?.finishedAtMs ?? 0);
    if (manifest !== null) exportFinished.set(manifest.finishedAtMs / 1_000);
    if (ageMs < config.exportEveryMinutes * 60_000) return;
    const files = await exportDays({ ...deps, target, config }, manifest, nowMs);
    if (files === null) return;
    exportFinished.set(nowMs / 1_000);
    log.info({ files, target: exportTo }, "analytics exported");
  }

  const ticking = startTickingThroughOutages(log, "export", LOOK_EVERY_MS, async (isStopping) => {
    const lock = await takeLock(redis, EXPORT_LOCK_KEY, LOCK);
    if (lock === null) return;
    const { assertHeld } = lock;
    try {
      await exportIfDue({ clickhouse: await store.client(), assertHeld, isStopping });
    } catch (error) {
      await store.forget();
      throw new Unavailable(`the export: ${(error as Error).message}`, "export");
    } finally {
      await lock.release();
    }
  });
  return {
    async stop() {
      await ticking.stop();
      await store.close();
    },
  };
}

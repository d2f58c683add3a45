/**
 * Counts again, for expected delivery, when deliveries were written and once a day, since the window of 12 months moves. One process at
 * a time does it, and it rests longer than it takes.
 */
import type { ClickHouseClient, ClickHouseSettings } from "@clickhouse/client";
import { clickhouseErrorType, keepClickhouse, openBare } from "#analytics/clickhouse/clickhouse.ts";
import { windowStart } from "#core/benchmarks/rules/lane.ts";
import { writeStayCells } from "#core/benchmarks/store/stay-cells.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import { STAY_CELLS_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { takeLock } from "#core/platform/redis/lock.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { isTestCourier } from "#core/shipments/rules/test-parcel.ts";
import { readStays } from "./read-stays.ts";

const LOOK_EVERY_MS = 2_000;
const REST_MS = 10_000;
/** Rest after a count, in times of what it took, so that it takes about one part in twenty of one core. */
const REST_SHARE = 20;
const LONGEST_REST_MS = 600_000;
const DAY_MS = 86_400_000;
const LOCK = { leaseMs: 30_000, waitLimitMs: 0 };
/** All deliveries of a courier and their events are read, in the background. */
const LIMIT_SECONDS = 600;
const COUNT_MEMORY_BYTES = limit(
  1024 * 1024 * 1024,
  "memory of a count for expected delivery",
  "the earlier figures stay, and the count is repeated",
);
const SETTINGS: ClickHouseSettings = {
  max_execution_time: LIMIT_SECONDS,
  max_memory_usage: String(COUNT_MEMORY_BYTES),
  max_threads: 1,
  do_not_merge_across_partitions_select_final: 1,
  output_format_json_quote_64bit_integers: 0,
};

type CountDeps = Pick<Runtime, "redis" | "live">;

export interface StayCounting extends Ticking {
  /** Deliveries were written: they are counted after the rest. */
  readonly changed: () => void;
}

export function startCountingStays(runtime: Runtime): StayCounting {
  const { redis, log, config } = runtime;
  const store = keepClickhouse(() => openBare(config, SETTINGS, LIMIT_SECONDS * 1_000));
  let isDue = true;
  let dueMs = 0;
  let dailyMs = 0;
  const ticking = startTickingThroughOutages(log, "expected delivery", LOOK_EVERY_MS, async () => {
    const nowMs = performance.now();
    if (nowMs < dueMs || (!isDue && nowMs < dailyMs)) return;
    const lock = await takeLock(redis, STAY_CELLS_LOCK_KEY, LOCK);
    if (lock === null) return;
    isDue = false;
    const startMs = performance.now();
    try {
      await countStays(runtime, await store.client());
      dailyMs = performance.now() + DAY_MS;
    } catch (error) {
      isDue = true;
      throw error;
    } finally {
      const endMs = performance.now();
      dueMs = endMs + Math.min(LONGEST_REST_MS, Math.max(REST_MS, REST_SHARE * (endMs - startMs)));
      await lock.release();
    }
  });
  return {
    changed() {
      isDue = true;
    },
    async stop() {
      await ticking.stop();
      await store.close();
    },
  };
}

/** One count over all couriers. @throws while ClickHouse or Redis is unavailable */
async function countStays({ redis, live }: CountDeps, clickhouse: ClickHouseClient): Promise<void> {
  const nowMs = live.now();
  const since = windowStart(nowMs);
  const until = romeDate(nowMs + DAY_MS);
  for (const courier of live.configuration().couriers.keys()) {
    if (isTestCourier(courier)) continue;
    const lanes = await readStays(clickhouse, { courier, since, until }).catch((error) => {
      if (clickhouseErrorType(error) === "UNKNOWN_TABLE") return [];
      throw new Unavailable(`ClickHouse: ${(error as Error).message}`, "clickhouse");
    });
    await writeStayCells(redis, courier, lanes, nowMs);
  }
}

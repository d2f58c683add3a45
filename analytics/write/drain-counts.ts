/**
 * Takes the hourly counts of courier events over into ClickHouse. What is written are sums so far, and the largest sum of
 * an hour counts: a pass cut short, repeated, or run by two processes at once changes no figure. While ClickHouse is unavailable
 * the counts grow where they are, about 50 numbers an hour and courier.
 */
import type { ClickHouseClient } from "@clickhouse/client";
import type { Live } from "#core/configuration/store/live.ts";
import {
  type CourierCount,
  forgetCourierCounts,
  readCourierCounts,
} from "#core/events/store/courier-counts.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { isTestCourier } from "#core/shipments/rules/test-parcel.ts";

const EVERY_MS = 2_000;

export interface DrainDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
  /** @throws while ClickHouse is unavailable */
  readonly clickhouse: () => Promise<ClickHouseClient>;
}

/** One pass. @throws while Redis or ClickHouse is unavailable */
export async function drainCounts({ redis, live, clickhouse }: Omit<DrainDeps, "log">) {
  const read = await readCourierCounts(redis);
  if (read.counts.length === 0) return;
  const counts = read.counts.filter(({ courier }) => !isTestCourier(courier));
  try {
    const client = await clickhouse();
    await client.insert({
      table: "event_outcomes",
      values: counts.map(outcomeRow),
      format: "JSONEachRow",
    });
  } catch (error) {
    throw new Unavailable(`ClickHouse: ${(error as Error).message}`, "clickhouse");
  }
  await forgetCourierCounts(redis, read, live.now());
}

function outcomeRow({ hour, ...rest }: CourierCount) {
  return { hour: hour * 3_600, ...rest };
}

export function startDraining(deps: DrainDeps): Ticking {
  return startTickingThroughOutages(deps.log, "courier counts", EVERY_MS, () => drainCounts(deps));
}

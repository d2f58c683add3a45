/** One process at a time changes the tables of ClickHouse. */
import type { Config } from "#core/platform/environment/config.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { SCHEMA_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { takeLock } from "#core/platform/redis/lock.ts";
import type { InTurn } from "./apply-schema.ts";
import { clickhouseErrorType } from "./clickhouse.ts";
import { SCHEMA_LEASE_MS, SCHEMA_RETRY_MS, SCHEMA_WAIT_MS } from "./time-limits.ts";

const TURN = { leaseMs: SCHEMA_LEASE_MS, waitLimitMs: SCHEMA_WAIT_MS };

/**
 * A cluster keeps each statement until all of its servers have run it, so one that is refused is not sent again at once.
 * @returns throws while another process has the turn
 */
export function schemaTurn(redis: Redis, { clickhouseCluster }: Config): InTurn {
  return async (work) => {
    const lock = await takeLock(redis, SCHEMA_LOCK_KEY, TURN);
    if (!lock)
      throw new Error("another process changes its tables, or was refused to a moment ago");
    try {
      await work();
      await lock.release();
    } catch (error) {
      const isRefused = clickhouseErrorType(error) !== null;
      await lock.releaseAfter(clickhouseCluster !== null && isRefused ? SCHEMA_RETRY_MS : 1);
      throw error;
    }
  };
}

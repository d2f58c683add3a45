/** A point-in-time snapshot of the embedded Redis, taken while it serves. */
import type { Redis } from "#core/platform/redis/client.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { limit } from "#core/platform/schema/limit.ts";

const POLL_MS = 100;
/** A rewrite of the append-only file under way keeps the snapshot from beginning. */
const SNAPSHOT_LIMIT_MS = limit(
  120_000,
  "wait of a backup for a rewrite of the append-only file",
  "the backup fails",
);
/** Name of the file that the server writes into its folder. */
export const SNAPSHOT_NAME = "dump.rdb";

/** Resolves once the moment has been fixed: later writes are no part of it. */
export async function beginSnapshot(redis: Redis): Promise<void> {
  const deadline = performance.now() + SNAPSHOT_LIMIT_MS;
  for (;;) {
    try {
      await redis.sendCommand(["BGSAVE"]);
      return;
    } catch (error) {
      const isBusy = /in progress/i.test((error as Error).message);
      if (!isBusy || performance.now() > deadline) throw error;
      await Bun.sleep(POLL_MS);
    }
  }
}

/** Waits until the file is complete. @throws {Unavailable} if Redis could not write it */
export async function snapshotWritten(redis: Redis): Promise<void> {
  for (;;) {
    const info = await redis.info("persistence");
    if (!info.includes("rdb_bgsave_in_progress:1")) {
      if (info.includes("rdb_last_bgsave_status:ok")) return;
      throw new Unavailable(
        "Redis cannot write its snapshot; see redis.log in its folder",
        "redis",
      );
    }
    await Bun.sleep(POLL_MS);
  }
}

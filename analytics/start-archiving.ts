/** Moves shipments that are over to the archive, again and again: one process at a time, at a tenth of a core. */
import type { ClickHouseClient } from "@clickhouse/client";
import { createPause } from "#core/pause.ts";
import { ARCHIVER_LOCK_KEY } from "#core/redis/client/keys.ts";
import { takeLock } from "#core/redis/client/lock.ts";
import { beginGeneration, GENERATION_WAIT_MS } from "#core/redis/intake/compact-references.ts";
import { readLags } from "#core/redis/log/streams.ts";
import { hasArchived } from "#core/redis/shipments/archive.ts";
import type { Runtime } from "#core/runtime.ts";
import { startTicking, type Ticking } from "#core/tick.ts";
import { archiveAll, deleteAbsent } from "./archiver.ts";

/** From one round to the next. */
const ROUND_MS = 60_000;
/** Nothing is moved while a group is so far behind its log. */
const LAG_LIMIT_SECONDS = 3_600;
const LOCK = { leaseMs: 30_000, waitLimitMs: 0 };
/** Pauses for each unit of work: a tenth of a core. */
const PAUSES_PER_WORK = 9;

export interface Archiving {
  readonly runtime: Pick<Runtime, "redis" | "live" | "log" | "config" | "secrets">;
  /** @throws while ClickHouse is unavailable */
  readonly clickhouse: () => Promise<ClickHouseClient>;
  /** The other roles run in other processes. */
  readonly isAlone: boolean;
}

/** @returns null where nothing can be archived */
export function startArchiving({ runtime, clickhouse, isAlone }: Archiving): Ticking | null {
  const { redis, live, log, config, secrets } = runtime;
  const { archiveAfterDays: afterDays } = config;
  if (isAlone && config.clickhouseUrl === null) {
    if (afterDays > 0) {
      log.warn("nothing is archived: other processes cannot read the embedded ClickHouse");
    }
    return null;
  }
  const pause = createPause();

  async function round(isStopping: () => boolean): Promise<void> {
    if (afterDays === 0 && !(await hasArchived(redis))) return;
    // What waits to be told of a shipment is told while the shipment is in Redis.
    const lags = await readLags(redis);
    if (lags.some(({ seconds }) => seconds > LAG_LIMIT_SECONDS)) return;
    const lock = await takeLock(redis, ARCHIVER_LOCK_KEY, LOCK);
    if (!lock) return;
    const { vault } = secrets;
    const pace = (workMs: number) => pause.wait(workMs * PAUSES_PER_WORK);
    const deps = { redis, live, vault, clickhouse, isStopping, pace };
    try {
      if (afterDays > 0) {
        const isNew = await beginGeneration(redis, live.now(), config.eventsPerDay);
        if (isNew) await pause.wait(GENERATION_WAIT_MS);
        if (isStopping()) return;
        const moved = await archiveAll({ ...deps, afterDays }, lock.assertHeld);
        if (moved > 0) log.info({ shipments: moved }, "shipments archived");
      }
      for (const id of live.configuration().companies.keys()) await deleteAbsent(deps, id);
    } finally {
      await lock.release();
    }
  }

  const ticking = startTicking(ROUND_MS, round, (error) => {
    log.warn({ reason: error.message }, "archiving interrupted; it goes on with the next round");
  });
  return {
    async stop() {
      const stopped = ticking.stop();
      pause.wake();
      await stopped;
    },
  };
}

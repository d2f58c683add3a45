/** Moves shipments that are over to the archive, again and again: one process at a time, at a tenth of a core. */
import type { ClickHouseClient } from "@clickhouse/client";
import { hasArchived } from "#core/archive/store/archive.ts";
import { noteBacklog, noteRound } from "#core/archive/store/archive-status.ts";
import { readHeldChannels } from "#core/archive/store/held-channels.ts";
import { beginGeneration } from "#core/events/store/compact-references.ts";
import { type Lag, type LogName, readLags } from "#core/platform/log/streams.ts";
import {
  archiveDamaged,
  archivedShipments,
  archiveFinished,
  archiveQuiet,
} from "#core/platform/process/metrics.ts";
import { createPause } from "#core/platform/process/pause.ts";
import { startTicking, type Ticking } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { ARCHIVER_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { type Lock, takeLock } from "#core/platform/redis/lock.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { completeIndex } from "./archive-index.ts";
import { archiveAll, deleteAbsent } from "./archiver.ts";
import { type BringBackDeps, bringChannelBack } from "./bring-channel-back.ts";
import { forCompanies, type Stage } from "./companies-in-turn.ts";
import { recheckDamaged } from "./recheck-damaged.ts";
import {
  deleteRetired,
  RETIRING_WAIT_MS,
  type RetentionDeps,
  retireShipments,
} from "./retention.ts";

const LAG_LIMIT_SECONDS = limit(
  3_600,
  "delay of a consumer group beyond which nothing is archived",
  "the next round",
);
/** After so long each part of a round (removing, bringing back, archiving, deleting) leaves the rest to the next one. */
const ROUND_LIMIT_MS = limit(
  5 * 60_000,
  "length of each part of a round of the archiver",
  "the next round",
);
/** Of the lock, at least: a busy machine may not get to renew a shorter one in time. */
const LEASE_MS_LEAST = 5_000;
/** Pauses for each unit of work: a tenth of a core. */
const PAUSES_PER_WORK = 9;
/** A unit of work is short: one that took seconds spent most of them waiting for a store or for the CPU, which calls for no pause. */
const ARCHIVE_PAUSE_LIMIT_MS = limit(
  5_000,
  "longest pause after a unit of archiving, otherwise nine times as long as the unit",
  "the next unit",
);

/** @returns how long to pause after a unit of work */
export function pauseAfterMs(workMs: number): number {
  return Math.min(ARCHIVE_PAUSE_LIMIT_MS, workMs * PAUSES_PER_WORK);
}

/** Whether there is anything to do where nothing is to be archived. */
async function isUsed(redis: Redis): Promise<boolean> {
  return (await hasArchived(redis)) || (await readHeldChannels(redis)).length > 0;
}

/** What operators keep out of the archive comes back. Where nothing is in it, whoever asked learns so. */
async function bringHeldBack(deps: BringBackDeps, assertHeld: Lock["assertHeld"]): Promise<void> {
  const { channels } = await deps.live.refresh();
  for (const held of await readHeldChannels(deps.redis)) {
    const companyId = channels.get(held.channelId)?.companyId;
    if (companyId === undefined) continue;
    await bringChannelBack(deps, companyId, held, assertHeld).catch((error: Error) =>
      // Such as a Redis that is full, which archiving makes room in.
      deps.log.error(
        { channelId: held.channelId, reason: error.message },
        "a channel cannot come back",
      ),
    );
    if (deps.isStopping() || deps.isTimeUp()) return;
  }
}

async function retireAll(
  deps: RetentionDeps,
  after: number,
  assertHeld: Lock["assertHeld"],
): Promise<number> {
  const { companies } = await deps.live.refresh();
  return forCompanies(deps, companies.keys(), after, (companyId) =>
    retireShipments(deps, companyId, assertHeld).catch((error: Error) =>
      // Those of the others, and archiving, go on.
      deps.log.error({ companyId, reason: error.message }, "archived shipments cannot be removed"),
    ),
  );
}

/** Seconds that the groups of a log are behind. */
function lagOf(lags: readonly Lag[], log: LogName): number {
  return Math.max(...lags.filter((one) => one.log === log).map(({ seconds }) => seconds));
}

/** Of a part of a round that begins now. */
function timeLimit(): Pick<Stage, "isTimeUp"> {
  const untilMs = performance.now() + ROUND_LIMIT_MS;
  return { isTimeUp: () => performance.now() > untilMs };
}

export interface Archiving {
  readonly runtime: Pick<Runtime, "redis" | "live" | "log" | "config" | "secrets">;
  /** @throws while ClickHouse is unavailable */
  readonly clickhouse: () => Promise<ClickHouseClient>;
}

export function startArchiving({ runtime, clickhouse }: Archiving): Ticking {
  const { redis, live, log, config, secrets } = runtime;
  const { archiveAfterDays: afterDays, shipmentRetentionMonths: months } = config;
  const roundMs = config.archiveRoundSeconds * 1_000;
  const lockTerms = { leaseMs: Math.max(LEASE_MS_LEAST, roundMs / 2), waitLimitMs: 0 };
  const pause = createPause();
  let retiredLast = 0;
  let deletedLast = 0;

  async function prepare(lock: Lock): Promise<void> {
    await index(lock);
    // Numbers of batches that cannot be inserted would be skipped, round after round.
    await (await clickhouse()).command({ query: "SELECT 1" });
    const waitMs = await beginGeneration(redis, live.now(), config.eventsPerDay);
    if (waitMs > 0) await pause.wait(waitMs);
  }

  async function index({ assertHeld }: Lock): Promise<void> {
    if (!(await completeIndex(await clickhouse(), assertHeld))) return;
    log.info("the index of archived shipments is complete");
  }

  async function round(isStopping: () => boolean): Promise<void> {
    if (afterDays === 0 && !(await isUsed(redis))) return;
    // What waits to be told of a shipment is told while the shipment is in Redis.
    const lookedAtMs = Date.now();
    const lags = await readLags(redis);
    if (lags.some(({ seconds }) => seconds > LAG_LIMIT_SECONDS)) return;
    const lock = await takeLock(redis, ARCHIVER_LOCK_KEY, lockTerms);
    if (!lock) return;
    const { vault } = secrets;
    const pace = (workMs: number) => pause.wait(pauseAfterMs(workMs));
    const deps = { redis, log, live, vault, clickhouse, isStopping, pace };
    try {
      if (await hasArchived(redis)) {
        await index(lock);
        const appliedUntilMs = lookedAtMs - 1_000 * lagOf(lags, "event");
        const terms = { months, appliedUntilMs, waitMs: RETIRING_WAIT_MS, ...timeLimit() };
        retiredLast = await retireAll({ ...deps, ...terms }, retiredLast, lock.assertHeld);
        if (isStopping()) return;
      }
      await bringHeldBack({ ...deps, ...timeLimit() }, lock.assertHeld);
      if (isStopping()) return;
      const limit = timeLimit();
      if (afterDays > 0) {
        await noteBacklog(redis, await live.refresh(), live.now(), afterDays);
        const terms = { ...deps, ...limit, afterDays, prepare: () => prepare(lock) };
        const moved = await archiveAll(terms, lock.assertHeld);
        if (moved > 0) log.info({ shipments: moved }, "shipments archived");
      }
      const isComplete = !limit.isTimeUp();
      const terms = { ...deps, ...timeLimit() };
      const ids = live.configuration().companies.keys();
      deletedLast = await forCompanies(terms, ids, deletedLast, async (id) => {
        await deleteAbsent(terms, id);
        await deleteRetired(terms, id);
      });
      archiveDamaged.set(await recheckDamaged(deps));
      if (isStopping() || !isComplete) return;
      const status = await noteRound(redis, live.configuration(), live.now(), afterDays);
      archivedShipments.set(status.archived);
      archiveQuiet.set(status.quiet);
      archiveFinished.set(status.endedAtMs / 1_000);
    } finally {
      await lock.release();
    }
  }

  const ticking = startTicking(roundMs, round, (error) => {
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

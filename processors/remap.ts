/**
 * Processes remaps in the background: every shipment with facts of the codes is remapped and refolded from its history,
 * in one version-checked commit. Pages are done again after a crash; what is mapped already changes nothing.
 */
import type { Log } from "#core/log.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { type Lock, LockLost } from "#core/redis/client/lock.ts";
import { startTickingThroughOutages } from "#core/redis/client/outage.ts";
import type { Configuration } from "#core/redis/config/configuration.ts";
import type { Live } from "#core/redis/config/live.ts";
import { underSetupLock } from "#core/redis/config/setup-lock.ts";
import { type Archive, channelsOfShipments } from "#core/redis/shipments/archive.ts";
import { bringBack } from "#core/redis/shipments/bring-back.ts";
import {
  type RemapScope,
  readRemappings,
  type ShipmentPage,
  scopeOf,
  shipmentsToRemap,
} from "#core/redis/shipments/remappings.ts";
import {
  applyRemap,
  finishRemap,
  nextRemap,
  type Remap,
  type RemapProgress,
  readRemap,
  saveProgress,
  takeRemapLease,
} from "#core/redis/shipments/remaps.ts";
import { commitShipments, missingOf } from "#core/redis/shipments/shipments.ts";
import type { Ticking } from "#core/tick.ts";
import { replaceHistory } from "#processors/commits.ts";

export interface RemapDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
  /** Absent: nothing was ever archived. */
  readonly archive?: Archive;
}

const LOOK_EVERY_MS = 2_000;
/** Rounds of reading and committing again when events got ahead; then the page waits for its next turn. */
const ROUNDS = 20;

type Done = Omit<RemapProgress, "cursor" | "isScan">;

export function startRemaps(deps: RemapDeps): Ticking {
  return startTickingThroughOutages(deps.log, "remaps", LOOK_EVERY_MS, async (isStopping) => {
    let isDone = false;
    while (!isDone && !isStopping()) isDone = !(await processNext(deps, isStopping));
  });
}

/** @returns whether there was a remap to process */
async function processNext(deps: RemapDeps, isStopping: () => boolean): Promise<boolean> {
  const { redis, log } = deps;
  const remap = await nextRemap(redis);
  const lease = remap && (await takeRemapLease(redis));
  if (!lease) return false;
  try {
    await processRemap(deps, remap.id, lease, isStopping);
    return true;
  } catch (error) {
    if (!(error instanceof LockLost)) throw error;
    log.warn({ reason: error.message }, "remap retrying");
    return false;
  } finally {
    await lease.release();
  }
}

/**
 * @param isStopping checked before every page
 * @throws {LockLost} before the first write after the lease has expired
 */
async function processRemap(
  deps: RemapDeps,
  id: string,
  lease: Lock,
  isStopping: () => boolean,
): Promise<void> {
  const { redis, live, log } = deps;
  const remap = await started(redis, id);
  if (!remap) return;
  let { progress } = remap;
  const scope = scopeOf(remap.courier, remap.entries, progress.isScan);
  const pages = shipmentsToRemap(redis, await live.refresh(), scope, progress.cursor);
  for await (const page of pages) {
    if (isStopping()) return;
    await lease.assertHeld();
    const done = await remapPage(deps, scope, page);
    progress = {
      cursor: page.cursor,
      isScan: progress.isScan,
      examined: progress.examined + done.examined,
      shipments: progress.shipments + done.shipments,
      statesChanged: progress.statesChanged + done.statesChanged,
      events: progress.events + done.events,
    };
    await saveProgress(redis, lease, id, progress);
  }
  await finishRemap(redis, lease, id, live.now());
  const { shipments, statesChanged } = progress;
  log.info({ remap: id, courier: remap.courier, shipments, statesChanged }, "remap done");
}

/** The remap as it stands now, brought into effect first where whoever announced it has died before. */
async function started(redis: Redis, id: string): Promise<Remap | null> {
  const remap = await readRemap(redis, id);
  if (remap?.state !== "announced") return remap;
  return underSetupLock(redis, async () => {
    const latest = await readRemap(redis, id);
    if (latest?.state === "announced") await applyRemap(redis, id, latest);
    return readRemap(redis, id);
  });
}

async function remapPage(
  deps: RemapDeps,
  scope: RemapScope,
  { ids, mayBeArchived, isRepetition }: ShipmentPage,
): Promise<Done> {
  const { redis, live } = deps;
  let open = ids;
  const examined = isRepetition ? (await missingOf(redis, ids)).length : ids.length;
  const done = { examined, shipments: 0, statesChanged: 0, events: 0 };
  for (let round = 0; open.length > 0 && round < ROUNDS; round += 1) {
    const configuration = await live.refresh();
    const { couriers, version } = configuration;
    const catalogue = couriers.get(scope.courier)?.catalogue ?? new Map();
    const lost = mayBeArchived ? await fromArchive(deps, configuration, open) : NONE;
    const remappings = await readRemappings(redis, scope, catalogue, open);
    const commits = remappings.map(({ from, history, facts }) =>
      replaceHistory(from, history, facts),
    );
    const outcomes = await commitShipments(redis, commits, live.now(), version);
    const conflicts = remappings.flatMap(({ from, history, facts }, at) => {
      if (outcomes[at] !== "committed") return [from.id];
      done.shipments += 1;
      done.statesChanged += Number(commits[at]?.stamp ?? false);
      done.events += facts.filter((fact, index) => fact !== history[index]).length;
      return [];
    });
    // One that has moved to the archive meanwhile may not have been remapped.
    const left = mayBeArchived ? open.filter((one) => !lost.has(one)) : [];
    open = [...new Set([...conflicts, ...(await missingOf(redis, left))])];
  }
  if (open.length > 0) throw new Error("shipments kept changing while they were remapped");
  return done;
}

const NONE: ReadonlySet<number> = new Set();

/**
 * Shipments with unmapped events that have been silent for long enough to be archived come back.
 * @returns those that are in neither store, or whose rows are damaged
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE: the remap waits
 */
async function fromArchive(
  { redis, archive }: RemapDeps,
  configuration: Configuration,
  ids: readonly number[],
): Promise<ReadonlySet<number>> {
  const missing = await missingOf(redis, ids);
  if (!archive) return new Set(missing);
  const channelIds = channelsOfShipments(configuration, missing);
  const { back } = await bringBack(redis, archive, missing, channelIds);
  return new Set(missing.filter((id) => !back.has(id)));
}

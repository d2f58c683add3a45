/**
 * Processes remaps in the background: every shipment with facts of the codes is remapped and refolded from its history,
 * in one version-checked commit. Pages are done again after a crash; what is mapped already changes nothing.
 */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
import type { WakeableTicking } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { type Lock, LockLost } from "#core/platform/redis/lock.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";
import { readRemappings, scopeOf, shipmentsToRemap } from "#core/statuses/store/remappings.ts";
import {
  applyRemap,
  finishRemap,
  nextRemap,
  type Remap,
  readRemap,
  saveProgress,
  takeRemapLease,
} from "#core/statuses/store/remaps.ts";
import { createRefold } from "./refold-ahead.ts";
import { progressAfter, type RemapDeps, remapPage } from "./remap-page.ts";

const LOOK_EVERY_MS = 2_000;

export function startRemaps(deps: RemapDeps): WakeableTicking {
  const refold = createRefold(deps);
  return startTickingThroughOutages(deps.log, "remaps", LOOK_EVERY_MS, async (isStopping) => {
    let isDone = false;
    while (!isDone && !isStopping()) isDone = !(await processNext(deps, isStopping));
    if (!isStopping()) await refold(isStopping);
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
  const read = ({ couriers }: Configuration, ids: readonly number[]) =>
    readRemappings(redis, scope, couriers.get(scope.courier)?.catalogue ?? new Map(), ids);
  const pages = shipmentsToRemap(redis, await live.refresh(), scope, progress.cursor);
  for await (const page of pages) {
    if (isStopping()) return;
    await lease.assertHeld();
    const done = await remapPage(deps, page, read);
    progress = progressAfter(progress, page.cursor, done);
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

/**
 * Once in the life of an installation, behind an upgrade from a version that ordered events by `occurredAt` alone: shipments
 * that an event ahead of its time decides are refolded from their history, as a remap refolds them. All that Redis has are
 * looked at, then those in the archive that an event from the future may hold. A step at a time, behind every remap that
 * an operator has ordered; another process goes on where one has stopped.
 */

import { channelsOfShipments, hasArchived } from "#core/archive/store/archive.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { type Lock, LockLost } from "#core/platform/redis/lock.ts";
import { partitionCount } from "#core/platform/redis/partitions.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { isDecidedAhead } from "#core/shipments/rules/refold.ts";
import { ALL_SHIPMENTS, readHeldAhead, shipmentsToRemap } from "#core/statuses/store/remappings.ts";
import {
  finishRefold,
  type RemapProgress,
  readRefold,
  saveRefold,
  takeRemapLease,
} from "#core/statuses/store/remaps.ts";
import { progressAfter, type RemapDeps, remapPage } from "./remap-page.ts";

/** Pages of 100 shipments that one step looks at, unless it changes the status of some: those are told of before others are. */
const PAGES_PER_STEP = limit(
  50,
  "pages of shipments that one step of the refold after an upgrade reads",
  "the next step goes on",
);
/** Shipments brought back together. */
const BROUGHT_BACK_TOGETHER = 100;

type Step = (isStopping: () => boolean) => Promise<void>;

/** @returns takes the next step; nothing is left to do once it is done */
export function createRefold(deps: RemapDeps): Step {
  let isDone = false;
  return async (isStopping) => {
    if (isDone) return;
    const { redis, log } = deps;
    const lease = await takeRemapLease(redis);
    if (!lease) return;
    try {
      const progress = await readRefold(redis);
      if (progress) await takeStep(deps, progress, lease, isStopping);
      else isDone = true;
    } catch (error) {
      if (!(error instanceof LockLost)) throw error;
      log.warn({ reason: error.message }, "refold retrying");
    } finally {
      await lease.release();
    }
  };
}

async function takeStep(
  deps: RemapDeps,
  from: RemapProgress,
  lease: Lock,
  isStopping: () => boolean,
): Promise<void> {
  const { redis, live, log } = deps;
  const step = from.cursor.partition < partitionCount("k") ? refoldHot : refoldArchived;
  const progress = await step(deps, from, lease, isStopping);
  if (progress) return saveRefold(redis, lease, progress);
  await finishRefold(redis, lease, live.now());
  log.info("shipments that events ahead of their time decided are put right");
}

/** Shipments that Redis has. */
async function refoldHot(
  deps: RemapDeps,
  from: RemapProgress,
  lease: Lock,
  isStopping: () => boolean,
): Promise<RemapProgress> {
  const { redis, live } = deps;
  const pages = shipmentsToRemap(redis, await live.refresh(), ALL_SHIPMENTS, from.cursor);
  let progress = from;
  let looked = 0;
  for await (const page of pages) {
    if (isStopping() || looked === PAGES_PER_STEP) return progress;
    looked += 1;
    await lease.assertHeld();
    const done = await remapPage(deps, page, (_, ids) => readHeldAhead(redis, ids));
    progress = progressAfter(progress, page.cursor, done);
    if (done.statesChanged > 0) return progress;
  }
  return { ...progress, cursor: { partition: partitionCount("k"), key: "0", shipmentId: 0 } };
}

/**
 * Rows of the archive, from the cursor's channel and shipment on. What is put right lives in Redis again until it is archived again.
 * @returns null = there are no more
 */
async function refoldArchived(
  deps: RemapDeps,
  from: RemapProgress,
  lease: Lock,
): Promise<RemapProgress | null> {
  const { redis, archive } = deps;
  if (!archive || !(await hasArchived(redis))) return null;
  const { key, shipmentId } = from.cursor;
  const { ids, next } = await archive.ahead({ channelId: Number(key), id: shipmentId });
  let progress = from;
  for (const some of chunks(ids, BROUGHT_BACK_TOGETHER)) {
    const page = { ids: await heldIn(deps, some), mayBeArchived: true, isRepetition: false };
    await lease.assertHeld();
    const done = await remapPage(deps, page, (_, open) => readHeldAhead(redis, open));
    progress = progressAfter(progress, from.cursor, done);
  }
  if (next === null) return null;
  const cursor = {
    partition: partitionCount("k"),
    key: String(next.channelId),
    shipmentId: next.id,
  };
  return { ...progress, cursor };
}

/** Those that an event ahead of its time decides: no other comes back. Damaged rows are left out. */
async function heldIn(
  { archive, live }: RemapDeps,
  ids: readonly number[],
): Promise<readonly number[]> {
  const channelIds = channelsOfShipments(await live.refresh(), ids);
  const rows = (await archive?.read(ids, channelIds)) ?? [];
  const held = rows.filter(({ facts }) => isDecidedAhead(facts.shipment.state));
  return [...new Set(held.map(({ whole }) => whole.id))];
}

/**
 * Works off import jobs (document 1, `POST /v2/shipments/import`), some chunks at a time, so that a large job does not hold
 * up the others. A chunk that was cut short is created again: what exists already is a DUPLICATE_SHIPMENT then. An error of
 * ours ends no job: its work is tried again (`worker.ts`).
 */

import { background } from "#core/background.ts";
import {
  type ImportItem,
  readImportItem,
  trackingNumberOf,
} from "#core/domain/shipments/import-item.ts";
import type { ShipmentInput } from "#core/domain/shipments/shipment.ts";
import type { Log } from "#core/log.ts";
import { turns } from "#core/next-turn.ts";
import type { Redis } from "#core/redis/client/client.ts";
import type { Channel } from "#core/redis/config/configuration.ts";
import type { Live } from "#core/redis/config/live.ts";
import {
  type ChunkItems,
  type ChunkResult,
  finishChunk,
  finishJob,
  type ImportFailure,
  type ImportJob,
  type ImportSuccess,
  openChunks,
  readChunk,
  readJob,
} from "#core/redis/merchant/import-jobs.ts";
import type { Taken } from "#core/redis/merchant/work-queue.ts";
import {
  beginItems,
  type CreateItemsDeps,
  type ItemOutcome,
} from "#core/redis/shipments/create-items.ts";
import type { WorkVerdict } from "#processors/worker.ts";

export interface ImportDeps {
  readonly redis: Redis;
  readonly log: Log;
  readonly live: Live;
}

/** Items that are created in one step: some 4 ms of work. */
const ITEMS_PER_STEP = 10;
/** While nobody else is at work: as many as one call of `create.lua` takes. */
const ITEMS_PER_STEP_ALONE = 100;
/** Chunks of one job before the next job's turn. */
const CHUNKS_AT_ONCE = 4;

const CHANNEL_GONE = "The channel is gone; items without a result were not created.";

export function importWork(
  deps: ImportDeps,
): (taken: Taken, isStopping: () => boolean) => Promise<WorkVerdict> {
  const { redis, live } = deps;
  return async ({ partition, id }, isStopping) => {
    const job = await readJob(redis, partition, id, live.now());
    if (!job) return null;
    if (live.configuration().channels.has(job.channelId)) {
      const open = await openChunks(redis, partition, id);
      const done = await workOff(deps, partition, job, open.slice(0, CHUNKS_AT_ONCE), isStopping);
      if (done < open.length) return live.now();
      await finish(deps, partition, job, null);
    } else {
      await finish(deps, partition, job, CHANNEL_GONE);
    }
    return null;
  };
}

/**
 * In order, so that of two equal items the first is created; while one chunk is recorded the next is created. Whatever
 * fails, what was created is recorded before the job hears of it.
 * @returns how many chunks were worked off
 */
async function workOff(
  deps: ImportDeps,
  partition: number,
  job: ImportJob,
  chunks: readonly number[],
  isStopping: () => boolean,
): Promise<number> {
  const recordings: Promise<unknown>[] = [];
  let done = 0;
  try {
    for (const chunk of chunks) {
      if (isStopping()) break;
      const made = await createChunk(deps, partition, job, chunk);
      const before = recordings.at(-1);
      if (made) recordings.push(record(deps, partition, job, chunk, made, before));
      // Heard of at the end; until then its fault is nobody's.
      recordings.at(-1)?.catch(() => {});
      await before;
      done += 1;
    }
  } finally {
    await Promise.allSettled(recordings);
  }
  await Promise.all(recordings);
  return done;
}

/** After the chunk before it, whatever became of that. */
async function record(
  { redis }: ImportDeps,
  partition: number,
  { jobId }: ImportJob,
  chunk: number,
  { registered, result }: MadeChunk,
  before: Promise<unknown> | undefined,
): Promise<void> {
  await Promise.allSettled([before]);
  await registered;
  await finishChunk(redis, partition, jobId, chunk, result);
}

interface MadeItems {
  readonly outcomes: readonly ItemOutcome[];
  readonly registered: Promise<void>;
}

interface MadeChunk {
  readonly result: ChunkResult;
  readonly registered: Promise<void>;
}

/** @returns null when the chunk is done */
async function createChunk(
  { redis, log, live }: ImportDeps,
  partition: number,
  { jobId, channelId }: ImportJob,
  chunk: number,
): Promise<MadeChunk | null> {
  const raw = await readChunk(redis, partition, jobId, chunk);
  if (raw === null) return null;
  const configuration = live.configuration();
  const channel = configuration.channels.get(channelId);
  if (!channel) throw new Error("the channel is gone");
  const nowMs = live.now();
  const items = await readItems(raw, nowMs);
  const valid = items.flatMap((item) => (item.kind === "valid" ? [item.input] : []));
  const begun = await beginInSteps({ redis, log, configuration }, channel, valid, nowMs);
  const { outcomes, registered } = begun;
  let next = 0;
  const all = items.map((item) =>
    item.kind === "valid" ? outcomes[next++] : { kind: "rejected" as const, errors: item.errors },
  );
  return { result: chunkResult(chunk, raw.items.map(trackingNumberOf), all), registered };
}

/** While others are at work the registration of a part is a step of its own; otherwise it goes on beside the next part. */
async function beginInSteps(
  deps: CreateItemsDeps,
  channel: Channel,
  items: readonly ShipmentInput[],
  nowMs: number,
): Promise<MadeItems> {
  const outcomes: ItemOutcome[] = [];
  const registrations: Promise<void>[] = [];
  while (outcomes.length < items.length) {
    const begun = await background(channel.id, async (isAlone) => {
      const from = outcomes.length;
      const part = items.slice(from, from + (isAlone ? ITEMS_PER_STEP_ALONE : ITEMS_PER_STEP));
      return { isAlone, ...(await beginItems(deps, channel, part, nowMs)) };
    });
    outcomes.push(...begun.outcomes);
    if (begun.isAlone) registrations.push(begun.register());
    else await background(channel.id, begun.register);
  }
  return { outcomes, registered: Promise.all(registrations).then(() => {}) };
}

async function readItems(
  { items, mayBeIllFormed }: ChunkItems,
  nowMs: number,
): Promise<ImportItem[]> {
  const turn = turns();
  const read: ImportItem[] = [];
  for (const item of items) {
    read.push(readImportItem(item, mayBeIllFormed, nowMs));
    if (turn.due()) await turn.take();
  }
  return read;
}

/** @param chunk position of its first item @param numbers tracking numbers as given, of all items */
function chunkResult(
  chunk: number,
  numbers: readonly (string | null)[],
  outcomes: readonly (ItemOutcome | undefined)[],
): ChunkResult {
  const successes: ImportSuccess[] = [];
  const errors: ImportFailure[] = [];
  outcomes.forEach((outcome, at) => {
    const index = chunk + at;
    const trackingNumber = numbers[at] ?? null;
    if (outcome?.kind === "created") {
      const { id, trackingToken } = outcome;
      successes.push({ index, id, trackingNumber: trackingNumber ?? "", trackingToken });
    } else {
      errors.push({ index, trackingNumber, errors: outcome?.errors ?? [] });
    }
  });
  return { successes, errors };
}

/** Completed when at least one shipment succeeded (document 1, "Job"). */
async function finish(
  { redis, live }: ImportDeps,
  partition: number,
  job: ImportJob,
  fault: string | null,
): Promise<void> {
  const now = (await readJob(redis, partition, job.jobId, live.now())) ?? job;
  const allFailed = now.failedItems === now.totalItems;
  const error = fault ?? (allFailed ? `All ${now.totalItems} shipments failed.` : null);
  await finishJob(redis, partition, job, error, live.now());
}

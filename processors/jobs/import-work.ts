/**
 * Processes import jobs (document 1, `POST /v2/shipments/import`), some chunks at a time, so that a large job does not hold
 * up the others. A chunk that was cut short is created again: what exists already is a DUPLICATE_SHIPMENT then. An error of
 * ours ends no job: its work is tried again (`worker.ts`).
 */

import type { Live } from "#core/configuration/store/live.ts";
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
} from "#core/merchants/store/jobs/import-jobs.ts";
import { background } from "#core/platform/process/background.ts";
import type { Log } from "#core/platform/process/log.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  type ImportItem,
  readImportItem,
  trackingNumberOf,
} from "#core/shipments/rules/import-item.ts";
import type { ShipmentInput } from "#core/shipments/rules/shipment.ts";
import {
  type BegunItems,
  beginItems,
  type ItemOutcome,
} from "#core/shipments/store/create-items.ts";
import type { Holding, WorkerOptions } from "./worker.ts";

export interface ImportDeps {
  readonly redis: Redis;
  readonly log: Log;
  readonly live: Live;
}

/** Items that are created and registered in one step: about 8 ms of work. */
const ITEMS_PER_STEP = limit(
  10,
  "import items created in one step beside other work",
  "the next step",
);
/** While nobody else is at work: as many as one call of `create.lua` takes. */
const ITEMS_PER_STEP_ALONE = limit(
  100,
  "import items created in one step without other work",
  "the next step",
);
/** Chunks of one job before the next job's turn, and for how long it may begin another one. */
const CHUNKS_AT_ONCE = limit(4, "chunks of an import in one turn", "the next import's turn");
const TURN_MS = limit(
  500,
  "time after which a turn of an import starts no other chunk",
  "the next import's turn",
);

const CHANNEL_GONE = "The channel is gone; items without a result were not created.";

export function importWork(deps: ImportDeps): WorkerOptions["work"] {
  const { redis, live } = deps;
  return async ({ partition, id }, holding) => {
    const job = await readJob(redis, partition, id, live.now());
    if (!job) return null;
    if (live.configuration().channels.has(job.channelId)) {
      const open = await openChunks(redis, partition, id);
      const turn = { ...deps, partition, job, holding };
      const done = await processChunks(turn, open.slice(0, CHUNKS_AT_ONCE));
      if (done < open.length) return live.now();
      await finish(deps, partition, job, null);
    } else {
      await finish(deps, partition, job, CHANNEL_GONE);
    }
    return null;
  };
}

/** A job's turn. */
interface Turn extends ImportDeps {
  readonly partition: number;
  readonly job: ImportJob;
  readonly holding: Holding;
}

/**
 * In order, so that of two equal items the first is created; while one chunk is recorded the next is created. Whatever
 * fails, chunks that were created are recorded before the job hears of it.
 * @returns number of chunks done
 */
async function processChunks(turn: Turn, chunks: readonly number[]): Promise<number> {
  const recordings: Promise<unknown>[] = [];
  const untilMs = performance.now() + TURN_MS;
  let done = 0;
  try {
    for (const chunk of chunks) {
      if (turn.holding.isStopping() || (done > 0 && performance.now() > untilMs)) break;
      const made = await createChunk(turn, chunk);
      const before = recordings.at(-1);
      if (made) recordings.push(record(turn, chunk, made, before));
      // Awaited below; until then its failure must not count as unhandled.
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
  turn: Turn,
  chunk: number,
  { registered, result }: MadeChunk,
  before: Promise<unknown> | undefined,
): Promise<void> {
  const { redis, partition, job, holding } = turn;
  await Promise.allSettled([before]);
  await registered;
  await holding.untilAvailable(() => finishChunk(redis, partition, job.jobId, chunk, result));
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
async function createChunk(turn: Turn, chunk: number): Promise<MadeChunk | null> {
  const { redis, live, partition, job } = turn;
  const raw = await readChunk(redis, partition, job.jobId, chunk);
  if (raw === null) return null;
  const items = await readItems(raw, live.now());
  const valid = items.flatMap((item) => (item.kind === "valid" ? [item.input] : []));
  const { outcomes, registered } = await createInSteps(turn, valid);
  let next = 0;
  const all = items.map((item) =>
    item.kind === "valid" ? outcomes[next++] : { kind: "rejected" as const, errors: item.errors },
  );
  return { result: chunkResult(chunk, raw.items.map(trackingNumberOf), all), registered };
}

/**
 * While others are at work a step ends with its registrations; otherwise they go on beside the next one. A chunk that is started
 * again reports the shipments it had created as duplicates: what has begun waits for the store instead.
 */
async function createInSteps(turn: Turn, items: readonly ShipmentInput[]): Promise<MadeItems> {
  const outcomes: ItemOutcome[] = [];
  const registrations: Promise<void>[] = [];
  const step = () =>
    background(turn.job.channelId, async (isAlone) => {
      const from = outcomes.length;
      const part = items.slice(from, from + (isAlone ? ITEMS_PER_STEP_ALONE : ITEMS_PER_STEP));
      const begun = await beginPart(turn, part);
      outcomes.push(...begun.outcomes);
      if (isAlone) registrations.push(begun.register());
      else await begun.register();
    });
  while (outcomes.length < items.length) {
    await (outcomes.length === 0 ? step() : turn.holding.untilAvailable(step));
  }
  return { outcomes, registered: Promise.all(registrations).then(() => {}) };
}

/** With the configuration of this moment: a chunk may take a while. */
async function beginPart(
  { redis, log, live, job }: Turn,
  items: readonly ShipmentInput[],
): Promise<BegunItems> {
  const configuration = live.configuration();
  const channel = configuration.channels.get(job.channelId);
  if (!channel) throw new Error("the channel is gone");
  return beginItems({ redis, log, configuration }, channel, items, live.now());
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

/** Import jobs in the company's partition (document 1, `POST /v2/shipments/import`): items in chunks, results by chunk. */

import { randomUUID } from "node:crypto";
import noteCallbackSource from "#core/merchants/store/note-callback.lua" with { type: "text" };
import { type JsonPieces, jsonList, jsonObject } from "#core/platform/process/json-text.ts";
import { nextTurn } from "#core/platform/process/next-turn.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition, companyTag, workKeys } from "#core/platform/redis/keys.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Warning } from "#core/platform/schema/unknown-members.ts";
import { type ImportCallbackView, UNSENT_CALLBACK } from "#core/shipments/rules/import-callback.ts";
import { importSummary, successView } from "#core/shipments/rules/import-result.ts";
import type { ItemError } from "#core/shipments/rules/new-shipment.ts";
import acceptSource from "./accept-job.lua" with { type: "text" };
import finishChunkSource from "./finish-chunk.lua" with { type: "text" };
import finishJobSource from "./finish-job.lua" with { type: "text" };

const acceptScript = script(acceptSource);
const finishChunkScript = script(finishChunkSource);
const finishJobScript = script(finishJobSource);
const noteCallbackScript = script(noteCallbackSource);

/**
 * Limits on the items that are created and recorded together: their number and their text (the last item may exceed it).
 */
const ITEMS_PER_CHUNK = limit(250, "import items in a chunk", "the next chunk");
const CHUNK_CHARACTERS = limit(
  512 * 1024,
  "text of the items of a chunk, in characters",
  "the next chunk",
);
/** Items of a job that has not been accepted expire after an hour. */
const UNACCEPTED_SECONDS = 3_600;
/** By the service clock; the keys go by themselves some time after. */
const KEPT_MS = 30 * 86_400_000;
const KEPT_SECONDS = KEPT_MS / 1000;
/** Unfinished jobs of one channel: each may hold as much as a body. */
const OPEN_JOBS_PER_CHANNEL = limit(20, "unfinished jobs of a channel", "503 with `Retry-After`");
export const LATEST_JOBS_PER_PARTITION = limit(
  1_000,
  "jobs of a company partition that the panel lists",
  "the oldest are no longer listed; merchants still read them by their ids",
);
export const CALLBACKS_PER_CHANNEL = limit(
  100,
  "callbacks of imports of a channel that wait",
  "the job says that it was not sent",
);

export type JobStatus = "processing" | "completed" | "failed";

export interface ImportJob {
  readonly jobId: string;
  readonly companyId: number;
  readonly channelId: number;
  readonly status: JobStatus;
  readonly totalItems: number;
  readonly processedItems: number;
  readonly failedItems: number;
  readonly webhookUrl: string | null;
  /** What came of the completion call; null until then. */
  readonly callback: ImportCallbackView | null;
  /** Set only when the status is failed. */
  readonly error: string | null;
  readonly createdAtMs: number;
  readonly completedAtMs: number | null;
  /** Of the request. */
  readonly warnings: readonly Warning[];
}

export interface ImportSuccess {
  /** Position in the request. */
  readonly index: number;
  readonly id: number;
  readonly trackingNumber: string;
  readonly trackingToken: string | null;
}

export interface ImportFailure {
  readonly index: number;
  readonly trackingNumber: string | null;
  readonly errors: readonly ItemError[];
}

export interface ChunkResult {
  readonly successes: readonly ImportSuccess[];
  readonly errors: readonly ImportFailure[];
}

/** Some items of an import, in the form in which they are stored until they are created. */
export interface ImportChunk {
  /** Name of the chunk: the position of its first item in the request. */
  readonly from: number;
  /** JSON array. */
  readonly text: string;
}

/** Groups items into chunks as they arrive. */
export function importChunks() {
  const chunks: ImportChunk[] = [];
  let from = 0;
  let items: string[] = [];
  let characters = 0;

  function close(): void {
    if (items.length === 0) return;
    chunks.push({ from, text: `[${items.join(",")}]` });
    from += items.length;
    items = [];
    characters = 0;
  }

  return {
    add(item: unknown): void {
      const text = JSON.stringify(item);
      items.push(text);
      characters += text.length;
      if (items.length === ITEMS_PER_CHUNK || characters >= CHUNK_CHARACTERS) close();
    },
    /** Items that were added. */
    count(): number {
      return from + items.length;
    },
    chunks(): readonly ImportChunk[] {
      close();
      return chunks;
    },
  };
}

export interface NewJob {
  readonly companyId: number;
  readonly channelId: number;
  readonly chunks: readonly ImportChunk[];
  /** Number of items in all chunks. */
  readonly total: number;
  readonly webhookUrl: string | null;
  /** Absent: none. */
  readonly warnings?: readonly Warning[];
}

/** @returns null when the channel has too many unfinished jobs */
export async function acceptJob(redis: Redis, job: NewJob, nowMs: number): Promise<string | null> {
  const { companyId, channelId, chunks, total, webhookUrl, warnings = [] } = job;
  const jobId = randomUUID();
  const partition = companyPartition(companyId);
  const keys = companyKeys(partition);
  const { waiting, owners } = workKeys(companyTag(partition), "imports");
  const written: Promise<unknown>[] = [];
  for (const { from, text } of chunks) {
    const chunk = redis.multi().hSet(keys.jobItems(jobId), String(from), text);
    // Always with an expiry: what is never accepted disappears by itself.
    written.push(chunk.expire(keys.jobItems(jobId), UNACCEPTED_SECONDS).exec());
    // A failure is reported below, with those of the other chunks.
    written.at(-1)?.catch(() => {});
    await nextTurn();
  }
  await Promise.all(written);
  const fields = {
    companyId,
    channelId,
    status: "processing",
    createdAtMs: nowMs,
    total,
    processed: 0,
    failed: 0,
    webhookUrl: webhookUrl ?? "",
    warnings: warnings.length === 0 ? "" : JSON.stringify(warnings),
  };
  const reply = await run<number>(
    redis,
    acceptScript,
    [
      ...[keys.job(jobId), keys.jobItems(jobId), keys.openJobs(channelId), waiting],
      ...[keys.latestJobs, owners],
    ],
    [
      ...[jobId, String(OPEN_JOBS_PER_CHANNEL), String(KEPT_SECONDS), String(nowMs)],
      ...[`${channelId}:${jobId}`, String(LATEST_JOBS_PER_PARTITION)],
      String(channelId),
      ...Object.entries(fields).flatMap(([field, value]) => [field, String(value)]),
    ],
  );
  if (reply !== 1) return null;
  announce(redis, "imports");
  return jobId;
}

/** Null when there is none or it is older than 30 days. */
export async function readJob(
  redis: Redis,
  partition: number,
  jobId: string,
  nowMs: number,
): Promise<ImportJob | null> {
  const row = await redis.hGetAll(companyKeys(partition).job(jobId));
  const createdAtMs = Number(row["createdAtMs"]);
  if (row["status"] === undefined || nowMs - createdAtMs >= KEPT_MS) return null;
  return {
    jobId,
    companyId: Number(row["companyId"]),
    channelId: Number(row["channelId"]),
    status: row["status"] as JobStatus,
    totalItems: Number(row["total"]),
    processedItems: Number(row["processed"]),
    failedItems: Number(row["failed"]),
    webhookUrl: row["webhookUrl"] || null,
    callback: row["callback"] ? JSON.parse(row["callback"]) : null,
    error: row["error"] || null,
    warnings: row["warnings"] ? JSON.parse(row["warnings"]) : [],
    createdAtMs,
    completedAtMs: row["completedAtMs"] ? Number(row["completedAtMs"]) : null,
  };
}

/** A job among the latest ones of its partition. */
export interface LatestJob {
  readonly partition: number;
  readonly channelId: number;
  readonly jobId: string;
  readonly createdAtMs: number;
}

/** The latest jobs of these partitions, under way or finished, in no particular order. */
export async function listLatestJobs(
  redis: Redis,
  partitions: readonly number[],
): Promise<LatestJob[]> {
  const lists = await Promise.all(
    partitions.map(async (partition) => {
      const rows = await redis.zRangeWithScores(companyKeys(partition).latestJobs, 0, -1);
      return rows.map(({ value, score }) => {
        const [channelId = "", jobId = ""] = value.split(":");
        return { partition, channelId: Number(channelId), jobId, createdAtMs: score };
      });
    }),
  );
  return lists.flat();
}

/** Chunks without a result, by the position of their first item, in order. */
export async function openChunks(
  redis: Redis,
  partition: number,
  jobId: string,
): Promise<number[]> {
  const names = await redis.hKeys(companyKeys(partition).jobItems(jobId));
  return names.map(Number).sort((one, other) => one - other);
}

export interface ChunkItems {
  readonly items: readonly unknown[];
  /** Only then must the strings be checked: in this JSON only a lone surrogate is written as such an escape. */
  readonly mayBeIllFormed: boolean;
}

/** Null when the chunk is done. */
export async function readChunk(
  redis: Redis,
  partition: number,
  jobId: string,
  chunk: number,
): Promise<ChunkItems | null> {
  const text = await redis.hGet(companyKeys(partition).jobItems(jobId), String(chunk));
  return text === null ? null : { items: JSON.parse(text), mayBeIllFormed: text.includes("\\ud") };
}

export async function finishChunk(
  redis: Redis,
  partition: number,
  jobId: string,
  chunk: number,
  result: ChunkResult,
): Promise<void> {
  const keys = companyKeys(partition);
  const { successes, errors } = result;
  const numbers = [successes.length + errors.length, errors.length, KEPT_SECONDS].map(String);
  await run(
    redis,
    finishChunkScript,
    [keys.job(jobId), keys.jobItems(jobId), keys.jobResults(jobId)],
    [String(chunk), JSON.stringify(result), ...numbers],
  );
}

/** Ends a job, and queues its callback. @param error null = completed */
export async function finishJob(
  redis: Redis,
  partition: number,
  { jobId, channelId, webhookUrl }: ImportJob,
  error: string | null,
  nowMs: number,
): Promise<void> {
  const keys = companyKeys(partition);
  const { waiting } = workKeys(companyTag(partition), "import-callbacks");
  await run(
    redis,
    finishJobScript,
    [
      ...[keys.job(jobId), keys.jobItems(jobId), keys.openJobs(channelId)],
      ...[keys.callbacks(channelId), waiting],
    ],
    [
      ...[jobId, error === null ? "completed" : "failed", error ?? "", String(nowMs)],
      ...[webhookUrl === null ? 0 : CALLBACKS_PER_CHANNEL, KEPT_SECONDS].map(String),
      JSON.stringify(UNSENT_CALLBACK),
    ],
  );
  if (webhookUrl !== null) announce(redis, "import-callbacks");
}

export async function noteCallback(
  redis: Redis,
  partition: number,
  { jobId, channelId }: Pick<ImportJob, "jobId" | "channelId">,
  outcome: ImportCallbackView,
): Promise<void> {
  const keys = companyKeys(partition);
  const args = [jobId, JSON.stringify(outcome)];
  await run(redis, noteCallbackScript, [keys.job(jobId), keys.callbacks(channelId)], args);
}

/** The `result` of a finished job as JSON: the results of all items, in the order of the request. */
export async function importResultText(
  redis: Redis,
  partition: number,
  { jobId, totalItems }: Pick<ImportJob, "jobId" | "totalItems">,
  publicUrl: string,
): Promise<JsonPieces> {
  const rows = Object.entries(await redis.hGetAll(companyKeys(partition).jobResults(jobId)));
  const successes: ImportSuccess[] = [];
  const errors: ImportFailure[] = [];
  for (const [, text] of rows.sort(([one], [other]) => Number(one) - Number(other))) {
    const result: ChunkResult = JSON.parse(text);
    successes.push(...result.successes);
    errors.push(...result.errors);
    await nextTurn();
  }
  return jsonObject({
    summary: JSON.stringify(importSummary(successes.length, totalItems)),
    successes: await jsonList(successes, (success) => successView(success, publicUrl)),
    errors: await jsonList(errors, (failure) => failure),
  });
}

/** The first items that were not created, in the order of the request. */
export async function readFailures(
  redis: Redis,
  partition: number,
  jobId: string,
  most: number,
): Promise<ImportFailure[]> {
  const rows = Object.entries(await redis.hGetAll(companyKeys(partition).jobResults(jobId)));
  const failures: ImportFailure[] = [];
  for (const [, text] of rows.sort(([one], [other]) => Number(one) - Number(other))) {
    if (failures.length >= most) break;
    failures.push(...(JSON.parse(text) as ChunkResult).errors);
    await nextTurn();
  }
  return failures.slice(0, most);
}

/** Whether an import of the channel has not ended. */
export async function hasOpenJobs(
  redis: Redis,
  { companyId, id }: { readonly companyId: number; readonly id: number },
): Promise<boolean> {
  return (await redis.sCard(companyKeys(companyPartition(companyId)).openJobs(id))) > 0;
}

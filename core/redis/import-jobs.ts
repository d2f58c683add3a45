/** Import jobs in the company's partition (document 1, `POST /v2/shipments/import`): items in chunks, results by chunk. */
import { randomUUID } from "node:crypto";
import type { ItemError } from "#core/domain/new-shipment.ts";
import { type Redis, run, script } from "./client.ts";
import { companyKeys, companyPartition, companyTag, workKeys } from "./keys.ts";
import acceptSource from "./scripts/accept-job.lua" with { type: "text" };
import finishChunkSource from "./scripts/finish-chunk.lua" with { type: "text" };
import finishJobSource from "./scripts/finish-job.lua" with { type: "text" };

const acceptScript = script(acceptSource);
const finishChunkScript = script(finishChunkSource);
const finishJobScript = script(finishJobSource);

/** Items that are created, and recorded, together. */
export const ITEMS_PER_CHUNK = 250;
/** By the service clock; the keys go by themselves some time after. */
const KEPT_MS = 30 * 86_400_000;
const KEPT_SECONDS = KEPT_MS / 1000;
/** Unfinished jobs of one channel: each may hold as much as a body. */
const OPEN_JOBS_PER_CHANNEL = 20;

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
  /** Set only when the status is failed. */
  readonly error: string | null;
  readonly createdAtMs: number;
  readonly completedAtMs: number | null;
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

export interface NewJob {
  readonly companyId: number;
  readonly channelId: number;
  readonly items: readonly unknown[];
  readonly webhookUrl: string | null;
}

/** @returns null when the channel has too many unfinished jobs */
export async function acceptJob(redis: Redis, job: NewJob, nowMs: number): Promise<string | null> {
  const { companyId, channelId, items, webhookUrl } = job;
  const jobId = randomUUID();
  const partition = companyPartition(companyId);
  const keys = companyKeys(partition);
  const { waiting } = workKeys(companyTag(partition), "imports");
  // Together no more than one body; Redis makes them durable with one fsync.
  const chunks = redis.multi();
  for (let from = 0; from < items.length; from += ITEMS_PER_CHUNK) {
    const chunk = items.slice(from, from + ITEMS_PER_CHUNK);
    chunks.hSet(keys.jobItems(jobId), String(from / ITEMS_PER_CHUNK), JSON.stringify(chunk));
  }
  // What is not accepted after all goes by itself; all or nothing, so that no items stand without an end.
  chunks.expire(keys.jobItems(jobId), KEPT_SECONDS);
  await chunks.exec();
  const fields = {
    ...{ companyId, channelId, status: "processing", createdAtMs: nowMs },
    ...{ total: items.length, processed: 0, failed: 0, webhookUrl: webhookUrl ?? "" },
  };
  const reply = await run<number>(
    redis,
    acceptScript,
    [keys.job(jobId), keys.jobItems(jobId), keys.openJobs(channelId), waiting],
    [jobId, String(OPEN_JOBS_PER_CHANNEL), String(KEPT_SECONDS), String(nowMs)].concat(
      Object.entries(fields).flatMap(([field, value]) => [field, String(value)]),
    ),
  );
  return reply === 1 ? jobId : null;
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
    error: row["error"] || null,
    createdAtMs,
    completedAtMs: row["completedAtMs"] ? Number(row["completedAtMs"]) : null,
  };
}

/** Chunks that nothing has come of yet, in order. */
export async function openChunks(
  redis: Redis,
  partition: number,
  jobId: string,
): Promise<number[]> {
  const names = await redis.hKeys(companyKeys(partition).jobItems(jobId));
  return names.map(Number).sort((one, other) => one - other);
}

/** Null when the chunk is done. */
export async function readChunk(
  redis: Redis,
  partition: number,
  jobId: string,
  chunk: number,
): Promise<unknown[] | null> {
  const text = await redis.hGet(companyKeys(partition).jobItems(jobId), String(chunk));
  return text === null ? null : JSON.parse(text);
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

/** @param error null = completed */
export async function finishJob(
  redis: Redis,
  partition: number,
  { jobId, channelId }: ImportJob,
  error: string | null,
  nowMs: number,
): Promise<void> {
  const keys = companyKeys(partition);
  await run(
    redis,
    finishJobScript,
    [keys.job(jobId), keys.jobItems(jobId), keys.openJobs(channelId)],
    [jobId, error === null ? "completed" : "failed", error ?? "", String(nowMs)],
  );
}

/** Everything that came of the job, in the order of the request. */
export async function readJobResult(
  redis: Redis,
  partition: number,
  jobId: string,
): Promise<ChunkResult> {
  const rows = Object.entries(await redis.hGetAll(companyKeys(partition).jobResults(jobId)));
  const chunks = rows
    .sort(([one], [other]) => Number(one) - Number(other))
    .map(([, text]): ChunkResult => JSON.parse(text));
  return {
    successes: chunks.flatMap(({ successes }) => successes),
    errors: chunks.flatMap(({ errors }) => errors),
  };
}

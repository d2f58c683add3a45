/** Jobs of parcel creations too large to be answered at once: done when they are stored (document 1, "Job"). */
import { randomUUID } from "node:crypto";
import type { Redis } from "#core/redis/client/client.ts";
import { companyKeys, companyPartition } from "#core/redis/client/keys.ts";

/** As long as import jobs. */
const KEPT_MS = 30 * 86_400_000;

export interface ParcelJob {
  readonly jobId: string;
  readonly channelId: number;
  readonly hashes: readonly string[];
  readonly createdAtMs: number;
}

export async function saveParcelJob(
  redis: Redis,
  companyId: number,
  job: Omit<ParcelJob, "jobId">,
): Promise<string> {
  const jobId = randomUUID();
  const key = companyKeys(companyPartition(companyId)).parcelJob(jobId);
  await redis.set(key, JSON.stringify({ ...job, jobId }), { PX: KEPT_MS });
  return jobId;
}

export async function readParcelJob(
  redis: Redis,
  companyId: number,
  jobId: string,
): Promise<ParcelJob | null> {
  const text = await redis.get(companyKeys(companyPartition(companyId)).parcelJob(jobId));
  return text ? JSON.parse(text) : null;
}

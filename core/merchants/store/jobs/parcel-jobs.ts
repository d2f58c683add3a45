/** Jobs of parcel creations too large to be answered at once: done when they are stored (document 1, "Job"). */
import { randomUUID } from "node:crypto";
import type { Channel } from "#core/configuration/store/configuration.ts";
import { ownRecord } from "#core/merchants/store/own-record.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";

/** As long as import jobs. */
const KEPT_MS = 30 * 86_400_000;

export interface ParcelJob {
  /** First in the stored text too (`own-record.ts`). */
  readonly channelId: number;
  readonly jobId: string;
  readonly hashes: readonly string[];
  readonly createdAtMs: number;
}

export async function saveParcelJob(
  redis: Redis,
  companyId: number,
  { channelId, ...job }: Omit<ParcelJob, "jobId">,
): Promise<string> {
  const jobId = randomUUID();
  const key = companyKeys(companyPartition(companyId)).parcelJob(jobId);
  await redis.set(key, JSON.stringify({ channelId, ...job, jobId }), { PX: KEPT_MS });
  return jobId;
}

/** Null when the channel has none of that id. */
export async function readParcelJob(
  redis: Redis,
  { companyId, id }: Pick<Channel, "companyId" | "id">,
  jobId: string,
): Promise<ParcelJob | null> {
  const text = await redis.get(companyKeys(companyPartition(companyId)).parcelJob(jobId));
  return ownRecord<ParcelJob>(text, id);
}

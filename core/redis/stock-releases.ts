/** Stock releases of a shipment: what was asked of the carrier and what it answered. */
import type { Redis } from "./client.ts";
import { companyKeys, shipmentPartition } from "./keys.ts";

export interface StockRelease {
  readonly releaseId: number;
  readonly action: string;
  readonly redeliveryDate: string | null;
  readonly askedAtMs: number;
  /** Null while the carrier has not answered, and when it could not be reached. */
  readonly outcome: string | null;
}

/** Releases remembered of one shipment; the oldest go. */
const KEPT = 50;

export async function newReleaseId(redis: Redis, shipmentId: number): Promise<number> {
  return redis.incr(companyKeys(shipmentPartition(shipmentId)).releaseIds);
}

export async function keepRelease(
  redis: Redis,
  shipmentId: number,
  release: StockRelease,
): Promise<void> {
  const key = companyKeys(shipmentPartition(shipmentId)).releases(shipmentId);
  await redis.hSet(key, String(release.releaseId), JSON.stringify(release));
  if ((await redis.hLen(key)) <= KEPT) return;
  const ids = (await redis.hKeys(key)).map(Number).sort((one, other) => one - other);
  await redis.hDel(key, ids.slice(0, ids.length - KEPT).map(String));
}

/** Oldest first. */
export async function readReleases(redis: Redis, shipmentId: number): Promise<StockRelease[]> {
  const key = companyKeys(shipmentPartition(shipmentId)).releases(shipmentId);
  const texts = await redis.hVals(key);
  return texts
    .map((text): StockRelease => JSON.parse(text))
    .sort((one, other) => one.releaseId - other.releaseId);
}

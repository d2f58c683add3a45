/**
 * Lives of test parcels under way, in a leased queue of the company's partition (`work-queue.ts`). New shipments of a channel's
 * shadow are found by its index, whose ids only grow: creating them costs nothing more than creating others.
 */

import type { Channel } from "#core/configuration/store/configuration.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { idsAfter } from "#core/platform/redis/ids-after.ts";
import {
  companyKeys,
  companyPartition,
  companyTag,
  shipmentPartition,
  workKeys,
} from "#core/platform/redis/keys.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";

const QUEUE = "test-parcels";
const FOUND_AT_ONCE = limit(500, "new test parcels found at once", "the next round");

/** A life under way: of a new shipment, or what follows a stock release. */
export interface LifeUnderWay {
  readonly shipmentId: number;
  /** `own`, or `release-<id>`. */
  readonly name: string;
  /** Of the release; empty of a new shipment. */
  readonly action: string;
  /** UTC milliseconds; 0 = the shipment's creation. */
  readonly beganMs: number;
}

/**
 * Puts shipments of a shadow that nobody has found before into the queue. Finding one twice is harmless: its events have the same
 * ids.
 * @returns how many
 */
export async function findTestParcels(
  redis: Redis,
  { id: channelId, companyId }: Pick<Channel, "id" | "companyId">,
  nowMs: number,
): Promise<number> {
  const partition = companyPartition(companyId);
  const { index, testParcelsFound } = companyKeys(partition);
  const all = index(channelId, "id");
  const last = Number((await redis.get(testParcelsFound(channelId))) ?? 0);
  const [newest] = await redis.zRange(all, -1, -1);
  if (Number(newest ?? 0) <= last) return 0;
  const position = { shipmentId: last, place: (await redis.zCard(all)) - 1 };
  const { ids } = await idsAfter(redis, all, position, FOUND_AT_ONCE);
  if (ids.length === 0) return 0;
  const { waiting } = workKeys(companyTag(partition), QUEUE);
  const lives = ids.map((id) => ({ value: encode(id, "own", "", 0), score: nowMs }));
  await redis.zAdd(waiting, lives, { condition: "NX" });
  // Last: who dies before it finds them again.
  await redis.set(testParcelsFound(channelId), String(ids.at(-1)));
  announce(redis, QUEUE);
  return ids.length;
}

/** The parcel goes on when its depot has released it; the same release again is the same life. */
export async function beginReleasedLife(
  redis: Redis,
  shipmentId: number,
  release: { readonly releaseId: number; readonly action: string; readonly beganMs: number },
): Promise<void> {
  const { waiting } = workKeys(companyTag(shipmentPartition(shipmentId)), QUEUE);
  const { releaseId, action, beganMs } = release;
  const value = encode(shipmentId, `release-${releaseId}`, action, beganMs);
  await redis.zAdd(waiting, { value, score: beganMs }, { condition: "NX" });
  announce(redis, QUEUE);
}

function encode(shipmentId: number, name: string, action: string, beganMs: number): string {
  return [shipmentId, name, action, beganMs].join(" ");
}

export function decodeLife(work: string): LifeUnderWay {
  const [shipmentId = "", name = "", action = "", beganMs = ""] = work.split(" ");
  return { shipmentId: Number(shipmentId), name, action, beganMs: Number(beganMs) };
}

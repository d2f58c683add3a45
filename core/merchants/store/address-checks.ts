/** Address checks to be billed: every accepted request, by channel and month of Europe/Rome. */

import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";

interface CheckOwner {
  readonly companyId: number;
  readonly channelId: number;
}

export async function countAddressCheck(
  redis: Redis,
  { companyId, channelId }: CheckOwner,
  nowMs: number,
): Promise<void> {
  const { addressChecks } = companyKeys(companyPartition(companyId));
  await redis.hIncrBy(addressChecks, `${channelId}:${romeDate(nowMs).slice(0, 7)}`, 1);
}

export interface CheckedMonth {
  /** `YYYY-MM` */
  readonly month: string;
  readonly checks: number;
}

/** Oldest month first. */
export async function readAddressChecks(
  redis: Redis,
  { companyId, channelId }: CheckOwner,
): Promise<CheckedMonth[]> {
  const counts = await redis.hGetAll(companyKeys(companyPartition(companyId)).addressChecks);
  return Object.entries(counts)
    .map(([field, checks]) => ({ field: field.split(":"), checks: Number(checks) }))
    .filter(({ field }) => field[0] === String(channelId))
    .map(({ field, checks }) => ({ month: field[1] ?? "", checks }))
    .sort((one, other) => one.month.localeCompare(other.month));
}

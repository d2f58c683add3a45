/**
 * API keys that were verified lately and the context they stand for: the cache behind `X-Auth-Cache` (document 1,
 * "Authentication"). An entry counts for the configuration version it was verified against only, so that a revoked key
 * never comes out of it.
 */
import type { Redis } from "#core/platform/redis/client.ts";
import { verifiedKeyKey } from "#core/platform/redis/keys.ts";

/** Entries are at most as many as there are keys, and live this long. */
const REMEMBERED_MS = 5 * 60_000;

export interface VerifiedKey {
  readonly keyId: number;
  readonly channelId: number;
  readonly companyId: number;
}

export async function readVerifiedKey(
  redis: Redis,
  apiKeyHash: string,
  version: number,
  nowMs: number,
): Promise<VerifiedKey | null> {
  const text = await redis.get(verifiedKeyKey(apiKeyHash));
  if (text === null) return null;
  const { untilMs, verifiedAgainst, ...context } = JSON.parse(text);
  return nowMs < untilMs && verifiedAgainst === version ? context : null;
}

export async function rememberVerifiedKey(
  redis: Redis,
  apiKeyHash: string,
  { keyId, channelId, companyId }: VerifiedKey,
  version: number,
  nowMs: number,
): Promise<void> {
  const untilMs = nowMs + REMEMBERED_MS;
  const entry = { keyId, channelId, companyId, verifiedAgainst: version, untilMs };
  await redis.set(verifiedKeyKey(apiKeyHash), JSON.stringify(entry), { PX: REMEMBERED_MS });
}

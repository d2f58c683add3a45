/**
 * Links to a courier's quality report for people without an account. Only the link contains its token; the store has the hash.
 */

import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { QUALITY_LINKS_KEY } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hashToken, newToken } from "#core/platform/secrets/secrets.ts";

/** Of a courier, neither revoked nor expired. */
const LINKS_PER_COURIER = limit(20, "links to a courier's quality report", "409");
const TOKEN = /^quality_[0-9a-f]{64}$/;

export interface QualityLink {
  readonly id: string;
  readonly courier: string;
  /** Who made it, as in the audit log. */
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly untilMs: number;
}

/** @returns the link and its token, which is shown this once; null if the courier has as many as it may have */
export function makeQualityLink(
  redis: Redis,
  wanted: Omit<QualityLink, "id">,
): Promise<{ readonly link: QualityLink; readonly token: string } | null> {
  return underSetupLock(redis, async () => {
    const all = await readAll(redis);
    const over = all.filter(({ link }) => link.untilMs <= wanted.createdAtMs);
    if (over.length > 0)
      await redis.hDel(
        QUALITY_LINKS_KEY,
        over.map(({ hash }) => hash),
      );
    const own = all.filter(
      ({ link }) => link.courier === wanted.courier && link.untilMs > wanted.createdAtMs,
    );
    if (own.length >= LINKS_PER_COURIER) return null;
    const token = newToken("quality_");
    const link = { ...wanted, id: newToken("ql_").slice(0, 19) };
    await redis.hSet(QUALITY_LINKS_KEY, hashToken(token), JSON.stringify(link));
    return { link, token };
  });
}

/** Those in force, the newest first. */
export async function listQualityLinks(
  redis: Redis,
  courier: string,
  nowMs: number,
): Promise<QualityLink[]> {
  const all = await readAll(redis);
  return all
    .map(({ link }) => link)
    .filter((link) => link.courier === courier && nowMs < link.untilMs)
    .sort((one, other) => other.createdAtMs - one.createdAtMs);
}

/** @returns the link that it was; null if the courier has no such link in force */
export async function revokeQualityLink(
  redis: Redis,
  courier: string,
  id: string,
  nowMs: number,
): Promise<QualityLink | null> {
  const all = await readAll(redis);
  const found = all.find(({ link }) => link.courier === courier && link.id === id);
  if (!found || found.link.untilMs <= nowMs) return null;
  return (await redis.hDel(QUALITY_LINKS_KEY, found.hash)) === 1 ? found.link : null;
}

/** Null = there is none, or it was revoked or has expired. */
export async function qualityLinkOf(
  redis: Redis,
  token: string,
  nowMs: number,
): Promise<QualityLink | null> {
  if (!TOKEN.test(token)) return null;
  const text = await redis.hGet(QUALITY_LINKS_KEY, hashToken(token));
  const link: QualityLink | null = text === null ? null : JSON.parse(text);
  return link && nowMs < link.untilMs ? link : null;
}

async function readAll(
  redis: Redis,
): Promise<{ readonly hash: string; readonly link: QualityLink }[]> {
  const all = await redis.hGetAll(QUALITY_LINKS_KEY);
  return Object.entries(all).map(([hash, text]) => ({ hash, link: JSON.parse(text) }));
}

/** Stock releases of a shipment: what was asked of the carrier and what it answered. */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, shipmentPartition } from "#core/platform/redis/keys.ts";
import { idStride } from "#core/platform/redis/partitions.ts";
import { swapField } from "#core/platform/redis/swap-field.ts";
import claimSource from "./claim-release.lua" with { type: "text" };

const claimScript = script(claimSource);

export interface AskedRelease {
  readonly action: string;
  readonly redeliveryDate: string | null;
  /** Identifies equal releases during one stay in the depot. */
  readonly digest: string;
  /** UTC milliseconds. */
  readonly askedAtMs: number;
}

export interface AnsweredRelease {
  readonly outcome: ReleaseOutcome | "refused" | "unreachable" | "unreadable";
  readonly message: string | null;
}

/** The status of a carrier that has accepted a release. */
export type ReleaseOutcome = "ok" | "error" | "pending";

export interface AcceptedRelease extends AnsweredRelease {
  readonly outcome: ReleaseOutcome;
}

/** The members of the answer are absent until the carrier has answered. */
export type StockRelease = { readonly releaseId: number } & AskedRelease & Partial<AnsweredRelease>;

export type ReleaseClaim =
  | { readonly kind: "send" | "busy"; readonly releaseId: number }
  | { readonly kind: "answered"; readonly releaseId: number; readonly answer: AcceptedRelease };

/** Releases remembered of one shipment; the oldest go. */
const KEPT = 50;

/**
 * @param patienceMs how long the carrier may take to answer: after that, a release without an outcome is sent again under
 * the same id
 */
export async function claimRelease(
  redis: Redis,
  shipmentId: number,
  asked: AskedRelease,
  patienceMs: number,
): Promise<ReleaseClaim> {
  const partition = shipmentPartition(shipmentId);
  const { releases, releaseIds } = companyKeys(partition);
  const args = [JSON.stringify(asked), ...[patienceMs, KEPT, partition, idStride()].map(String)];
  const [kind, releaseId, text] = await run<[ReleaseClaim["kind"], number, string?]>(
    redis,
    claimScript,
    [releases(shipmentId), releaseIds],
    args,
  );
  if (kind !== "answered") return { kind, releaseId };
  return { kind, releaseId, answer: JSON.parse(text ?? "") as AcceptedRelease };
}

export async function answerRelease(
  redis: Redis,
  shipmentId: number,
  releaseId: number,
  release: AskedRelease & AnsweredRelease,
): Promise<void> {
  const { releases } = companyKeys(shipmentPartition(shipmentId));
  await redis.hSet(releases(shipmentId), String(releaseId), JSON.stringify(release));
}

/** Null if the shipment has no such release, or no longer keeps it. */
export async function readRelease(
  redis: Redis,
  shipmentId: number,
  releaseId: number,
): Promise<StockRelease | null> {
  const { releases } = companyKeys(shipmentPartition(shipmentId));
  const text = await redis.hGet(releases(shipmentId), String(releaseId));
  return text === null ? null : { releaseId, ...JSON.parse(text) };
}

/** @param stored ids and releases in turn */
export function releaseAmong(stored: readonly string[], releaseId: number): StockRelease | null {
  const at = stored.findIndex((text, place) => place % 2 === 0 && Number(text) === releaseId);
  return at < 0 ? null : { releaseId, ...JSON.parse(stored[at + 1] ?? "") };
}

/** Oldest first. */
export async function readReleases(redis: Redis, shipmentId: number): Promise<StockRelease[]> {
  const { releases } = companyKeys(shipmentPartition(shipmentId));
  return Object.entries(await redis.hGetAll(releases(shipmentId)))
    .map(([id, text]): StockRelease => ({ releaseId: Number(id), ...JSON.parse(text) }))
    .sort((one, other) => one.releaseId - other.releaseId);
}

/** Forgets what the carrier has answered in words. */
export async function forgetReleaseMessages(redis: Redis, shipmentId: number): Promise<void> {
  const { releases } = companyKeys(shipmentPartition(shipmentId));
  const key = releases(shipmentId);
  for (const [id, from] of Object.entries(await redis.hGetAll(key))) {
    const release: AskedRelease & Partial<AnsweredRelease> = JSON.parse(from);
    if (!release.message) continue;
    await swapField(redis, key, id, { from, to: JSON.stringify({ ...release, message: null }) });
  }
}

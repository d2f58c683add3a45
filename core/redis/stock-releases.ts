/** Stock releases of a shipment: what was asked of the carrier and what it answered. */
import { type Redis, run, script } from "./client.ts";
import { digestOf } from "./digest.ts";
import { companyKeys, PARTITIONS, shipmentPartition } from "./keys.ts";
import claimIdSource from "./scripts/claim-id.lua" with { type: "text" };
import keepSource from "./scripts/keep-release.lua" with { type: "text" };

const claimIdScript = script(claimIdSource);
const keepScript = script(keepSource);

/** Releases remembered of one shipment; the oldest go. */
const KEPT = 50;
/** A release that nobody knows the outcome of is asked for again under its id. */
const UNKNOWN_KEPT_MS = 7 * 86_400_000;
/** One that the carrier has accepted is answered again: as long as callers repeat a request whose answer got lost. */
const ACCEPTED_KEPT_MS = 3_600_000;

export interface StockRelease {
  readonly releaseId: number;
  readonly action: string;
  readonly redeliveryDate: string | null;
  readonly askedAtMs: number;
  /** Null while the carrier has not answered. */
  readonly outcome: string | null;
  /** The carrier's words; null = none. */
  readonly message: string | null;
}

/** Asked again with the same words, while the same event holds the shipment in its depot, it is the same release. */
export interface AskedRelease {
  readonly shipmentId: number;
  /** Key of the fact that its status comes from. */
  readonly heldBy: string;
  readonly action: string;
  readonly notes: string | null;
  readonly redeliveryDate: string | null;
  readonly address: object | null;
}

export interface ClaimedRelease {
  readonly releaseId: number;
  /** What is known of it; null where it is asked for the first time. */
  readonly before: StockRelease | null;
}

export async function claimRelease(redis: Redis, asked: AskedRelease): Promise<ClaimedRelease> {
  const partition = shipmentPartition(asked.shipmentId);
  const keys = companyKeys(partition);
  const releaseId = await run<number>(
    redis,
    claimIdScript,
    [claimKeyOf(asked), keys.releaseIds],
    [String(partition), String(PARTITIONS), String(UNKNOWN_KEPT_MS)],
  );
  const text = await redis.hGet(keys.releases(asked.shipmentId), String(releaseId));
  return { releaseId, before: text === null ? null : JSON.parse(text) };
}

/** @param outcome what the carrier's answer means for the same request: whether it is this release */
export async function keepRelease(
  redis: Redis,
  asked: AskedRelease,
  release: StockRelease,
  outcome: "unknown" | "accepted" | "refused",
): Promise<void> {
  const { releases } = companyKeys(shipmentPartition(asked.shipmentId));
  const claimMs = { unknown: "", accepted: String(ACCEPTED_KEPT_MS), refused: "0" }[outcome];
  await run<number>(
    redis,
    keepScript,
    [releases(asked.shipmentId), claimKeyOf(asked)],
    [String(release.releaseId), JSON.stringify(release), String(KEPT), claimMs],
  );
}

function claimKeyOf({ shipmentId, ...asked }: AskedRelease): string {
  const { heldBy, action, notes, redeliveryDate, address } = asked;
  const told = JSON.stringify([heldBy, action, notes, redeliveryDate, address]);
  const digest = digestOf(told).toString("base64url", 0, 16);
  return companyKeys(shipmentPartition(shipmentId)).releaseClaim(shipmentId, digest);
}

/** Oldest first. */
export async function readReleases(redis: Redis, shipmentId: number): Promise<StockRelease[]> {
  const key = companyKeys(shipmentPartition(shipmentId)).releases(shipmentId);
  const texts = await redis.hVals(key);
  return texts
    .map((text): StockRelease => JSON.parse(text))
    .sort((one, other) => one.releaseId - other.releaseId);
}

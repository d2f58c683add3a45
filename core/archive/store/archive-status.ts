/** What the archiver's latest complete round left, for those who watch it. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { ARCHIVER_STATUS_KEY, companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { readArchiveSummary } from "./archive-summary.ts";

const DAY_MS = 86_400_000;

export interface ArchiveStatus {
  /** Shipments in the archive. */
  readonly archived: number;
  /** Shipments in Redis without a new status for as long: they have not ended, or something is kept for them. */
  readonly quiet: number;
  /** When the round ended, UTC milliseconds of the process' own clock. */
  readonly endedAtMs: number;
}

type Known = Pick<Configuration, "companies" | "channels">;

/** Counts, and notes that a round is complete. */
export async function noteRound(
  redis: Redis,
  { companies, channels }: Known,
  nowMs: number,
  afterDays: number,
): Promise<ArchiveStatus> {
  let archived = 0;
  for (const companyId of companies.keys()) archived += await archivedOf(redis, companyId);
  const quiet = await countQuiet(redis, { channels }, nowMs, afterDays);
  const status = { archived, quiet, endedAtMs: Date.now() };
  const texts = Object.entries(status).map(([name, value]) => [name, String(value)] as const);
  await redis.hSet(ARCHIVER_STATUS_KEY, { ...Object.fromEntries(texts), backlog: "0" });
  return status;
}

async function countQuiet(
  redis: Redis,
  { channels }: Pick<Known, "channels">,
  nowMs: number,
  afterDays: number,
): Promise<number> {
  let quiet = 0;
  const last = Math.floor((nowMs - afterDays * DAY_MS) / 1_000);
  for (const { id, companyId } of afterDays === 0 ? [] : channels.values()) {
    const { index } = companyKeys(companyPartition(companyId));
    quiet += await redis.zCount(index(id, "upd"), 1, last);
  }
  return quiet;
}

/** @returns how many shipments of a company, or of one of its channels, are in the archive */
export async function archivedOf(
  redis: Redis,
  companyId: number,
  channelId?: number,
): Promise<number> {
  const summary = await readArchiveSummary(redis, companyId);
  const counts = [...(summary?.channels ?? [])]
    .filter(([id]) => channelId === undefined || id === channelId)
    .flatMap(([, one]) => [...one.counts.values()]);
  return counts.reduce((sum, count) => sum + count, 0);
}

/** A round begins: what has become quiet since the latest complete one is about to move, as far as it is over. */
export async function noteBacklog(
  redis: Redis,
  known: Pick<Known, "channels">,
  nowMs: number,
  afterDays: number,
): Promise<void> {
  const quiet = await countQuiet(redis, known, nowMs, afterDays);
  const before = Number((await redis.hGet(ARCHIVER_STATUS_KEY, "quiet")) ?? 0);
  await redis.hSet(ARCHIVER_STATUS_KEY, "backlog", String(Math.max(0, quiet - before)));
}

/** Shipments have moved to the archive with one insert. */
export async function noteMoved(redis: Redis, shipments: number): Promise<void> {
  if (shipments === 0) return;
  await redis
    .multi()
    .hIncrBy(ARCHIVER_STATUS_KEY, "backlog", -shipments)
    .hSet(ARCHIVER_STATUS_KEY, { moved: String(shipments), movedAtMs: String(Date.now()) })
    .exec();
}

/** @returns null if no round was ever complete */
export async function readArchiveStatus(redis: Redis): Promise<ArchiveStatus | null> {
  const { archived, quiet, endedAtMs } = await redis.hGetAll(ARCHIVER_STATUS_KEY);
  if (endedAtMs === undefined) return null;
  return { archived: Number(archived), quiet: Number(quiet), endedAtMs: Number(endedAtMs) };
}

/** What the archiver is doing, as of its latest insert. */
export interface ArchiveProgress {
  /** Shipments that a round under way has yet to look at, at most. */
  readonly backlog: number;
  /** The latest insert that has moved shipments; null = there was none. */
  readonly lastBatch: { readonly shipments: number; readonly atMs: number } | null;
}

export async function readArchiveProgress(redis: Redis): Promise<ArchiveProgress> {
  const [backlog, moved, atMs] = await redis.hmGet(ARCHIVER_STATUS_KEY, [
    ...["backlog", "moved", "movedAtMs"],
  ]);
  const lastBatch = moved && atMs ? { shipments: Number(moved), atMs: Number(atMs) } : null;
  return { backlog: Math.max(0, Number(backlog ?? 0)), lastBatch };
}

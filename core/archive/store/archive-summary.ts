/**
 * What the archive holds of a company, as Redis knows it. Rows of the archive count by what is said here, so that a shipment
 * stands on one side at any moment: a batch of rows counts from the step on that removes its shipments from Redis, and a row
 * counts no more from the step on that brings its shipment back.
 */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import readSummarySource from "#core/shipments/store/read-summary.lua" with { type: "text" };
import allocateSource from "./allocate-batches.lua" with { type: "text" };
import returnSource from "./return-batches.lua" with { type: "text" };

const readSummaryScript = script(readSummarySource);
const allocateScript = script(allocateSource);
const returnScript = script(returnSource);

/** Where scores of batches that were never settled begin among those that do not count (`remove.lua`); times are smaller. */
export const SKIPPED_FROM = 2 ** 50;

/** Rows of the archive that count. */
export interface Counting {
  /** The last batch that is settled; 0 = none. */
  readonly batch: number;
  /** The first batch that is not removed for good; 0 = none was. */
  readonly floor: number;
  /** `id batch` of rows that do not count. */
  readonly absentRows: readonly string[];
  readonly absentBatches: readonly number[];
}

export interface ArchiveSummary extends Counting {
  /** Grows with every move to the archive or back. */
  readonly moves: number;
  readonly channels: ReadonlyMap<number, ChannelSummary>;
}

export interface ChannelSummary {
  /** Archived shipments by status (its number). */
  readonly counts: ReadonlyMap<number, number>;
  /** Highest values of any shipment that was ever archived. */
  readonly id: number;
  /** Seconds since 1970. */
  readonly updated: number;
  /** Days since the year 0. */
  readonly shipped: number;
}

/** @returns null if nothing of the company was ever archived */
export async function readArchiveSummary(
  redis: Redis,
  companyId: number,
): Promise<ArchiveSummary | null> {
  const keys = companyKeys(companyPartition(companyId));
  const own = [keys.archived(companyId), keys.absentRows(companyId), keys.absentBatches(companyId)];
  const reply = await run<[string[], string[], string[]]>(redis, readSummaryScript, own, []);
  const [fields, absentRows, absentBatches] = reply;
  if (fields.length === 0) return null;
  return { ...summaryOf(fields), absentRows, absentBatches: absentBatches.map(Number) };
}

/** @param fields and values in turn, as `remove.lua` writes them */
function summaryOf(fields: readonly string[]) {
  const channels = new Map<number, { -readonly [K in keyof Draft]: Draft[K] }>();
  let [batch, moves, floor] = [0, 0, 0];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [kind, channel, status] = (fields[at] ?? "").split(":");
    const value = Number(fields[at + 1]);
    if (kind === "batch") batch = value;
    else if (kind === "seq") moves = value;
    else if (kind === "floor") floor = value;
    else if (channel !== undefined) {
      const id = Number(channel);
      const own = channels.get(id) ?? { counts: new Map(), id: 0, updated: 0, shipped: 0 };
      channels.set(id, own);
      if (kind === "n") own.counts.set(Number(status), value);
      else if (kind === "i") own.id = value;
      else if (kind === "u") own.updated = value;
      else if (kind === "s") own.shipped = value;
    }
  }
  return { batch, floor, moves, channels: channels as ReadonlyMap<number, ChannelSummary> };
}

interface Draft extends ChannelSummary {
  readonly counts: Map<number, number>;
}

/** Whether a row of the archive counts. */
export function counts({ batch, floor, absentRows, absentBatches }: Counting) {
  const rows = new Set(absentRows);
  const batches = new Set(absentBatches);
  return (row: { readonly id: number; readonly batch: number }): boolean =>
    row.batch >= floor &&
    row.batch <= batch &&
    !batches.has(row.batch) &&
    !rows.has(`${row.id} ${row.batch}`);
}

/**
 * Numbers for batches that are about to be written. Whatever becomes of them: a batch that is not settled before a later one
 * never counts.
 * @returns the first of them
 */
export async function nextBatches(redis: Redis, companyId: number, count: number): Promise<number> {
  const keys = companyKeys(companyPartition(companyId));
  return run<number>(redis, allocateScript, [keys.archived(companyId)], [String(count)]);
}

/** Gives numbers back that nothing was inserted under, and never will be, unless others have been allocated since. */
export async function returnBatches(
  redis: Redis,
  companyId: number,
  first: number,
  last: number,
): Promise<void> {
  const keys = companyKeys(companyPartition(companyId));
  const args = [String(first), String(last)];
  await run<number>(redis, returnScript, [keys.archived(companyId)], args);
}

/** Batches that were never settled, the oldest first. */
export async function readSkipped(redis: Redis, companyId: number): Promise<number[]> {
  const { absentBatches } = companyKeys(companyPartition(companyId));
  const options = { BY: "SCORE" } as const;
  const members = await redis.zRange(absentBatches(companyId), SKIPPED_FROM, "+inf", options);
  return members.map(Number);
}

export async function forgetSkipped(
  redis: Redis,
  companyId: number,
  batches: readonly number[],
): Promise<void> {
  if (batches.length === 0) return;
  const { absentBatches } = companyKeys(companyPartition(companyId));
  await redis.zRem(absentBatches(companyId), batches.map(String));
}

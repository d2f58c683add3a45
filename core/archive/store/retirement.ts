/**
 * Archived shipments whose time is over, as Redis knows them: batches of the archive below the company's floor count no more. Their
 * references go first, so that no event finds a shipment that is about to be removed.
 */
import { chunks } from "#core/platform/process/chunks.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  companyPartition,
  numberKeys,
  shipmentPartition,
} from "#core/platform/redis/keys.ts";
import { LockLost } from "#core/platform/redis/lock.ts";
import { limit } from "#core/platform/schema/limit.ts";
import forgetNumbersSource from "#core/shipments/store/forget-numbers.lua" with { type: "text" };
import noteSource from "./note-retirement.lua" with { type: "text" };
import retireSource from "./retire-batches.lua" with { type: "text" };

const forgetNumbersScript = script(forgetNumbersSource);
const noteScript = script(noteSource);
const retireScript = script(retireSource);

/** Numbers that one call frees: less than 1 ms of Redis. */
export const FREED_PER_CALL = limit(200, "tracking numbers freed by one call", "the next call");
export const REMOVALS_KEPT = limit(
  100,
  "reports of removals kept of each company",
  "the oldest go",
);

export interface Retirement {
  /** The batch that the floor is being raised to; null = none. */
  readonly to: number | null;
  /** They were archived before this day, YYYY-MM-DD. */
  readonly before: string;
  /** When nothing found these shipments any more, UTC milliseconds; null = something may yet. */
  readonly forgottenAtMs: number | null;
  /** The day before which everything archived has been removed, YYYY-MM-DD. */
  readonly doneBefore: string;
}

/** What removed shipments of a company at once. */
export interface Removal {
  /** Service clock, UTC milliseconds. */
  readonly atMs: number;
  /** They were archived before this day, YYYY-MM-DD. */
  readonly archivedBefore: string;
  readonly shipments: number;
}

const summaryKey = (companyId: number) =>
  companyKeys(companyPartition(companyId)).archived(companyId);
const removalsKey = (companyId: number) =>
  companyKeys(companyPartition(companyId)).removals(companyId);

export async function readRetirement(redis: Redis, companyId: number): Promise<Retirement> {
  const fields = ["retiring", "retiring-before", "forgotten", "retired-before"];
  const [to, before, forgotten, doneBefore] = await redis.hmGet(summaryKey(companyId), fields);
  return {
    to: to ? Number(to) : null,
    before: before ?? "",
    forgottenAtMs: forgotten ? Number(forgotten) : null,
    doneBefore: doneBefore ?? "",
  };
}

/** From now on whoever goes on removes these batches to the end. */
export function noteRetiring(
  redis: Redis,
  companyId: number,
  to: number,
  before: string,
): Promise<void> {
  return note(redis, companyId, to, true, ["retiring", String(to), "retiring-before", before]);
}

/** @throws {LockLost} where another process has ended this removal */
async function note(
  redis: Redis,
  companyId: number,
  to: number,
  begins: boolean,
  fields: readonly string[],
): Promise<void> {
  const args = [String(to), begins ? "1" : "0", ...fields];
  if ((await run<number>(redis, noteScript, [summaryKey(companyId)], args)) !== 1) {
    throw new LockLost();
  }
}

/** @returns how many rows of the batches are done, in the order of their ids by channel: nothing finds their shipments any more */
export async function readForgottenRows(redis: Redis, companyId: number): Promise<number> {
  return Number((await redis.hGet(summaryKey(companyId), "forgotten-rows")) ?? 0);
}

export function noteForgottenRows(
  redis: Redis,
  companyId: number,
  to: number,
  rows: number,
): Promise<void> {
  return note(redis, companyId, to, false, ["forgotten-rows", String(rows)]);
}

export function noteForgotten(redis: Redis, companyId: number, to: number): Promise<void> {
  return note(redis, companyId, to, false, ["forgotten", String(Date.now())]);
}

export async function noteRetiredBefore(
  redis: Redis,
  companyId: number,
  day: string,
): Promise<void> {
  await redis.hSet(summaryKey(companyId), "retired-before", day);
}

export interface RetiredCount {
  readonly channel: number;
  /** Its number. */
  readonly status: number;
  readonly shipments: number;
}

/** @returns false if something has moved to the archive or back since `moves` was read */
export async function retireBatches(
  redis: Redis,
  companyId: number,
  { from, to, moves }: { readonly from: number; readonly to: number; readonly moves: number },
  counts: readonly RetiredCount[],
  removal: Removal,
): Promise<boolean> {
  const left = counts.flatMap(({ channel, status, shipments }) => [channel, status, shipments]);
  const numbers = [from, to, moves].map(String);
  const args = [...numbers, JSON.stringify(removal), String(REMOVALS_KEPT), ...left.map(String)];
  const keys = [summaryKey(companyId), removalsKey(companyId)];
  return (await run<number>(redis, retireScript, keys, args)) === 1;
}

/** The newest first. */
export async function readRemovals(redis: Redis, companyId: number): Promise<Removal[]> {
  const texts = await redis.lRange(removalsKey(companyId), 0, -1);
  return texts.map((text): Removal => JSON.parse(text));
}

export interface OwnedNumber {
  readonly shipmentId: number;
  readonly channelId: number;
  readonly courier: string;
  readonly number: string;
}

/** @param owned of one company */
export async function forgetNumbers(redis: Redis, owned: readonly OwnedNumber[]): Promise<void> {
  for (const part of chunks(owned, FREED_PER_CALL)) {
    const named = part.flatMap(({ shipmentId, channelId, number, courier }) => {
      const names = companyKeys(shipmentPartition(shipmentId));
      return numberKeys(names, channelId, number).map((key) => ({
        keys: [names.shipment(shipmentId), key],
        args: [courier, String(shipmentId)],
      }));
    });
    const keys = named.flatMap((one) => one.keys);
    const args = named.flatMap((one) => one.args);
    await run<number>(redis, forgetNumbersScript, keys, args);
  }
}

/** Rows of batches that ceased to count before a moment, until they are deleted. */
export interface Deletable {
  readonly floor: number;
  /** When it was raised last, UTC milliseconds of Redis' clock. */
  readonly raisedAtMs: number;
  /** Rows of batches below it are deleted. */
  readonly deleted: number;
}

export async function readDeletable(redis: Redis, companyId: number): Promise<Deletable> {
  const known = await redis.hmGet(summaryKey(companyId), ["floor", "floored", "deleted"]);
  const [floor = 0, raisedAtMs = 0, deleted = 0] = known.map((text) => Number(text ?? 0));
  return { floor, raisedAtMs, deleted };
}

export async function noteDeleted(redis: Redis, companyId: number, floor: number): Promise<void> {
  await redis.hSet(summaryKey(companyId), "deleted", String(floor));
}

/** When rows of batches that were skipped were looked for last, UTC milliseconds of this process; 0 = never. */
export async function readSweptAt(redis: Redis, companyId: number): Promise<number> {
  return Number((await redis.hGet(summaryKey(companyId), "swept")) ?? 0);
}

export async function noteSwept(redis: Redis, companyId: number): Promise<void> {
  await redis.hSet(summaryKey(companyId), "swept", String(Date.now()));
}

/**
 * Search by part of a number or reference. Each channel has search lines (`core/search/rules/search-text.ts`) in parts of at most
 * 64 KiB. Whoever searches first adds the lines of the shipments created since, so that creating shipments costs nothing for it, and
 * shipments that an older process created are found as well. Lines stay when a shipment moves to the archive,
 * and go when it is removed from there.
 */
import { chunks, chunksBySize } from "#core/platform/process/chunks.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import { binary, type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  findInLines,
  linesWithout,
  type SearchedText,
  searchForm,
  searchLine,
  searchTexts,
} from "#core/search/rules/search-text.ts";
import { type Block, GONE } from "#core/shipments/store/columns.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import appendLinesSource from "./append-lines.lua" with { type: "text" };
import { firstRow } from "./match-rows.ts";
import { withColumns } from "./read-columns.ts";
import replaceLinesSource from "./replace-lines.lua" with { type: "text" };

const appendLinesScript = script(appendLinesSource);
const replaceLinesScript = script(replaceLinesSource);

const PART_BYTES = limit(64 * 1024, "a part of a channel's search lines", "the next part");
/** Shipments whose lines are added together: about 40 KB. */
const ADDED_TOGETHER = 1_000;
/** Shipments whose lines one search waits for: about half a second. */
export const WAITED_FOR = limit(
  20_000,
  "shipments without search lines that a search by part waits for",
  "they are not found by part yet; the answer says so",
);
/** Parts read in one call: holds Redis for less than 1 ms. */
const PARTS_TOGETHER = 8;
const KEPT_BYTES = limit(
  128 * 1024 * 1024,
  "search lines that a process keeps",
  "the parts read longest ago are read again",
);
/** Attempts to add lines while other processes add theirs. */
const ATTEMPTS = 20;

export interface FoundByPart {
  /** By channel, in ascending order. */
  readonly ids: ReadonlyMap<number, readonly number[]>;
  /** False while lines of older shipments are still being added. */
  readonly isComplete: boolean;
}

/** Shipments of a company's channels whose lines contain a text; those that are in the archive, or gone, among them. */
export async function findByPart(
  redis: Redis,
  companyId: number,
  channelIds: readonly number[],
  asked: SearchedText,
): Promise<FoundByPart> {
  const wanted = { ...asked, text: searchForm(asked.text) };
  const ids = new Map<number, number[]>();
  let isComplete = true;
  for (const channelId of channelIds) {
    isComplete = (await addLines(redis, companyId, channelId, WAITED_FOR)) && isComplete;
    ids.set(channelId, await findInChannel(redis, companyId, channelId, wanted));
  }
  return { ids, isComplete };
}

/**
 * Adds the lines of shipments that have none.
 * @param most where more are missing, nothing is done
 * @returns whether none is missing now
 */
export async function addLines(
  redis: Redis,
  companyId: number,
  channelId: number,
  most: number,
  isStopping = () => false,
): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const reach = await readReach(redis, companyId, channelId);
    const missing = await withColumns(redis, companyId, [channelId], [], (blocks) =>
      idsAbove(blocks, reach.upTo),
    );
    if (missing.length === 0) return true;
    if (missing.length > most) return false;
    if (await addAll(redis, companyId, channelId, reach, missing, isStopping)) return true;
    if (isStopping()) return false;
  }
  return false;
}

/** @returns false when another process was faster */
async function addAll(
  redis: Redis,
  companyId: number,
  channelId: number,
  reach: Reach,
  ids: readonly number[],
  isStopping: () => boolean,
): Promise<boolean> {
  let { upTo } = reach;
  for (const own of chunks(ids, ADDED_TOGETHER)) {
    if (isStopping()) return false;
    const shipments = await readShipments(redis, own);
    const lines = shipments.map(({ record, state }) => ({
      id: record.id,
      line: searchLine(record.id, record.courier, searchTexts(record, state)),
    }));
    const groups = chunksBySize(lines, PART_BYTES, ({ line }) => line.length);
    // Shipments that have just gone have no lines, and are passed all the same.
    for (const [at, together] of (groups.length === 0 ? [[]] : groups).entries()) {
      const isLast = at >= groups.length - 1;
      const next = (isLast ? own.at(-1) : together.at(-1)?.id) ?? upTo;
      const range = { expected: String(upTo), upTo: String(next) };
      const bytes = Buffer.concat(together.map(({ line }) => line));
      if (!(await append(redis, companyId, channelId, range, bytes))) return false;
      upTo = next;
    }
  }
  return true;
}

export interface FurtherText {
  readonly companyId: number;
  readonly channelId: number;
  readonly shipmentId: number;
  readonly courier: string;
  readonly text: string;
}

/** Tracking numbers that couriers announced for shipments, and corrected order references. Repeating it changes no answer. */
export async function addFurtherTexts(
  redis: Redis,
  numbers: readonly FurtherText[],
): Promise<void> {
  for (const own of Map.groupBy(numbers, ({ channelId }) => channelId).values()) {
    const [first] = own;
    if (!first) continue;
    const lines = own.map(({ shipmentId, courier, text }) =>
      searchLine(shipmentId, courier, [searchForm(text)]),
    );
    const { companyId, channelId } = first;
    const further = { expected: "", upTo: "" };
    await append(redis, companyId, channelId, further, Buffer.concat(lines));
  }
}

/**
 * Removes the lines of shipments that are gone for good. Other processes that keep a part go on with its lines until they read it again:
 * a search leaves out what is gone.
 */
export async function forgetLines(
  redis: Redis,
  companyId: number,
  channelId: number,
  gone: ReadonlySet<number>,
): Promise<void> {
  const { part } = await readReach(redis, companyId, channelId);
  const keys = companyKeys(companyPartition(companyId));
  for (let at = 0; at <= part; at += 1) {
    await forgetInPart(redis, keys.searchLinesPart(channelId, at), gone);
  }
}

async function forgetInPart(redis: Redis, name: string, gone: ReadonlySet<number>) {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const before = (await binary(redis).get(name)) as Buffer | null;
    if (before === null) return;
    const after = linesWithout(before, gone);
    if (after.length === before.length) return;
    if ((await run<number>(redis, replaceLinesScript, [name], [before, after])) === 1) {
      drop(keptBy(redis), name);
      return;
    }
  }
}

interface Range {
  readonly expected: string;
  readonly upTo: string;
}

async function append(
  redis: Redis,
  companyId: number,
  channelId: number,
  { expected, upTo }: Range,
  lines: Buffer,
): Promise<boolean> {
  const keys = companyKeys(companyPartition(companyId));
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const { part, upTo: reached } = await readReach(redis, companyId, channelId);
    if (expected !== "" && String(reached) !== expected) return false;
    const names = [
      keys.searchLines(channelId),
      keys.searchLinesPart(channelId, part),
      keys.searchLinesPart(channelId, part + 1),
    ];
    const args = [String(part), expected, upTo, String(PART_BYTES), lines];
    if ((await run<number>(redis, appendLinesScript, names, args)) === 1) return true;
  }
  return false;
}

interface Reach {
  readonly part: number;
  readonly upTo: number;
}

async function readReach(redis: Redis, companyId: number, channelId: number): Promise<Reach> {
  const key = companyKeys(companyPartition(companyId)).searchLines(channelId);
  const [part, upTo] = await redis.hmGet(key, ["part", "upTo"]);
  return { part: Number(part ?? 0), upTo: Number(upTo ?? 0) };
}

function idsAbove(blocks: readonly Block[], upTo: number): number[] {
  const ids: number[] = [];
  for (const block of blocks) {
    for (let row = firstRow(block, upTo + 1); row < block.rows; row += 1) {
      if (block.statuses[row] !== GONE) ids.push(block.ids[row] as number);
    }
  }
  return ids;
}

async function findInChannel(
  redis: Redis,
  companyId: number,
  channelId: number,
  asked: SearchedText,
): Promise<number[]> {
  const { part } = await readReach(redis, companyId, channelId);
  const keys = companyKeys(companyPartition(companyId));
  const names = Array.from({ length: part + 1 }, (_, at) => keys.searchLinesPart(channelId, at));
  const found = new Set<number>();
  const turn = turns();
  for (let from = 0; from < names.length; from += PARTS_TOGETHER) {
    const own = names.slice(from, from + PARTS_TOGETHER);
    for (const lines of await readParts(redis, own, names.at(-1) ?? "")) {
      for (const id of findInLines(lines, asked)) found.add(id);
    }
    if (turn.due()) await turn.take();
  }
  return [...found].sort((one, other) => one - other);
}

interface Kept {
  readonly parts: Map<string, Buffer>;
  bytes: number;
}

const keptOf = new WeakMap<Redis, Kept>();

/** A part that another one follows never changes. */
async function readParts(redis: Redis, names: readonly string[], last: string): Promise<Buffer[]> {
  const kept = keptBy(redis);
  const missing = names.filter((name) => !kept.parts.has(name));
  const read = await Promise.all(missing.map((name) => binary(redis).get(name)));
  missing.forEach((name, at) => {
    const lines = read[at] as Buffer | null | undefined;
    if (name !== last && lines) keep(kept, name, lines);
  });
  return names.flatMap((name) => {
    const known = kept.parts.get(name) ?? (read[missing.indexOf(name)] as Buffer | null);
    return known ? [known] : [];
  });
}

function keep(kept: Kept, name: string, lines: Buffer): void {
  kept.parts.set(name, lines);
  kept.bytes += lines.length;
  for (const [oldest, own] of kept.parts) {
    if (kept.bytes <= KEPT_BYTES || oldest === name) return;
    kept.parts.delete(oldest);
    kept.bytes -= own.length;
  }
}

function drop(kept: Kept, name: string): void {
  kept.bytes -= kept.parts.get(name)?.length ?? 0;
  kept.parts.delete(name);
}

function keptBy(redis: Redis): Kept {
  const known = keptOf.get(redis);
  if (known) return known;
  const kept: Kept = { parts: new Map(), bytes: 0 };
  keptOf.set(redis, kept);
  // Whoever answers after an interruption may have lost what was read before.
  for (const event of ["reconnecting", "node-reconnecting"]) {
    redis.on(event, () => {
      kept.parts.clear();
      kept.bytes = 0;
    });
  }
  return kept;
}

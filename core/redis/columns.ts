/**
 * What search filters and sorts by, as rows of 16 bytes in blocks: for questions that no single sorted index answers. A row
 * stands in the order of ids, at its shipment's rank in the channel's index by id. `create.lua` appends rows, `commit.lua`
 * changes them and counts the block's version up, so that a process keeps what it has read and fetches changed blocks only.
 *
 * | word | holds                                             |
 * |------|---------------------------------------------------|
 * | 0    | id, low 32 bits                                   |
 * | 1    | statusUpdatedAt, seconds since 1970; 0 = never     |
 * | 2    | ship date, days since the year 0                  |
 * | 3    | id, high bits; the low byte is the status's number |
 */
import { STATUSES, type Status } from "#core/domain/status.ts";
import { binary, type Redis, run, script } from "./client.ts";
import { companyKeys, companyPartition } from "./keys.ts";
import readBlocksSource from "./scripts/read-blocks.lua" with { type: "text" };

const readBlocksScript = script(readBlocksSource);

/** 64 KiB a block: one GET of some 20 us. */
export const ROWS_PER_BLOCK = 4_096;
const BYTES_PER_ROW = 16;
export const WORDS = 4;
/** Days from the year 0 to 1970, so that every calendar date is a positive number. */
export const DAY_SHIFT = 719_528;
/** What a process keeps, over all clients: 16 million shipments. The channels used longest ago go. */
const KEPT_BYTES = 256 * 1024 * 1024;
/** Blocks fetched in one transaction: holds Redis for less than 1 ms. */
const BLOCKS_TOGETHER = 8;
/** Rounds of fetching again what changed meanwhile, until all that is read is of one moment. */
const ROUNDS = 1_000;

/**
 * Shipments with one exact value from which on they stand in a bitmap by rank too: 125 KB a million rows, so that a value
 * of few shipments is not worth it.
 */
export const MANY_OF_ONE_VALUE = 2_000;

/** Status names in the order of their numbers, as the scripts take them. */
export const STATUS_NAMES = STATUSES.join(" ");

export interface Block {
  readonly channelId: number;
  /** Rank of the first row. */
  readonly first: number;
  readonly version: string;
  readonly words: Uint32Array;
  readonly rows: number;
  /** Bounds of the rows, to leave out blocks; `updated` without those that were never updated. */
  readonly updated: Bounds;
  /** A row was never updated. */
  readonly hasNever: boolean;
  readonly shipped: Bounds;
  /** Bit n: a row has status n. */
  readonly statuses: number;
}

export interface Bounds {
  readonly least: number;
  readonly most: number;
}

export function statusBits(statuses: readonly Status[]): number {
  return statuses.reduce((bits, status) => bits | (1 << STATUSES.indexOf(status)), 0);
}

export function idAt({ words }: Block, row: number): number {
  const at = row * WORDS;
  return (words[at] ?? 0) + ((words[at + 3] ?? 0) >>> 8) * 2 ** 32;
}

export function updatedAt({ words }: Block, row: number): number {
  return words[row * WORDS + 1] ?? 0;
}

/** Days since 1970. */
export function shippedAt({ words }: Block, row: number): number {
  return (words[row * WORDS + 2] ?? 0) - DAY_SHIFT;
}

export function statusBitAt({ words }: Block, row: number): number {
  return 1 << ((words[row * WORDS + 3] ?? 0) & 255);
}

const kept = new Map<string, Block[]>();
let keptBytes = 0;
const clients = new WeakMap<Redis, number>();
let clientCount = 0;

export interface Columns {
  readonly blocks: readonly Block[];
  /** The bitmaps asked for, in their order; null where there is none. */
  readonly bitmaps: readonly (Uint8Array | null)[];
}

/** All blocks of the channels of one company, and some bitmaps, as they were at one moment. */
export async function readColumns(
  redis: Redis,
  companyId: number,
  channelIds: readonly number[],
  bitmaps: readonly string[] = [],
): Promise<Columns> {
  const keys = companyKeys(companyPartition(companyId));
  const versionKeys = channelIds.map((channelId) => keys.blockVersions(channelId));
  const names = channelIds.map((channelId) => `${clientOf(redis)} ${channelId}`);
  const channels = names.map((name) => take(name));
  let wanted: [channel: number, block: number][] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const blockKeys = wanted.map(([at, block]) => keys.block(channelIds[at] ?? 0, block));
    const replies = await run<(Buffer[] | Buffer | null)[]>(
      redis,
      readBlocksScript,
      [...versionKeys, ...bitmaps, ...blockKeys],
      [String(channelIds.length)],
      binary(redis),
    );
    const versions = replies.slice(0, channelIds.length).map(versionsOf);
    const read = replies.slice(channelIds.length) as (Buffer | null)[];
    wanted.forEach(([at, block], place) => {
      const bytes = read[bitmaps.length + place];
      const own = channels[at];
      const version = versions[at]?.get(block) ?? "0";
      if (own && bytes) own[block] = decode(channelIds[at] ?? 0, block, version, bytes);
    });
    const stale = staleBlocks(channels, versions);
    if (stale.length === 0) {
      names.forEach((name, at) => {
        keep(name, channels[at] ?? []);
      });
      return { blocks: channels.flat(), bitmaps: read.slice(0, bitmaps.length) };
    }
    wanted = stale.slice(0, BLOCKS_TOGETHER);
  }
  throw new Error("the columns kept changing");
}

function staleBlocks(
  channels: readonly Block[][],
  versions: readonly ReadonlyMap<number, string>[],
): [channel: number, block: number][] {
  return versions.flatMap((known, channel) =>
    [...known].flatMap(([block, version]): [number, number][] =>
      channels[channel]?.[block]?.version === version ? [] : [[channel, block]],
    ),
  );
}

function versionsOf(reply: Buffer[] | Buffer | null | undefined): Map<number, string> {
  const flat = Array.isArray(reply) ? reply.map(String) : [];
  const versions = new Map<number, string>();
  for (let at = 0; at < flat.length; at += 2) versions.set(Number(flat[at]), flat[at + 1] ?? "");
  return versions;
}

function decode(channelId: number, at: number, version: string, bytes: Buffer): Block {
  const rows = Math.floor(bytes.length / BYTES_PER_ROW);
  const words = new Uint32Array(rows * WORDS);
  new Uint8Array(words.buffer).set(bytes.subarray(0, rows * BYTES_PER_ROW));
  const updated = { least: Number.POSITIVE_INFINITY, most: Number.NEGATIVE_INFINITY };
  const shipped = { least: Number.POSITIVE_INFINITY, most: Number.NEGATIVE_INFINITY };
  let statuses = 0;
  let hasNever = false;
  const first = at * ROWS_PER_BLOCK;
  const block = { channelId, first, version, words, rows, updated, shipped };
  const all: Block = { ...block, hasNever, statuses };
  for (let row = 0; row < rows; row += 1) {
    const second = updatedAt(all, row);
    const day = shippedAt(all, row);
    if (second === 0) hasNever = true;
    else if (second < updated.least) updated.least = second;
    if (second > updated.most) updated.most = second;
    if (day < shipped.least) shipped.least = day;
    if (day > shipped.most) shipped.most = day;
    statuses |= statusBitAt(all, row);
  }
  return { ...block, hasNever, statuses };
}

function clientOf(redis: Redis): number {
  const known = clients.get(redis);
  if (known !== undefined) return known;
  clientCount += 1;
  clients.set(redis, clientCount);
  return clientCount;
}

/** A copy of the list: readers at the same time do not change each other's. */
function take(name: string): Block[] {
  return [...(kept.get(name) ?? [])];
}

function keep(name: string, blocks: Block[]): void {
  keptBytes += bytesOf(blocks) - bytesOf(kept.get(name) ?? []);
  kept.delete(name);
  kept.set(name, blocks);
  for (const [oldest, own] of kept) {
    if (keptBytes <= KEPT_BYTES || oldest === name) return;
    kept.delete(oldest);
    keptBytes -= bytesOf(own);
  }
}

function bytesOf(blocks: readonly Block[]): number {
  return blocks.reduce((sum, { words }) => sum + words.byteLength, 0);
}

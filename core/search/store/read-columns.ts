/**
 * The rows of channels as one process keeps them: read whole once, then only what their row logs tell to have changed, so
 * that a search costs one small call however many shipments there are, and however many of them change.
 */
import { binary, type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  type Block,
  BYTES_PER_ROW,
  decodeBlock,
  decodeRow,
  emptyBlock,
  KEPT_BYTES_PER_ROW,
  putRow,
  ROWS_PER_BLOCK,
  tighten,
} from "#core/shipments/store/columns.ts";
import readBlocksSource from "./read-blocks.lua" with { type: "text" };
import readColumnsSource from "./read-columns.lua" with { type: "text" };

const readBlocksScript = script(readBlocksSource);
const readColumnsScript = script(readColumnsSource);

/** What a process keeps, over all clients: 16 million shipments. The channels used longest ago go. */
const KEPT_BYTES = limit(
  272 * 1024 * 1024,
  "rows of search that a process keeps",
  "the channels used longest ago are read again",
);
/** Blocks fetched in one call: holds Redis for less than 1 ms. */
const BLOCKS_TOGETHER = 8;
/** Entries of the row logs in one call: holds Redis for about 1 ms. */
const ENTRIES_TOGETHER = 1_000;
/** Entries compared with those read before: they differ where a failover has lost some, and everything is read again. */
const ENTRIES_AGAIN = 16;
const BYTES_PER_ENTRY = 4;
/** Calls until all that is read is of one moment. */
const ROUNDS = 1_000;

interface Channel {
  readonly id: number;
  blocks: Block[];
  /** Entries read of the row log; -1 = nothing is known. */
  position: number;
  /** The last entries read. */
  tail: Buffer;
  /** Changed blocks, which are requested with the next entries; 245 for a million shipments take about 50 us. */
  changing: Set<number>;
}

/** The bitmaps asked for, in their order; null where there is none. */
export type Bitmaps = readonly (Uint8Array | null)[];

/** In the order of use. */
const kept = new Map<string, { readonly channel: Channel; readonly bytes: number }>();
let keptBytes = 0;
const clients = new WeakMap<Redis, number>();
let clientCount = 0;
/** Readings of a company's rows, one after the other: what one applies, another must not find half done. */
const turns = new Map<string, Promise<unknown>>();

/**
 * All blocks of the channels of one company, and some bitmaps, as they were at one moment.
 * @param look reads the blocks at once: they change with the next reading
 */
export function withColumns<T>(
  redis: Redis,
  companyId: number,
  channelIds: readonly number[],
  bitmapKeys: readonly string[],
  look: (blocks: readonly Block[], bitmaps: Bitmaps) => T,
): Promise<T> {
  const client = clientOf(redis);
  return inTurn(`${client} ${companyId}`, async () => {
    const channels = channelIds.map(
      (id) => kept.get(`${client} ${id}`)?.channel ?? unknownChannel(id),
    );
    const bitmaps = await catchUp(redis, companyId, channels, bitmapKeys);
    channels.forEach((channel) => {
      keep(`${client} ${channel.id}`, channel);
    });
    const blocks = channels.flatMap((channel) => channel.blocks);
    blocks.forEach(tighten);
    return look(blocks, bitmaps);
  });
}

async function catchUp(
  redis: Redis,
  companyId: number,
  channels: readonly Channel[],
  bitmapKeys: readonly string[],
): Promise<Bitmaps> {
  const partition = companyPartition(companyId);
  const keys = companyKeys(partition);
  const logs = channels.map(({ id }) => keys.rowLog(id));
  const limits = [ROWS_PER_BLOCK, ENTRIES_TOGETHER, ENTRIES_AGAIN];
  const counts = [channels.length, bitmapKeys.length];
  for (let round = 0; round < ROUNDS; round += 1) {
    const blocks = channels.flatMap(({ id, changing }) =>
      [...changing].map((block) => keys.block(id, block)),
    );
    const known = channels.flatMap(({ position, changing }) => [
      position,
      changing.size,
      ...changing,
    ]);
    const reply = await run<(Buffer | null)[]>(
      redis,
      readColumnsScript,
      [...logs, ...bitmapKeys, ...blocks],
      [...limits, ...counts, ...known].map(String),
      binary(redis),
    );
    const isCurrent = await applyAll(redis, companyId, channels, reply);
    if (isCurrent) return reply.slice(channels.length * PER_CHANNEL);
  }
  throw new Error("the columns kept changing");
}

/** Values of the reply for one channel. */
const PER_CHANNEL = 4;
const EMPTY = Buffer.alloc(0);

/** @returns whether all channels are as they were at the moment of the reply */
async function applyAll(
  redis: Redis,
  companyId: number,
  channels: readonly Channel[],
  reply: readonly (Buffer | null)[],
): Promise<boolean> {
  let isCurrent = true;
  for (const [at, channel] of channels.entries()) {
    const own = reply.slice(at * PER_CHANNEL, (at + 1) * PER_CHANNEL);
    const [count, before = null, entries, rows = null] = own;
    const end = Number(String(count));
    const isKnown = before !== null && hasSameEnd(channel.tail, before);
    if (isKnown && channel.tail.length < before.length) channel.tail = Buffer.from(before);
    if (isKnown) apply(channel, entries ?? EMPTY, rows);
    else await load(redis, companyId, channel, end);
    isCurrent &&= isKnown && channel.position === end;
  }
  return isCurrent;
}

/** As far as both of them go back. */
function hasSameEnd(one: Buffer, other: Buffer): boolean {
  const length = Math.min(one.length, other.length);
  return one.subarray(one.length - length).equals(other.subarray(other.length - length));
}

/**
 * The rows have their current values: if one appears twice among the entries, both have its latest value.
 * @param rows null if one of their blocks was not requested: the next call requests it
 */
function apply(channel: Channel, entries: Buffer, rows: Buffer | null): void {
  if (entries.length === 0) return;
  const ranks = new Set<number>();
  for (let at = 0; at < entries.length; at += BYTES_PER_ENTRY) ranks.add(entries.readUInt32LE(at));
  const blocks = new Set([...ranks].map((rank) => Math.floor(rank / ROWS_PER_BLOCK)));
  channel.changing = channel.changing.union(blocks);
  if (rows === null) return;
  let at = 0;
  for (const rank of ranks) {
    const block = blockOf(channel, Math.floor(rank / ROWS_PER_BLOCK));
    putRow(block, rank % ROWS_PER_BLOCK, decodeRow(rows, at));
    at += BYTES_PER_ROW;
  }
  channel.position += entries.length / BYTES_PER_ENTRY;
  const tail = Buffer.concat([channel.tail, entries]);
  channel.tail = Buffer.from(tail.subarray(-ENTRIES_AGAIN * BYTES_PER_ENTRY));
}

function blockOf(channel: Channel, at: number): Block {
  const known = channel.blocks[at];
  if (known) return known;
  const fresh = emptyBlock(channel.id, at * ROWS_PER_BLOCK);
  channel.blocks[at] = fresh;
  return fresh;
}

/** Reads all blocks; what changes meanwhile comes with the next entries after `position`. */
async function load(
  redis: Redis,
  companyId: number,
  channel: Channel,
  position: number,
): Promise<void> {
  const keys = companyKeys(companyPartition(companyId));
  const blocks: Block[] = [];
  for (let isLast = false; !isLast; ) {
    const names = Array.from({ length: BLOCKS_TOGETHER }, (_, at) =>
      keys.block(channel.id, blocks.length + at),
    );
    const reply = await run<(Buffer | null)[]>(redis, readBlocksScript, names, [], binary(redis));
    for (const bytes of reply) {
      isLast ||= bytes === null;
      if (!isLast && bytes) {
        blocks.push(decodeBlock(channel.id, blocks.length * ROWS_PER_BLOCK, bytes));
      }
    }
  }
  const changing = new Set([Math.max(0, blocks.length - 1)]);
  Object.assign(channel, { blocks, position, tail: EMPTY, changing });
}

function unknownChannel(id: number): Channel {
  return { id, blocks: [], position: -1, tail: EMPTY, changing: new Set() };
}

async function inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
  const own = (turns.get(name) ?? Promise.resolve()).then(work, work);
  turns.set(name, own);
  try {
    return await own;
  } finally {
    if (turns.get(name) === own) turns.delete(name);
  }
}

function clientOf(redis: Redis): number {
  const known = clients.get(redis);
  if (known !== undefined) return known;
  clientCount += 1;
  const client = clientCount;
  clients.set(redis, client);
  // Whoever answers after an interruption may have lost what was read before: entries that look alike need not be.
  for (const event of ["reconnecting", "node-reconnecting"]) redis.on(event, () => forget(client));
  return client;
}

function forget(client: number): void {
  for (const [name, { bytes }] of kept) {
    if (!name.startsWith(`${client} `)) continue;
    kept.delete(name);
    keptBytes -= bytes;
  }
}

function keep(name: string, channel: Channel): void {
  const bytes = channel.blocks.reduce((sum, { ids }) => sum + ids.length * KEPT_BYTES_PER_ROW, 0);
  keptBytes += bytes - (kept.get(name)?.bytes ?? 0);
  kept.delete(name);
  kept.set(name, { channel, bytes });
  for (const [oldest, own] of kept) {
    if (keptBytes <= KEPT_BYTES || oldest === name) return;
    kept.delete(oldest);
    keptBytes -= own.bytes;
  }
}

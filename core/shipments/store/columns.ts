/**
 * What search filters and sorts by, as rows of 16 bytes in blocks. A row stands in the order of ids, at its shipment's rank
 * in the channel's index by id. `create.lua` appends rows, `commit.lua` changes them, and both note the ranks in the
 * channel's row log, so that a process keeps what it has read and fetches changed rows only (`read-columns.ts`).
 *
 * | word | holds                                             |
 * |------|---------------------------------------------------|
 * | 0    | id, low 32 bits                                   |
 * | 1    | statusUpdatedAt, seconds since 1970; 0 = never     |
 * | 2    | ship date, days since the year 0                  |
 * | 3    | id, high bits; the low byte is the status's number |
 */
import { STATUSES, type Status } from "#core/statuses/rules/status.ts";

/** 64 KiB a block: one GET of about 20 us. */
export const ROWS_PER_BLOCK = 4_096;
export const BYTES_PER_ROW = 16;
/** Days from the year 0 to 1970, so that every calendar date is a positive number. */
export const DAY_SHIFT = 719_528;
/**
 * Status of a row whose shipment is in the archive: it stays at its rank until no shipment of its block is left. A block that
 * was dropped and has a shipment again begins with rows of zeros.
 */
export const GONE = 31;
/** Bits of every status that a shipment can have. */
export const ANY_STATUS = 2 ** STATUSES.length - 1;
/** What a row takes in a process: id 8, two numbers of 4, status 1. */
export const KEPT_BYTES_PER_ROW = 17;

/**
 * Shipments with one exact value from which on they stand in a bitmap by rank too: 125 KB a million rows, so that a value
 * of few shipments is not worth it.
 */
export const MANY_OF_ONE_VALUE = 2_000;

export interface Bounds {
  readonly least: number;
  readonly most: number;
}

/** One shipment as search sees it. */
export interface ColumnRow {
  readonly id: number;
  /** Seconds since 1970; 0 = never. */
  readonly updated: number;
  /** Days since the year 0. */
  readonly shipped: number;
  /** Number of the status. */
  readonly status: number;
}

/** Rows of one channel, column by column. Changed in place: nobody waits for anything while reading it. */
export interface Block {
  readonly channelId: number;
  /** Rank of the first row. */
  readonly first: number;
  rows: number;
  ids: Float64Array;
  updated: Uint32Array;
  shipped: Uint32Array;
  statuses: Uint8Array;
  /** Rows of each status. */
  readonly counts: Uint32Array;
  updatedBounds: Bounds;
  shippedBounds: Bounds;
  /** The bounds may be wider than the rows. */
  isLoose: boolean;
}

const NO_BOUNDS: Bounds = { least: Number.POSITIVE_INFINITY, most: Number.NEGATIVE_INFINITY };
const LEAST_CAPACITY = 64;

export function statusBits(statuses: readonly Status[]): number {
  return statuses.reduce((bits, status) => bits | (1 << STATUSES.indexOf(status)), 0);
}

/** @param bytes of one row */
export function decodeRow(bytes: Buffer, at: number): ColumnRow {
  const high = bytes.readUInt32LE(at + 12);
  const id = bytes.readUInt32LE(at) + (high >>> 8) * 2 ** 32;
  return {
    id,
    updated: bytes.readUInt32LE(at + 4),
    shipped: bytes.readUInt32LE(at + 8),
    status: id === 0 ? GONE : high & 255,
  };
}

export function encodeRow({ id, updated, shipped, status }: ColumnRow): Buffer {
  const row = Buffer.alloc(BYTES_PER_ROW);
  row.writeUInt32LE(id % 2 ** 32, 0);
  row.writeUInt32LE(updated, 4);
  row.writeUInt32LE(shipped, 8);
  row.writeUInt32LE(Math.floor(id / 2 ** 32) * 256 + status, 12);
  return row;
}

export function emptyBlock(channelId: number, first: number, capacity = LEAST_CAPACITY): Block {
  return {
    channelId,
    first,
    rows: 0,
    ids: new Float64Array(capacity),
    updated: new Uint32Array(capacity),
    shipped: new Uint32Array(capacity),
    statuses: new Uint8Array(capacity),
    counts: new Uint32Array(GONE + 1),
    updatedBounds: NO_BOUNDS,
    shippedBounds: NO_BOUNDS,
    isLoose: true,
  };
}

/** @param bytes all rows of the block */
export function decodeBlock(channelId: number, first: number, bytes: Buffer): Block {
  const rows = Math.floor(bytes.length / BYTES_PER_ROW);
  const block = emptyBlock(channelId, first, Math.max(rows, LEAST_CAPACITY));
  for (let row = 0; row < rows; row += 1) putRow(block, row, decodeRow(bytes, row * BYTES_PER_ROW));
  return block;
}

/** Writes a row. Rows before it that the block does not have yet are gone. */
export function putRow(
  block: Block,
  row: number,
  { id, updated, shipped, status }: ColumnRow,
): void {
  while (row >= block.ids.length) grow(block);
  if (row < block.rows) addTo(block.counts, block.statuses[row] as number, -1);
  else if (row > block.rows) addGone(block, row);
  block.rows = Math.max(block.rows, row + 1);
  addTo(block.counts, status, 1);
  block.ids[row] = id === 0 ? (block.ids[row - 1] ?? 0) : id;
  if (status !== GONE) keepAscending(block, row);
  block.updated[row] = updated;
  block.shipped[row] = shipped;
  block.statuses[row] = status;
  block.isLoose = true;
}

function addGone(block: Block, end: number): void {
  const last = block.ids[block.rows - 1] ?? 0;
  block.ids.fill(last, block.rows, end);
  block.statuses.fill(GONE, block.rows, end);
  addTo(block.counts, GONE, end - block.rows);
}

/** Rows are searched by id: those that are gone, and whose ids are not known any more, stand close to a neighbour's. */
function keepAscending({ ids, statuses, rows }: Block, row: number): void {
  const id = ids[row] as number;
  for (let at = row - 1; at >= 0 && (ids[at] as number) >= id && statuses[at] === GONE; at -= 1) {
    ids[at] = id - 1;
  }
  for (let at = row + 1; at < rows && (ids[at] as number) < id && statuses[at] === GONE; at += 1) {
    ids[at] = id;
  }
}

function addTo(counts: Uint32Array, at: number, by: number): void {
  counts[at] = (counts[at] as number) + by;
}

function grow(block: Block): void {
  const wider = emptyBlock(
    block.channelId,
    block.first,
    Math.min(block.ids.length * 2, ROWS_PER_BLOCK),
  );
  wider.ids.set(block.ids);
  wider.updated.set(block.updated);
  wider.shipped.set(block.shipped);
  wider.statuses.set(block.statuses);
  const { ids, updated, shipped, statuses } = wider;
  Object.assign(block, { ids, updated, shipped, statuses });
}

/** Makes the bounds those of the rows: about 5 us for a block that has changed. */
export function tighten(block: Block): void {
  if (!block.isLoose) return;
  block.updatedBounds = boundsOf(block.updated, block.rows);
  block.shippedBounds = boundsOf(block.shipped, block.rows);
  block.isLoose = false;
}

function boundsOf(values: Uint32Array, rows: number): Bounds {
  let least = 2 ** 32;
  let most = -1;
  for (let row = 0; row < rows; row += 1) {
    const value = values[row] as number;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return { least, most };
}

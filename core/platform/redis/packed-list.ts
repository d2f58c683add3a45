/**
 * Many short arguments of a script as one, in MessagePack: `cmsgpack.unpack` gives the script the list. Thousands of
 * arguments in one command cost the client more than what is in them, above all where texts and bytes take turns.
 */

/** Grows to the largest list; what the callers write together bounds it. */
let buffer = Buffer.allocUnsafeSlow(64 * 1024);

/** Whole numbers; any other stands as a double. */
const UINT_32 = 0xce;
const FLOAT_64 = 0xcb;
const LIST_32 = 0xdd;
const RAW_16 = 0xda;
const RAW_32 = 0xdb;
const HEAD_BYTES = 5;
const NUMBER_BYTES = 8;
/** A character of UTF-16 takes at most so many bytes of UTF-8. */
const CHARACTER_BYTES = 3;

export type ListItem = string | Buffer | number | readonly ListItem[];

export function packList(items: readonly ListItem[]): Buffer {
  const most = mostBytes(items);
  if (most > buffer.length) buffer = Buffer.allocUnsafeSlow(2 * most);
  return Buffer.from(buffer.subarray(0, writeList(items, 0)));
}

function mostBytes(item: ListItem): number {
  if (typeof item === "number") return HEAD_BYTES + NUMBER_BYTES;
  if (typeof item === "string") return HEAD_BYTES + item.length * CHARACTER_BYTES;
  if (Buffer.isBuffer(item)) return HEAD_BYTES + item.length;
  let most = HEAD_BYTES;
  for (const one of item) most += mostBytes(one);
  return most;
}

/** @returns where the next item stands */
function writeList(items: readonly ListItem[], at: number): number {
  buffer[at] = LIST_32;
  let next = buffer.writeUInt32BE(items.length, at + 1);
  for (const item of items) next = write(item, next);
  return next;
}

/** @returns where the next item stands */
function write(item: ListItem, at: number): number {
  if (typeof item === "number") return writeNumber(item, at);
  if (typeof item !== "string" && !Buffer.isBuffer(item)) return writeList(item, at);
  const isLong = item.length * CHARACTER_BYTES > 0xffff;
  const from = at + (isLong ? 5 : 3);
  let length = item.length;
  if (typeof item === "string") length = buffer.write(item, from);
  else buffer.set(item, from);
  buffer[at] = isLong ? RAW_32 : RAW_16;
  if (isLong) buffer.writeUInt32BE(length, at + 1);
  else buffer.writeUInt16BE(length, at + 1);
  return from + length;
}

function writeNumber(item: number, at: number): number {
  const isShort = item >= 0 && item <= 0xffffffff && Number.isInteger(item);
  buffer[at] = isShort ? UINT_32 : FLOAT_64;
  return isShort ? buffer.writeUInt32BE(item, at + 1) : buffer.writeDoubleBE(item, at + 1);
}

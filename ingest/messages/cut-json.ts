/**
 * Cuts a JSON text at its commas without interpreting what is between them: whatever is wrong inside one part does not
 * touch the others.
 */
import {
  BACKSLASH,
  BRACE,
  BRACE_END,
  BRACKET,
  BRACKET_END,
  COLON,
  COMMA,
  notJson,
  QUOTE,
} from "#core/platform/http/body/strict-json.ts";

/** Where a part stands: from its first byte to the one after its last. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface Member {
  /** The key with its quotes. */
  readonly key: Range;
  readonly value: Range;
}

/** Bytes that are scanned between two turns: 13,000 members of a single letter and digit. */
const SCAN_BYTES = 64 * 1024;

/**
 * Hands every element of a list, or every member of an object, to `take`; yields when a turn of the event loop is due.
 * @throws {JsonFault} if quotes, brackets and commas do not match
 */
export function* cut(
  bytes: Uint8Array,
  range: Range,
  take: (part: Range) => void,
): Generator<void, void> {
  const from = skipBlanks(bytes, range.from, range.to);
  if (from >= range.to || !isOpening(bytes[from])) throw notJson();
  /** The bracket that ends each open depth: of any depth, so a list of texts would not do. */
  const ends = new Uint8Array(range.to - from + 1);
  let depth = 0;
  let partFrom = from + 1;
  let turnAt = from + SCAN_BYTES;
  for (let at = from; at < range.to; at += 1) {
    if (at >= turnAt) {
      yield;
      turnAt = at + SCAN_BYTES;
    }
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfText(bytes, at, range.to);
    } else if (isOpening(byte)) {
      depth += 1;
      ends[depth] = byte === BRACE ? BRACE_END : BRACKET_END;
    } else if (byte === COMMA && depth === 1) {
      takePart(bytes, { from: partFrom, to: at }, take);
      partFrom = at + 1;
    } else if (byte === BRACKET_END || byte === BRACE_END) {
      if (ends[depth] !== byte) throw notJson();
      depth -= 1;
      if (depth > 0) continue;
      const isEmpty = partFrom === from + 1 && isBlank(bytes, { from: partFrom, to: at });
      if (!isEmpty) takePart(bytes, { from: partFrom, to: at }, take);
      if (isBlank(bytes, { from: at + 1, to: range.to })) return;
      throw notJson();
    }
  }
  throw notJson();
}

/** @throws {JsonFault} if it is not a key, a colon and something */
export function memberOf(bytes: Uint8Array, { from, to }: Range): Member {
  const begin = skipBlanks(bytes, from, to);
  if (bytes[begin] !== QUOTE) throw notJson();
  const end = endOfText(bytes, begin, to) + 1;
  const colon = skipBlanks(bytes, end, to);
  const value = { from: colon + 1, to };
  if (bytes[colon] !== COLON || colon >= to || isBlank(bytes, value)) throw notJson();
  return { key: { from: begin, to: end }, value };
}

/** Whether a value is an object or a list, as its first byte says. */
export function isKind(bytes: Uint8Array, { from, to }: Range, opening: number): boolean {
  const at = skipBlanks(bytes, from, to);
  return at < to && bytes[at] === opening;
}

/** Without the blanks around it, which may be many. */
function takePart(bytes: Uint8Array, part: Range, take: (part: Range) => void): void {
  const from = skipBlanks(bytes, part.from, part.to);
  let { to } = part;
  while (to > from && isBlankByte(bytes[to - 1])) to -= 1;
  if (from === to) throw notJson();
  take({ from, to });
}

function isOpening(byte: number | undefined): boolean {
  return byte === BRACE || byte === BRACKET;
}

/** @returns the position of the closing quote */
function endOfText(bytes: Uint8Array, from: number, to: number): number {
  for (let at = from + 1; at < to; at += 1) {
    if (bytes[at] === QUOTE) return at;
    if (bytes[at] === BACKSLASH) at += 1;
  }
  throw notJson();
}

function isBlank(bytes: Uint8Array, { from, to }: Range): boolean {
  return skipBlanks(bytes, from, to) >= to;
}

function skipBlanks(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to && isBlankByte(bytes[at])) at += 1;
  return at;
}

function isBlankByte(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

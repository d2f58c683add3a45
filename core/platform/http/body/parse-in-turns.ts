/**
 * Strict JSON of any size without blocking the event loop. `JSON.parse` takes 5 to 60 ms per MiB and blocks everything
 * else. A large text is split at its commas into pieces that are parsed one by one, with a turn of the loop between them,
 * and reassembled: a list or object larger than a piece is opened, and its elements are added piece by piece.
 */
import { nextTurn } from "#core/platform/process/next-turn.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  BACKSLASH,
  BRACE,
  BRACE_END,
  BRACKET,
  BRACKET_END,
  COMMA,
  doubledKey,
  JsonFault,
  NESTING_LIMIT,
  notJson,
  type ParsedJson,
  parseFragment,
  parseStrictJson,
  QUOTE,
  textStart,
  tooDeep,
} from "./strict-json.ts";

/** Texts up to this size are parsed in one go: about 5 ms at most. */
const WHOLE_BYTES = limit(
  128 * 1024,
  "bodies parsed in one go",
  "parsed in pieces, between turns of the event loop",
);
/** Larger texts are parsed in pieces of this size, about 1 ms each, and others are served in between. */
const PIECE_BYTES = limit(32 * 1024, "pieces of larger bodies", "the next turn of the event loop");
/**
 * Limit on the elements of a list, or members of an object, that is larger than a piece: none of our bodies has as many, and
 * judging 90,000 takes 25 ms in one go.
 */
export const ELEMENTS_LIMIT = limit(
  10_000,
  "elements of a list or object that is parsed in pieces",
  "400; INVALID",
);
/** Bytes that are scanned between two turns. */
const SCAN_BYTES = 1024 * 1024;
/** A value that no comma cuts, such as a text, is parsed whole, with the blanks around it: 5 ms a MiB. */
export const VALUE_LIMIT_BYTES = limit(2 * 1024 * 1024, "a single JSON value", "400 or INVALID");
/** Where the last escape of a larger text may begin: escapes take 14 ms a MiB. */
export const ESCAPES_LIMIT_BYTES = limit(
  2 * 1024 * 1024,
  "where the last escape of a JSON string may begin",
  "400, INVALID or unreadable",
);

/** Depth of the elements of a list in the outer object, such as `shipments[3]`. */
const ITEM_DEPTH = 2;

/** An element of a list in the outer object is larger than allowed. */
export class ItemTooLarge extends Error {}

/** The members of the outer object to return: nothing else is kept in memory. */
export interface Wanted {
  readonly members: readonly string[];
  /**
   * One of these members. If it is a large list, its elements are handed over piece by piece and the list itself stays
   * empty.
   */
  readonly list: string;
  readonly take: (elements: readonly unknown[], hasSurrogateEscapes: boolean) => void;
}

export interface TurnOptions {
  /** Limit on an element of a list in the outer object, such as `shipments[3]`. */
  readonly itemBytes?: number;
  /** Limit on a value that no comma cuts, and on white space. */
  readonly valueBytes?: number;
  readonly wanted?: Wanted;
  /** Texts up to this many bytes are parsed in one go. */
  readonly atOnceBytes?: number;
  readonly pieceBytes?: number;
}

/**
 * The same as `parseStrictJson`, but in turns if the text is large.
 * @throws {JsonFault} {ItemTooLarge}
 */
export async function parseInTurns(
  bytes: Uint8Array,
  options: TurnOptions = {},
): Promise<ParsedJson> {
  const { pieceBytes, atOnceBytes = pieceBytes ?? WHOLE_BYTES } = options;
  if (bytes.length <= atOnceBytes) return parseStrictJson(bytes);
  const assembling = assemble(bytes, options);
  let step = assembling.next();
  while (!step.done) {
    await nextTurn();
    step = assembling.next();
  }
  return step.value;
}

/** A list or object under construction. */
interface Opened {
  readonly value: unknown[] | Record<string, unknown>;
  readonly isList: boolean;
  /** Its key in its parent; empty in a list. */
  readonly key: string;
  /** Adds parsed elements or members. */
  readonly add: (piece: object, hasSurrogateEscapes: boolean) => void;
  /** Whether its last element was opened and is now complete: a comma or the end follows. */
  elementEnded: boolean;
}

/** Indexed by depth. */
interface Positions {
  /** Where the current element begins. */
  readonly startAt: number[];
  /** Position of the bracket that opened this depth. */
  readonly openAt: number[];
}

/** Yields when a turn of the loop is due. */
function* assemble(bytes: Uint8Array, options: TurnOptions): Generator<void, ParsedJson> {
  const { itemBytes = Number.POSITIVE_INFINITY, valueBytes = VALUE_LIMIT_BYTES } = options;
  const from = textStart(bytes);
  const pieces = openPieces(bytes, from, options);
  const positions: Positions = { startAt: [from], openAt: [] };
  const { startAt, openAt } = positions;
  let depth = 0;
  let turnAt = from + SCAN_BYTES;
  for (let at = from; at < bytes.length; at += 1) {
    if (at >= turnAt) {
      yield;
      turnAt = at + SCAN_BYTES;
    }
    const byte = bytes[at];
    const isEnd = byte === BRACKET_END || byte === BRACE_END;
    if (byte === QUOTE) {
      at = endOfText(bytes, at, valueBytes);
    } else if (byte === BRACKET || byte === BRACE) {
      depth += 1;
      if (depth > NESTING_LIMIT) throw tooDeep();
      openAt[depth] = at;
      startAt[depth] = at + 1;
    } else if (byte === COMMA || isEnd) {
      if (depth === ITEM_DEPTH && at - (startAt[depth] ?? 0) > itemBytes) {
        throw new ItemTooLarge();
      }
      const isParsed = isEnd ? takeEnd(pieces, at, depth) : takeComma(pieces, at, depth, positions);
      if (isParsed) yield;
      if (isEnd) depth -= 1;
      else startAt[depth] = at + 1;
    }
  }
  if (depth !== 0) throw notJson();
  return finish(pieces);
}

/** @returns the position of the closing quote */
function endOfText(bytes: Uint8Array, from: number, valueBytes: number): number {
  const limit = Math.min(bytes.length, from + valueBytes);
  for (let at = from + 1; at < limit; at += 1) {
    if (bytes[at] === QUOTE) return at;
    if (bytes[at] !== BACKSLASH) continue;
    if (at - from > ESCAPES_LIMIT_BYTES) throw tooManyEscapes();
    at += 1;
  }
  throw limit < bytes.length ? valueTooLarge(valueBytes) : notJson();
}

function tooManyEscapes(): JsonFault {
  return new JsonFault(
    `The text holds a string with escapes after its first ${ESCAPES_LIMIT_BYTES} bytes.`,
  );
}

function valueTooLarge(valueBytes: number): JsonFault {
  return new JsonFault(`The text holds a single value of more than ${valueBytes} bytes.`);
}

/** A text of which pieces are parsed and added to the lists and objects that are open. */
interface Pieces {
  readonly bytes: Uint8Array;
  readonly wanted: Wanted | undefined;
  readonly pieceBytes: number;
  readonly valueBytes: number;
  /** What the text holds: one value. */
  readonly whole: unknown[];
  /** By depth. */
  readonly opened: Opened[];
  /** Where the unparsed elements of the innermost open value begin. */
  pieceAt: number;
  /** Whether any piece so far held a surrogate escape. */
  hasSurrogateEscapes: boolean;
}

function openPieces(bytes: Uint8Array, from: number, options: TurnOptions): Pieces {
  const { wanted, pieceBytes = PIECE_BYTES, valueBytes = VALUE_LIMIT_BYTES } = options;
  const whole: unknown[] = [];
  const add = keepElements(whole);
  const opened: Opened[] = [{ value: whole, isList: true, key: "", add, elementEnded: false }];
  const limits = { pieceBytes, valueBytes };
  return { bytes, wanted, ...limits, whole, opened, pieceAt: from, hasSurrogateEscapes: false };
}

/** @returns whether a piece was parsed */
function takeComma(pieces: Pieces, at: number, depth: number, positions: Positions): boolean {
  const { opened, pieceBytes } = pieces;
  const isBetween = depth === opened.length - 1 && innermost(pieces).elementEnded;
  if (!isBetween && at - pieces.pieceAt < pieceBytes) return false;
  while (opened.length <= depth) openElement(pieces, positions);
  takePiece(pieces, at);
  innermost(pieces).elementEnded = false;
  pieces.pieceAt = at + 1;
  return true;
}

/**
 * The end of the value at `depth`.
 * @returns whether a piece was parsed
 */
function takeEnd(pieces: Pieces, at: number, depth: number): boolean {
  const { bytes, opened } = pieces;
  if (depth === 0) throw notJson();
  if (depth > opened.length - 1) return false;
  const { value, isList, key } = innermost(pieces);
  if (bytes[at] !== (isList ? BRACKET_END : BRACE_END)) throw notJson();
  takePiece(pieces, at);
  opened.pop();
  const outer = innermost(pieces);
  outer.add(outer.isList ? [value] : { [key]: value }, false);
  outer.elementEnded = true;
  pieces.pieceAt = at + 1;
  return true;
}

function finish(pieces: Pieces): ParsedJson {
  takePiece(pieces, pieces.bytes.length);
  const { whole, hasSurrogateEscapes } = pieces;
  if (whole.length !== 1) throw notJson();
  return { value: whole[0], hasSurrogateEscapes };
}

function innermost({ opened }: Pieces): Opened {
  const last = opened.at(-1);
  if (!last) throw notJson();
  return last;
}

/** Parses everything before `end` and adds it to the innermost value. */
function takePiece(pieces: Pieces, end: number): void {
  const { bytes, pieceAt, valueBytes } = pieces;
  const { isList, elementEnded, add } = innermost(pieces);
  if (elementEnded) {
    refuseText(bytes, pieceAt, end, valueBytes);
    return;
  }
  const piece = parsePiece(pieces, pieceAt, end, isList ? "[" : "{", isList ? "]" : "}");
  // Values are opened only at a comma, so there is an element on either side.
  if (isEmpty(piece.value as object)) throw notJson();
  add(piece.value as object, piece.hasSurrogateEscapes);
}

/** Opens the current element of the innermost value. */
function openElement(pieces: Pieces, { startAt, openAt }: Positions): void {
  const { bytes, opened, valueBytes } = pieces;
  const outer = innermost(pieces);
  const elementAt = startAt[opened.length - 1] ?? 0;
  const bracketAt = openAt[opened.length] ?? 0;
  if (elementAt > pieces.pieceAt) takePiece(pieces, elementAt - 1);
  else if (outer.elementEnded) throw notJson();
  outer.elementEnded = false;
  let key = "";
  if (outer.isList) refuseText(bytes, elementAt, bracketAt, valueBytes);
  else {
    const named = parsePiece(pieces, elementAt, bracketAt, "{", "[]}");
    [key = ""] = Object.keys(named.value as object);
  }
  const isList = bytes[bracketAt] === BRACKET;
  const value = isList ? [] : {};
  const add = adder(value, key, opened.length, pieces.wanted);
  opened.push({ value, isList, key, add, elementEnded: false });
  pieces.pieceAt = bracketAt + 1;
}

function parsePiece(
  pieces: Pieces,
  begin: number,
  end: number,
  before: string,
  after: string,
): ParsedJson {
  const { bytes, pieceBytes, valueBytes } = pieces;
  if (end - begin > pieceBytes + valueBytes) throw valueTooLarge(valueBytes);
  const parsed = parseFragment(bytes.subarray(begin, end), before, after);
  pieces.hasSurrogateEscapes ||= parsed.hasSurrogateEscapes;
  return parsed;
}

/** Where the elements of a list or object opened at a given depth go. */
function adder(value: object, key: string, depth: number, wanted?: Wanted): Opened["add"] {
  const isList = Array.isArray(value);
  if (wanted && depth === ITEM_DEPTH && isList && key === wanted.list) {
    return (piece, hasSurrogateEscapes) => wanted.take(piece as unknown[], hasSurrogateEscapes);
  }
  if (isList) return keepElements(value);
  const only = wanted && depth === 1 ? new Set(wanted.members) : null;
  return keepMembers(value as Record<string, unknown>, only);
}

function keepElements(list: unknown[]): Opened["add"] {
  return (piece) => {
    for (const element of piece as unknown[]) list.push(element);
    if (list.length > ELEMENTS_LIMIT) throw tooManyElements();
  };
}

/** @param only members to return; null = all */
function keepMembers(
  object: Record<string, unknown>,
  only: ReadonlySet<string> | null,
): Opened["add"] {
  let count = 0;
  return (piece) => {
    for (const [key, value] of Object.entries(piece)) {
      if (Object.hasOwn(object, key)) throw doubledKey();
      object[key] = only === null || only.has(key) ? value : null;
      count += 1;
    }
    if (count > ELEMENTS_LIMIT) throw tooManyElements();
  };
}

function tooManyElements(): JsonFault {
  return new JsonFault(`A list or an object has more than ${ELEMENTS_LIMIT} elements.`);
}

function isEmpty(piece: object): boolean {
  for (const _ in piece) return false;
  return true;
}

/** @throws {JsonFault} if there is anything but white space */
function refuseText(bytes: Uint8Array, from: number, to: number, valueBytes: number): void {
  if (to - from > valueBytes) throw valueTooLarge(valueBytes);
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) throw notJson();
  }
}

/**
 * JSON without tricks. `JSON.parse` silently keeps the last of two equal keys, so another parser may read a different
 * message; it accepts any depth; and a key `__proto__` is dangerous to code that copies objects. All three are refused.
 */
import { limit } from "#core/platform/schema/limit.ts";

/** Our own bodies have at most eight levels; an unknown envelope field of a courier may have more. */
export const NESTING_LIMIT = limit(
  32,
  "nesting of a JSON body, a courier's event, a setup file, a carrier's answer",
  "400; INVALID; refused; unreadable",
);

export interface ParsedJson {
  readonly value: unknown;
  /** Whether a text may contain a lone surrogate: only then must its strings be checked. */
  readonly hasSurrogateEscapes: boolean;
}

/** What is wrong with the text; the message may be shown to the caller. */
export class JsonFault extends Error {}

/** The text is not JSON at all. */
export class NotJson extends JsonFault {}

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COLON = 0x3a;
export const COMMA = 0x2c;
export const BRACKET = 0x5b;
export const BRACE = 0x7b;
export const BRACKET_END = 0x5d;
export const BRACE_END = 0x7d;
const LETTER_U = 0x75;
const LETTER_D = 0x64;

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A byte order mark before the text is ignored, as RFC 8259 (8.1) allows.
 * @throws {JsonFault}
 */
export function parseStrictJson(bytes: Uint8Array): ParsedJson {
  return parseFragment(bytes.subarray(textStart(bytes)), "", "");
}

/** Where the text begins: after a byte order mark. */
export function textStart(bytes: Uint8Array): number {
  return BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte) ? BYTE_ORDER_MARK.length : 0;
}

/**
 * Parses a part of a text, such as some elements of a list, wrapped in what makes it complete.
 * @param before without members of its own
 * @throws {JsonFault}
 */
export function parseFragment(bytes: Uint8Array, before: string, after: string): ParsedJson {
  const { members, hasSurrogateEscapes } = scan(bytes);
  const value = parse(before + decode(bytes) + after);
  if (countMembers(value) !== members) throw doubledKey();
  return { value, hasSurrogateEscapes };
}

export function doubledKey(): JsonFault {
  return new JsonFault("An object has the same key twice.");
}

export function notJson(): JsonFault {
  return new NotJson("The text is not valid JSON.");
}

export function tooDeep(): JsonFault {
  return new JsonFault(`The text is nested more than ${NESTING_LIMIT} deep.`);
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new JsonFault("The text is not valid UTF-8.");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

/** One pass over the bytes: depth, and how many members the text contains. Only meaningful if the text is JSON. */
function scan(bytes: Uint8Array): { members: number; hasSurrogateEscapes: boolean } {
  let depth = 0;
  let members = 0;
  let hasSurrogateEscapes = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      for (at += 1; at < bytes.length && bytes[at] !== QUOTE; at += 1) {
        if (bytes[at] !== BACKSLASH) continue;
        at += 1;
        const isUnicode = bytes[at] === LETTER_U && ((bytes[at + 1] ?? 0) | 0x20) === LETTER_D;
        if (isUnicode) hasSurrogateEscapes = true;
      }
    } else if (byte === COLON) {
      members += 1;
    } else if (byte === BRACE || byte === BRACKET) {
      depth += 1;
      if (depth > NESTING_LIMIT) throw tooDeep();
    } else if (byte === BRACE_END || byte === BRACKET_END) {
      depth -= 1;
    }
  }
  return { members, hasSurrogateEscapes };
}

/** How many members the parsed value has. */
function countMembers(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item);
    return count;
  }
  for (const key in value) {
    if (key === "__proto__") throw new JsonFault("The key __proto__ is not allowed.");
    count += 1 + countMembers((value as Record<string, unknown>)[key]);
  }
  return count;
}

/**
 * What the delivery log keeps of a receiver's answer. Receivers echo requests, in error pages above all, and whoever reads a
 * signature there could send its body again for as long as receivers accept it. So signatures are masked.
 */

import { limit } from "#core/platform/schema/limit.ts";

const MASK = "***";
/** Both headers of a signature, and both forms of one: 64 hexadecimal digits, 44 characters of base64. */
const SIGNED = /^(?:x-service-signature|webhook-signature)$/i;
const VALUE = /(?<=v1=)[0-9a-f]{64}|(?<=v1,)[\w+/]{43}=/g;
/** The same two forms anywhere, also cut off or with their marks escaped, as in URLs and JSON. */
const HEX = /(v1(?:=|%3D|\\u003d))[0-9a-f]{16,64}/gi;
const BASE64 = /(v1(?:,|%2C|\\u002c))[\w+/=%\\]{20,160}/gi;
/** Characters of an escaped `+`, `/` or `=` beside the plain one. */
const ESCAPED: Readonly<Record<string, string>> = {
  "+": "(?:\\+| |%2b|\\\\u002b)",
  "/": "(?:\\\\?/|%2f|\\\\u002f)",
  "=": "(?:=|%3d|\\\\u003d)?",
};

/** @param headers of the request that was answered */
export function withoutOwnSignatures(
  text: string,
  headers: Readonly<Record<string, string>>,
): string {
  let masked = text;
  for (const [name, header] of Object.entries(headers)) {
    if (!SIGNED.test(name)) continue;
    for (const [value] of header.matchAll(VALUE)) {
      const source = value.replace(/[+/=]/g, (mark) => ESCAPED[mark] ?? mark);
      masked = masked.replace(new RegExp(source, "gi"), MASK);
    }
  }
  return withoutSignatures(masked);
}

/** The same where the request is not at hand. */
export function withoutSignatures(text: string): string {
  return text.replace(HEX, `$1${MASK}`).replace(BASE64, `$1${MASK}`);
}

const HEADERS_SHOWN = limit(20, "headers of a receiver's answer that are kept", "the first ones");
const HEADER_SHOWN_LENGTH = limit(
  200,
  "characters kept of a header of a receiver's answer",
  "the rest is cut off",
);
/** Values that are, or may be, somebody's credentials. */
const CREDENTIAL = /cookie|auth|token|secret|signature|key|session|password/i;

/** @param lines names and values in turn @returns null when there are none */
export function shownHeaders(lines: readonly string[]): Readonly<Record<string, string>> | null {
  const shown = new Map<string, string>();
  for (let at = 0; at + 1 < lines.length && shown.size < HEADERS_SHOWN; at += 2) {
    const [name = "", value = ""] = [lines[at], lines[at + 1]];
    const masked = CREDENTIAL.test(name) ? MASK : withoutSignatures(value);
    shown.set(name.slice(0, HEADER_SHOWN_LENGTH), masked.slice(0, HEADER_SHOWN_LENGTH));
  }
  return shown.size === 0 ? null : Object.fromEntries(shown);
}

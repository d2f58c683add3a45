/** The text formats of our schemas. Each is a single pattern, which validates and is published. */
import { FormatRegistry } from "@sinclair/typebox";
import { CALENDAR_DATE, OFFSET_DATE_TIME } from "#core/platform/time/rome-time.ts";

export interface TextFormat {
  /** Without anchors. */
  readonly pattern: string;
  /** What the text must be, for people. */
  readonly words: string;
  /** The format of JSON Schema that means the same. */
  readonly standard?: "date";
}

/** Control characters, blanks and what RFC 3986 has no place for. */
const NOT_IN_URI =
  '\\u0000-\\u0020"<>\\\\^`{|}\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff';
const USER = `[^${NOT_IN_URI}/?#@]*@`;
const HOST = `(?:\\[[0-9A-Fa-f:.]+\\]|[^${NOT_IN_URI}%:/?#@\\[\\]]+)`;
const HTTP_URI = `[Hh][Tt][Tt][Pp][Ss]?://(?:${USER})?${HOST}(?::[0-9]{1,5})?(?:[/?#][^${NOT_IN_URI}]*)?`;
const HTTP_URI_FORM = new RegExp(`^${HTTP_URI}$`);

export const TEXT_FORMATS: Readonly<Record<string, TextFormat>> = {
  "offset-date-time": {
    pattern: OFFSET_DATE_TIME,
    words:
      "An ISO 8601 date and time from 2000 to 2099 with an explicit offset, such as 2026-11-20T10:00:00+01:00.",
  },
  "calendar-date": {
    pattern: CALENDAR_DATE,
    words: "A real date as YYYY-MM-DD.",
    standard: "date",
  },
  "date-or-date-time": {
    pattern: `(?:${CALENDAR_DATE}|${OFFSET_DATE_TIME})`,
    words:
      "A real date as YYYY-MM-DD, or an ISO 8601 date and time from 2000 to 2099 with an offset.",
  },
  "http-uri": {
    pattern: HTTP_URI,
    words: "An absolute http or https URI.",
  },
};

export function isHttpUri(text: string): boolean {
  return HTTP_URI_FORM.test(text);
}

/** Whether a text has more code points than a limit. */
export function isLongerThan(text: string, limit: number): boolean {
  let codePoints = 0;
  for (const _ of text) {
    codePoints += 1;
    if (codePoints > limit) return true;
  }
  return false;
}

/**
 * Any text of 1 to so many code points, whether or not the pattern is read with the flag `u`. Its forms exclude each other, so
 * that no text is tried in more than one way.
 */
export function textPattern(maxLength: number): string {
  const pair = "[\\ud800-\\udbff][\\udc00-\\udfff]";
  const half = "[\\ud800-\\udbff](?![\\udc00-\\udfff])";
  return `^(?:${pair}|[^\\ud800-\\udbff]|${half}){1,${maxLength}}$`;
}

for (const [name, { pattern }] of Object.entries(TEXT_FORMATS)) {
  const form = new RegExp(`^${pattern}$`);
  FormatRegistry.Set(name, (text) => form.test(text));
}

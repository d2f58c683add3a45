/**
 * References as people type them: tracking numbers, order references, sender accounts. What was given is kept and shown; these forms
 * are what is compared and looked up.
 *
 * | characters                                          | in a tracking number  | in another reference   |
 * |-----------------------------------------------------|-----------------------|------------------------|
 * | white space (`White_Space`), format characters (`Cf`) | never count           | do not count around it |
 * | the case of ASCII letters                           | does not count        | counts                 |
 * | other control characters                            | refused anywhere      | refused anywhere       |
 *
 * A text in which nothing visible is left is refused.
 */
import { Type } from "@sinclair/typebox";
import { limit } from "#core/platform/schema/limit.ts";

/** Document 1, "Limits": of a shipment. */
export const TRACKING_NUMBER_LENGTH = limit(
  50,
  "characters of a shipment's tracking number",
  "422",
);
/** Document 2, "Event": of an event, and of a parcel, whose number only events name. */
export const EVENT_NUMBER_LENGTH = limit(
  64,
  "characters of an event's and a parcel's tracking number",
  "422; INVALID",
);

export const WHITE_SPACE =
  "\\u0009-\\u000d\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
/** Format characters (`Cf`) of 16 bits. */
export const FORMAT =
  "\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b-\\u200f" +
  "\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb";
/** Format characters beyond 16 bits, as two units each. */
export const FORMAT_PAIRS =
  "\\ud804[\\udcbd\\udccd]|\\ud80d[\\udc30-\\udc3f]|\\ud82f[\\udca0-\\udca3]" +
  "|\\ud834[\\udd73-\\udd7a]|\\udb40[\\udc01\\udc20-\\udc7f]";
/** Control characters that are no white space. */
export const CONTROL = "\\u0000-\\u0008\\u000e-\\u001f\\u007f-\\u0084\\u0086-\\u009f";

/**
 * As published: programs that read a pattern by code points see the pairs as visible. No text is tried in more than one way, since
 * what does not count, what is visible and what is refused exclude each other.
 */
const REFERENCE_PATTERN = `^(?:[${WHITE_SPACE}${FORMAT}]|${FORMAT_PAIRS})*(?!${FORMAT_PAIRS})[^${CONTROL}${WHITE_SPACE}${FORMAT}][^${CONTROL}]*$`;
const REFERENCE_FORM = new RegExp(REFERENCE_PATTERN);

const IGNORED = "[\\p{White_Space}\\p{Cf}]";
const IGNORED_ANYWHERE = new RegExp(`${IGNORED}+`, "gu");
const IGNORED_BEFORE = new RegExp(`^${IGNORED}+`, "u");
const IGNORED_CHARACTER = new RegExp(`^${IGNORED}$`, "u");
/** Visible ASCII without small letters: almost every tracking number. */
const IS_MATCHING_FORM = /^[!-`{-~]*$/;
/** Begins and ends with visible ASCII, and has nothing but ASCII in between. */
const IS_PLAIN_FORM = /^[!-~](?:[ -~]*[!-~])?$/;

/** Schema of a reference in a request or an event; a fault of it is TOO_SHORT, TOO_LONG or BAD_FORMAT. */
export const referenceText = (maxLength: number) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: REFERENCE_PATTERN,
    description:
      "text with a visible character and without control characters; blanks around it do not count",
  });

/** Schema of a tracking number. */
export const trackingNumberText = (maxLength: number) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: REFERENCE_PATTERN,
    description:
      "text with a visible character and without control characters; blanks and the case of ASCII letters do not count",
  });

export function isReference(text: string): boolean {
  return REFERENCE_FORM.test(text);
}

/** Equal of all texts that mean the same tracking number. */
export function matchingNumber(given: string): string {
  if (IS_MATCHING_FORM.test(given)) return given;
  return given.replace(IGNORED_ANYWHERE, "").replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/** Equal of all texts that mean the same order reference, externalId or sender account. */
export function plainReference(given: string): string {
  if (IS_PLAIN_FORM.test(given)) return given;
  const text = given.replace(IGNORED_BEFORE, "");
  // From the end by hand: a pattern would try every run of blanks within the text.
  const characters = [...text];
  let end = characters.length;
  while (end > 0 && IGNORED_CHARACTER.test(characters[end - 1] ?? "")) end -= 1;
  return characters.slice(0, end).join("");
}

/** Without those that mean the same as one before. */
export function distinctNumbers(given: readonly string[]): string[] {
  return [
    ...new Map(given.toReversed().map((one) => [matchingNumber(one), one])).values(),
  ].reverse();
}

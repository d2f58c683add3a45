/**
 * Names of people, companies, couriers and channels, which stand in mails and on other people's screens. What is not seen there is
 * refused: an override of the direction of writing (U+202E) makes a name read as another one, a zero-width space makes two names look
 * alike, and a line end makes two lines of one.
 */
import { Type } from "@sinclair/typebox";
import { CONTROL, FORMAT, FORMAT_PAIRS, WHITE_SPACE } from "#core/events/rules/reference.ts";

/** White space that ends a line or moves on in it. */
const BREAKS = "\\u0009-\\u000d\\u0085\\u2028\\u2029";
const NAME_PATTERN = `^(?=[${WHITE_SPACE}]*[^${WHITE_SPACE}])(?:(?!${FORMAT_PAIRS})[^${CONTROL}${BREAKS}${FORMAT}])*$`;

export const nameText = (maxLength: number) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: NAME_PATTERN,
    description: `1 to ${maxLength} characters, one of them visible, without control and format characters`,
  });

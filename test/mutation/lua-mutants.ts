/** Mutants of a Lua script: an operator, a number, a condition or a whole call is changed. */
import type { Mutant } from "./typescript-mutants.ts";

const CHANGES: ReadonlyArray<readonly [pattern: RegExp, after: (before: string) => string]> = [
  [/ <= /g, () => " < "],
  [/ >= /g, () => " > "],
  [/ < /g, () => " <= "],
  [/ > /g, () => " >= "],
  [/ == /g, () => " ~= "],
  [/ ~= /g, () => " == "],
  [/ and /g, () => " or "],
  [/ or /g, () => " and "],
  // `+ 0` turns a text into a number.
  [/ \+ (?!0\b)/g, () => " - "],
  [/ - /g, () => " + "],
  [/\bnot /g, () => ""],
  [/\btrue\b/g, () => "false"],
  [/\bfalse\b/g, () => "true"],
  [/(?<![\w%.'"[])(?!(?<=\+ )0\b)\d+\b(?![%'"\]])/g, (before) => String(Number(before) + 1)],
  // A call for its effect, that stands alone in its line.
  [/(?<=^ *)(?:redis\.)?call\(.*\)$/gm, () => "do end"],
];

/** What a check adds up and compares, it only does so that a wrong type fails. */
const IS_CHECK = /\bassert\(|\bareTexts\b|\bsum = sum \+/;

export function luaMutantsOf(source: string): Mutant[] {
  return CHANGES.flatMap(([pattern, after]) =>
    [...source.matchAll(pattern)].flatMap(({ 0: before, index }) => {
      const line = source.slice(0, index).split("\n").length;
      const text = source.split("\n")[line - 1] ?? "";
      // Comments, the header, and checks of arguments, which tests of their own spoil one by one.
      if (/^\s*(?:--|#!)/.test(text) || IS_CHECK.test(text)) return [];
      const changed = after(before);
      const mutated = source.slice(0, index) + changed + source.slice(index + before.length);
      return [{ line, before: before.trim(), after: changed.trim(), source: mutated }];
    }),
  );
}

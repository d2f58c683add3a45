/** "Did you mean": the name that a mistyped one was most likely meant to be. */
import { distance } from "fastest-levenshtein";
import { limit } from "./limit.ts";

/** Longest text that is compared, in UTF-16 units. */
const COMPARED_LENGTH = limit(64, "characters of a name that a suggestion is looked for", "none");
/** A comparison takes about a microsecond. */
const NAMES_COMPARED = limit(
  500,
  "names that a mistyped one is compared with",
  "the first of them",
);
/** Share of the longer name that may differ. */
const DIFFERENT_SHARE = 0.4;
/** A beginning of this many characters is enough. */
const PREFIX_LENGTH = 3;

/** @returns null if none is near */
export function nearest(text: string, names: Iterable<string>): string | null {
  const wanted = plain(text);
  if (wanted === "" || wanted.length > COMPARED_LENGTH) return null;
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  let compared = 0;
  for (const name of names) {
    if (compared === NAMES_COMPARED) break;
    const other = plain(name);
    if (Math.abs(other.length - wanted.length) >= bestDistance) continue;
    compared += 1;
    const found = differs(wanted, other);
    if (found >= bestDistance) continue;
    best = name;
    bestDistance = found;
  }
  return best;
}

/** Swapped letters are one mistake. */
function letters(text: string): string {
  return [...text].toSorted().join("");
}

/** Infinite for a name that nobody would mistake for the other. */
function differs(wanted: string, other: string): number {
  const isSwapped = wanted.length === other.length && letters(wanted) === letters(other);
  const between = isSwapped ? 1 : distance(wanted, other);
  const longest = Math.max(wanted.length, other.length);
  if (between <= longest * DIFFERENT_SHARE || isBeginning(wanted, other)) return between;
  return Number.POSITIVE_INFINITY;
}

function isBeginning(one: string, other: string): boolean {
  const shorter = Math.min(one.length, other.length);
  return shorter >= PREFIX_LENGTH && (one.startsWith(other) || other.startsWith(one));
}

/** Letters in one case, and digits: brackets, hyphens and spaces do not count. */
function plain(text: string): string {
  return text
    .slice(0, COMPARED_LENGTH + 1)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, "");
}

/** Italian place names as people write them: without accents, with abbreviations, without their small words. */
import type { CheckedAddress } from "#core/merchants/rules/address-check.ts";

/** Letters and digits alone: case, accents, apostrophes and hyphens do not count. */
export function plain(text: string): string {
  return withoutAccents(text).replaceAll(/[^a-z0-9]/g, "");
}

function withoutAccents(text: string): string {
  return text.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();
}

/** "Reggio Emilia" is Reggio nell'Emilia. */
const SMALL_WORDS: ReadonlySet<string> = new Set(
  "a ad al alla alle d da de dei del dell della delle degli di e ed il in l la le lo nel nell nella sul sull sulla".split(
    " ",
  ),
);

/** Abbreviations that need no full stop. */
const ABBREVIATIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ["s", ["san", "sant", "santa", "santo"]],
  ["sta", ["santa"]],
  ["sto", ["santo"]],
  ["ss", ["santi", "sante", "santissima", "santissimo"]],
  ["mte", ["monte"]],
]);

/** "S.", "Cast." and "M.to" are one word each: the full stop ends it, or stands for its middle. */
const WORD = /[a-z0-9]+(?:\.(?:ta|to|te|ti|go|lo|la|no|na)\b|\.)?/g;

/** The words of a name, with the full stops that mark abbreviations. */
export function words(text: string): string[] {
  return (withoutAccents(text).match(WORD) ?? []).filter((word) => !SMALL_WORDS.has(word));
}

/** @param written words that may be abbreviated @param name words of a full name */
export function matchesName(written: readonly string[], name: readonly string[]): boolean {
  return (
    written.length > 0 &&
    written.length === name.length &&
    written.every((word, at) => matchesWord(word, name[at] ?? ""))
  );
}

function matchesWord(written: string, word: string): boolean {
  const [start = "", end] = written.split(".");
  if (!end && ABBREVIATIONS.get(start)?.includes(word)) return true;
  if (end === undefined) return start === word;
  return word.length >= start.length + end.length && word.startsWith(start) && word.endsWith(end);
}

/** What stands around the name of a province or region: "prov. di", "(FG)", "IT-FG". */
const AROUND = /^(it-|\(|provincia |prov\. ?|prov |citta metropolitana |regione )+|\)$/g;
/** The code of a province behind a name: "Foggia (FG)". */
const CODE_BEHIND = /(?<=.)\(([A-Za-z]{2})\)$/;

/** One text for all spellings of a province or region. */
export function regionKey(text: string): string {
  const name = withoutAccents(text).trim().replace(CODE_BEHIND, "").trim().replaceAll(AROUND, "");
  // The codes of Lodi, Alessandria and Lecce are small words too.
  return name.length === 2 ? name : words(name).join(" ");
}

/** "Milano (MI)" names the province behind the city; a province that was given beside it counts more. */
export function splitCity(address: CheckedAddress): CheckedAddress {
  const { city, state, country } = address;
  const province = CODE_BEHIND.exec(city.trim())?.[1];
  if (country !== "IT" || province === undefined) return address;
  return {
    ...address,
    city: city.trim().replace(CODE_BEHIND, "").trim(),
    state: state ?? province,
  };
}

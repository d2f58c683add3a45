/**
 * What an unmapped code probably means. A wrong mapping tells recipients that a parcel was delivered, so no suggestion is better
 * than a wrong one. Three kinds of evidence, and where two of them disagree nothing is suggested:
 *
 * | evidence                | counts if                                                                          | confidence |
 * |-------------------------|------------------------------------------------------------------------------------|------------|
 * | the same words          | a mapped code, or our name of a status, has the same words; all of them agree       | high       |
 * | similar words           | at least two shared words, `ALIKE` of them in all, clearly ahead of any other meaning | medium     |
 * | the same code elsewhere | a code of letters, mapped by two other couriers at least, which all agree           | medium     |
 * | what happened to parcels | between two events of one and the same status, in `NEARLY_ALL` of 20 parcels or more | low       |
 *
 * What happened to parcels also refuses a meaning that it contradicts: after a delivery nothing follows.
 */
import { type Status, type StatusPair, samePair } from "./status.ts";

type Confidence = "high" | "medium" | "low";

export interface Suggestion {
  readonly status: Status;
  /** 0 = none. */
  readonly statusDetail: number;
  readonly confidence: Confidence;
  readonly because: Readonly<Record<"en" | "it", string>>;
}

/** A text with a known meaning. */
export interface KnownText {
  readonly pair: StatusPair;
  readonly text: string;
  /** Null = our own name of a status or a detail. */
  readonly of: { readonly courier: string; readonly name: string; readonly code: string } | null;
}

/** What stood before and behind the code in a shipment's history; null = nothing that is mapped. */
export interface Passage {
  readonly before: StatusPair | null;
  readonly after: readonly StatusPair[];
}

export interface UnknownCode {
  readonly courier: string;
  readonly code: string;
  readonly description: string;
}

/** Shared words in twice their number, by the words of both texts. */
const ALIKE = 0.7;
/** By which the best meaning is ahead of the next one. */
const AHEAD = 0.15;
const SHARED_WORDS = 2;
const OTHER_COURIERS = 2;
const PARCELS_NEEDED = 20;
const NEARLY_ALL = 0.95;
/** Parcels that may contradict a meaning. */
const CONTRADICTED = 0.1;

/** Their order of events is not strict, and what follows them is no contradiction. */
const ENDS: ReadonlySet<Status> = new Set(["DELIVERED", "RETURNED"]);

/** Without a meaning of their own in a description. */
const FILLERS = new Set(
  "a al alla alle allo ai agli il la lo i gli le un una uno di del della dello dei da dal dalla per con e ed stata stato the an of to at by for has been was is your and spedizione spedizioni collo colli pacco merce ordine shipment parcel package order".split(
    " ",
  ),
);
const NEGATIONS = new Set(["non", "not", "no", "mai", "never", "senza", "without", "cannot"]);

/** The words of a text without case, accents, fillers and the vowels by which Italian tells gender and number. */
function wordsOf(text: string): ReadonlySet<string> {
  const plain = text.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();
  const words = plain.match(/[\p{L}\p{N}]+/gu) ?? [];
  return new Set(
    words
      .filter((word) => !FILLERS.has(word))
      .map((word) => (word.length >= 5 ? word.replace(/[aeio]$/, "") : word)),
  );
}

export interface Knowledge {
  /** @param passages of a sample of its parcels */
  readonly suggest: (unknown: UnknownCode, passages: readonly Passage[]) => Suggestion | null;
}

/** @param known texts of every mapped code, and of our own names */
export function knowledgeOf(known: readonly KnownText[]): Knowledge {
  const texts = known
    .map((one) => ({ ...one, words: wordsOf(one.text) }))
    .filter(({ words }) => words.size > 0);
  const bySameWords = Map.groupBy(texts, ({ words }) => nameOf(words));
  const byWord = new Map<string, typeof texts>();
  for (const text of texts) {
    for (const word of text.words) {
      const withIt = byWord.get(word);
      if (withIt) withIt.push(text);
      else byWord.set(word, [text]);
    }
  }
  const byCode = Map.groupBy(
    known.filter((one) => one.of !== null),
    (one) => one.of?.code.toUpperCase() ?? "",
  );

  function suggest(unknown: UnknownCode, passages: readonly Passage[]): Suggestion | null {
    const words = wordsOf(unknown.description);
    const same = bySameWords.get(nameOf(words)) ?? [];
    const byText = same.length > 0 ? sameWords(same) : similarWords(words);
    const elsewhere = sameCode(unknown, byCode.get(unknown.code.toUpperCase()) ?? []);
    if (byText === "disagree" || elsewhere === "disagree") return null;
    if (byText && elsewhere && !samePair(pairOf(byText), pairOf(elsewhere))) return null;
    const found = byText ?? elsewhere;
    if (!found) return inBetween(passages);
    if (isContradicted(found.status, passages)) return null;
    return byText && elsewhere
      ? { ...found, confidence: "high", because: joined(byText.because, elsewhere.because) }
      : found;
  }

  function similarWords(words: ReadonlySet<string>): Suggestion | null {
    const candidates = new Set([...words].flatMap((word) => byWord.get(word) ?? []));
    const scored = [...candidates]
      .filter((one) => isNegated(one.words) === isNegated(words))
      .map((one) => ({ one, score: likeness(one.words, words) }))
      .sort((first, second) => second.score - first.score);
    const [best] = scored;
    if (!best || best.score < ALIKE) return null;
    const next = scored.find(({ one }) => !samePair(one.pair, best.one.pair));
    if (next && best.score - next.score < AHEAD) return null;
    return suggestion(best.one.pair, "medium", {
      en: `Its description is close to “${best.one.text}”${sourceOf(best.one, "en")}.`,
      it: `La descrizione è vicina a “${best.one.text}”${sourceOf(best.one, "it")}.`,
    });
  }

  return { suggest };
}

function sameWords(same: readonly KnownText[]): Suggestion | "disagree" {
  const [first] = same;
  if (!first || same.some(({ pair }) => !samePair(pair, first.pair))) return "disagree";
  // A courier's code tells more than our own name.
  const shown = same.find((one) => one.of !== null) ?? first;
  return suggestion(first.pair, "high", {
    en: `Its description says the same as “${shown.text}”${sourceOf(shown, "en")}.`,
    it: `La descrizione dice lo stesso di “${shown.text}”${sourceOf(shown, "it")}.`,
  });
}

/** Numbers mean something else at every courier; words are chosen alike. */
function sameCode(
  { courier, code }: UnknownCode,
  mapped: readonly KnownText[],
): Suggestion | "disagree" | null {
  if (!/^\p{L}{3,}$/u.test(code.replaceAll(/[-_ ]/g, ""))) return null;
  const others = mapped.filter(({ of }) => of !== null && of.courier !== courier);
  const names = [...new Set(others.map(({ of }) => of?.name ?? ""))].sort();
  const [first] = others;
  if (!first || names.length < OTHER_COURIERS) return null;
  if (others.some(({ pair }) => !samePair(pair, first.pair))) return "disagree";
  return suggestion(first.pair, "medium", {
    en: `${names.length} other couriers use the code ${code} for it, such as ${names[0]}.`,
    it: `Altri ${names.length} corrieri usano per questo il codice ${code}, come ${names[0]}.`,
  });
}

/** Where nothing changes by the code, mapping it to the same status changes nothing either. */
function inBetween(passages: readonly Passage[]): Suggestion | null {
  const unchanged = passages.flatMap(({ before, after: [next] }) =>
    before && next && samePair(before, next) && !ENDS.has(before.status) ? [before] : [],
  );
  const byPair = Map.groupBy(unchanged, ({ status, detail }) => `${status} ${detail}`);
  const [most = []] = [...byPair.values()].sort((one, other) => other.length - one.length);
  const [pair] = most;
  if (!pair || passages.length < PARCELS_NEEDED) return null;
  const alike = most.length;
  if (alike < passages.length * NEARLY_ALL) return null;
  const share = `${alike} / ${passages.length}`;
  return suggestion(pair, "low", {
    en: `The parcels had this status before it and after it (${share} parcels looked at), so it seems to change nothing.`,
    it: `I colli avevano questo stato prima e dopo (${share} colli esaminati), quindi non sembra cambiare nulla.`,
  });
}

function isContradicted(status: Status, passages: readonly Passage[]): boolean {
  const against = passages.filter(({ before, after }) =>
    ENDS.has(status)
      ? after.some((pair) => !ENDS.has(pair.status))
      : before !== null && ENDS.has(before.status),
  );
  return against.length > passages.length * CONTRADICTED;
}

function isNegated(words: ReadonlySet<string>): boolean {
  return [...words].some((word) => NEGATIONS.has(word));
}

/** 0 where they share too few words to say anything. */
function likeness(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  const shared = one.intersection(other).size;
  return shared < SHARED_WORDS ? 0 : (2 * shared) / (one.size + other.size);
}

function nameOf(words: ReadonlySet<string>): string {
  return [...words].sort().join(" ");
}

function sourceOf({ of }: KnownText, language: "en" | "it"): string {
  if (of === null)
    return language === "en" ? ", our own name of it" : ", il nostro nome per questo";
  return language === "en" ? `, ${of.code} of ${of.name}` : `, ${of.code} di ${of.name}`;
}

function suggestion(
  { status, detail }: StatusPair,
  confidence: Confidence,
  because: Suggestion["because"],
): Suggestion {
  return { status, statusDetail: detail, confidence, because };
}

function pairOf({ status, statusDetail }: Suggestion): StatusPair {
  return { status, detail: statusDetail };
}

function joined(one: Suggestion["because"], other: Suggestion["because"]): Suggestion["because"] {
  return { en: `${one.en} ${other.en}`, it: `${one.it} ${other.it}` };
}

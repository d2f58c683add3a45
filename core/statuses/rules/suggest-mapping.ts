/**
 * What an unmapped code probably means. A wrong mapping tells recipients that a parcel was delivered, so no suggestion is better
 * than a wrong one. Two kinds of evidence:
 *
 * | evidence                 | counts if                                                                      | confidence |
 * |--------------------------|--------------------------------------------------------------------------------|------------|
 * | the same words           | a mapped code, or our name of a status, has the same words; all of them agree  | high       |
 * | what happened to parcels | between two events of one and the same status, in `NEARLY_ALL` of 20 or more   | low        |
 *
 * What happened to parcels also refuses a meaning that it contradicts: after a delivery nothing follows.
 */
import { type Status, type StatusPair, samePair } from "./status.ts";

type Confidence = "high" | "low";

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
  readonly of: { readonly name: string; readonly code: string } | null;
}

/** What stood before and behind the code in a shipment's history; null = nothing that is mapped. */
export interface Passage {
  readonly before: StatusPair | null;
  readonly after: readonly StatusPair[];
}

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

/** The words of a text, sorted, without case, accents, fillers and the vowels by which Italian tells gender and number. */
function wordsOf(text: string): string {
  const plain = text.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();
  const words = plain.match(/[\p{L}\p{N}]+/gu) ?? [];
  const own = words
    .filter((word) => !FILLERS.has(word))
    .map((word) => (word.length >= 5 ? word.replace(/[aeio]$/, "") : word));
  return [...new Set(own)].sort().join(" ");
}

export interface Knowledge {
  /** @param passages of a sample of the parcels of the code that is described */
  readonly suggest: (description: string, passages: readonly Passage[]) => Suggestion | null;
}

/** @param known texts of every mapped code, and of our own names */
export function knowledgeOf(known: readonly KnownText[]): Knowledge {
  const bySameWords = Map.groupBy(known, ({ text }) => wordsOf(text));
  return {
    suggest(description, passages) {
      const words = wordsOf(description);
      const [first, ...others] = (words && bySameWords.get(words)) || [];
      return first ? sameWords(first, others, passages) : inBetween(passages);
    },
  };
}

/** None where texts with these words mean different things, or where parcels contradict what they mean. */
function sameWords(
  first: KnownText,
  others: readonly KnownText[],
  passages: readonly Passage[],
): Suggestion | null {
  if (others.some(({ pair }) => !samePair(pair, first.pair))) return null;
  if (isContradicted(first.pair.status, passages)) return null;
  // A courier's code tells more than our own name.
  const shown = [first, ...others].find((one) => one.of !== null) ?? first;
  return suggestion(first.pair, "high", {
    en: `Its description says the same as “${shown.text}”${sourceOf(shown, "en")}.`,
    it: `La descrizione dice lo stesso di “${shown.text}”${sourceOf(shown, "it")}.`,
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

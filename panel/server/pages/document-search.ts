/** Finds the parts of documents that have every word of a question. */
import { limit } from "#core/platform/schema/limit.ts";
import type { Guide, outlineOf } from "./guides.ts";

type Section = ReturnType<typeof outlineOf>["sections"][number];

interface Found<Page> {
  readonly page: Page;
  readonly section: Section;
  /** The text around the first word: what stands before it, the word as it is written there, and what follows. */
  readonly before: string;
  readonly match: string;
  readonly after: string;
}

export const FOUND_PARTS = limit(50, "parts of documents that a search finds", "the best ones");
export const SEARCH_WORDS = limit(
  10,
  "words that a search of the documents looks at",
  "the first ones",
);
/** Characters on each side of a word. */
const AROUND = 80;
/** A word in the heading counts as this many in the text. */
const HEADING_WEIGHT = 20;

type SearchedPage = Guide & { readonly sections: readonly Section[] };

/** The best first. */
export function found<Page extends SearchedPage>(
  question: string,
  pages: readonly Page[],
): Found<Page>[] {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean).slice(0, SEARCH_WORDS);
  if (words.length === 0) return [];
  const scored = pages.flatMap((page) =>
    page.sections.map((section) => ({ page, section, score: scoreOf(section, words) })),
  );
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, FOUND_PARTS)
    .map(({ page, section }) => ({ page, section, ...excerpt(section, words) }));
}

/** 0: a word is missing. */
function scoreOf({ heading, text }: Section, words: readonly string[]): number {
  const [title, body] = [heading.toLowerCase(), text.toLowerCase()];
  const scores = words.map(
    (word) => (title.includes(word) ? HEADING_WEIGHT : 0) + body.split(word).length - 1,
  );
  return scores.includes(0) ? 0 : scores.reduce((sum, score) => sum + score, 0);
}

function excerpt({ text }: Section, words: readonly string[]) {
  const places = words.map((word) => ({ at: text.toLowerCase().indexOf(word), word }));
  const { at, word } = places.find((place) => place.at >= 0) ?? { at: 0, word: "" };
  const end = at + word.length;
  return {
    before: text.slice(Math.max(0, at - AROUND), at),
    match: text.slice(at, end),
    after: text.slice(end, end + AROUND),
  };
}

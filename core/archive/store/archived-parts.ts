/**
 * JSON values taken apart into what may be read by anybody and what is personal. Where something was taken out, a mark stands:
 *
 * | mark   | stands for                                        |
 * |--------|---------------------------------------------------|
 * | `=...` | the text that follows                             |
 * | `p`    | the next personal value                           |
 * | `w...` | the word of this number                           |
 *
 * A text is personal unless its member is named as open, and so is a whole object with a member that nobody knows.
 */

export interface Parts {
  /** Texts that come again and again, each once. */
  readonly words: string[];
  readonly personal: unknown[];
}

/** What becomes of the texts of members. */
export interface Policy {
  readonly open: ReadonlySet<string>;
  readonly words: ReadonlySet<string>;
  /** Members whose names may be read. */
  readonly known: ReadonlySet<string>;
}

/** A text that came so often is a word: it costs 14 bytes where it first stands among its neighbours, and about 3 later. */
const COMMON_FROM = 3;
const WORD_LENGTH = 5;
/** Most texts that are counted; at the limit counting starts again from none. */
const COUNTED_TEXTS = 20_000;
const counted = new Map<string, number>();

function isCommon(text: string): boolean {
  if (text.length < WORD_LENGTH) return false;
  const before = counted.get(text) ?? 0;
  if (before >= COMMON_FROM) return true;
  if (counted.size >= COUNTED_TEXTS) counted.clear();
  counted.set(text, before + 1);
  return false;
}

export function openText(text: string): string {
  return `=${text}`;
}

export function personalValue({ personal }: Parts, value: unknown): string {
  personal.push(value);
  return "p";
}

/** A word where the text is a common one, else personal. */
export function wordOf(parts: Parts, text: string): string {
  const known = parts.words.indexOf(text);
  if (known !== -1) return `w${known}`;
  return isCommon(text) ? `w${parts.words.push(text) - 1}` : personalValue(parts, text);
}

/** @param name of the member that the value stands in */
export function takenApart(parts: Parts, policy: Policy, value: unknown, name = ""): unknown {
  if (typeof value === "string") {
    if (policy.open.has(name)) return openText(value);
    return policy.words.has(name) ? wordOf(parts, value) : personalValue(parts, value);
  }
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => takenApart(parts, policy, one, name));
  for (const member in value) if (!policy.known.has(member)) return personalValue(parts, value);
  const open: Record<string, unknown> = {};
  for (const member in value) {
    open[member] = takenApart(parts, policy, (value as Record<string, unknown>)[member], member);
  }
  return open;
}

/** @throws when there are more marks than values */
export function createJoining({ words, personal }: Parts): (value: unknown) => unknown {
  let next = 0;
  function ofMark(mark: string): unknown {
    if (mark[0] === "=") return mark.slice(1);
    if (mark[0] === "w") return words[Number(mark.slice(1))];
    if (next >= personal.length) throw new Error("an archived shipment lacks a value");
    const value = personal[next];
    next += 1;
    return value;
  }
  function joined(value: unknown): unknown {
    if (typeof value === "string") return ofMark(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(joined);
    const whole: Record<string, unknown> = {};
    for (const member in value) whole[member] = joined((value as Record<string, unknown>)[member]);
    return whole;
  }
  return joined;
}

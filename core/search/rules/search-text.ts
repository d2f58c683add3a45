/**
 * What the panel's search by part looks at: a shipment's numbers and its order reference, without white space and format
 * characters and in small letters. Names of recipients are not among them: what is erased must not be found here.
 *
 * A line: the shipment's id as digits of three bits, each a byte from `HEAD` on, which no UTF-8 text contains; the courier's code,
 * `END_OF_COURIER`, the texts with `BETWEEN_TEXTS` in between. Several lines may name one shipment.
 */
import type { ShipmentState } from "#core/shipments/rules/fold.ts";
import type { ShipmentRecord } from "#core/shipments/rules/shipment.ts";

const HEAD = 0xf8;
const END_OF_COURIER = 1;
const BETWEEN_TEXTS = 0;
const NOT_SEARCHED = /[\p{White_Space}\p{Cf}\p{Cc}]+/gu;

export function searchForm(text: string): string {
  return text.replace(NOT_SEARCHED, "").toLowerCase();
}

/** What one shipment is found by. */
export function searchTexts(
  { trackingNumber, orderReference, parcels = [] }: ShipmentRecord,
  { aliases }: Pick<ShipmentState, "aliases">,
): string[] {
  const numbers = parcels.map((parcel) => parcel.trackingNumber);
  const texts = [trackingNumber, orderReference, ...numbers, ...aliases];
  return [...new Set(texts.map((text) => searchForm(text ?? "")))].filter((text) => text !== "");
}

export function searchLine(id: number, courier: string, texts: readonly string[]): Buffer {
  const digits: number[] = [];
  // The lowest digit first: a reader comes from behind.
  for (let left = id; left > 0; left = Math.floor(left / 8)) digits.push(HEAD + (left % 8));
  const between = String.fromCharCode(BETWEEN_TEXTS);
  const text = `${courier}${String.fromCharCode(END_OF_COURIER)}${texts.join(between)}`;
  return Buffer.concat([Buffer.from(digits), Buffer.from(text)]);
}

export interface SearchedText {
  /** As `searchForm` makes it; empty = any. */
  readonly text: string;
  /** Empty = any. */
  readonly courier: string;
}

/** The ids in a run of lines whose texts contain the text, each as often as its lines do. */
export function findInLines(lines: Buffer, { text, courier }: SearchedText): number[] {
  const of = Buffer.from(courier);
  const needle = Buffer.from(text || `${courier}${String.fromCharCode(END_OF_COURIER)}`);
  const found: number[] = [];
  for (let at = lines.indexOf(needle); at >= 0; at = lines.indexOf(needle, at)) {
    const start = startOfLine(lines, at);
    const texts = lines.indexOf(END_OF_COURIER, start) + 1;
    const isInPlace = text === "" ? at === start : at >= texts;
    if (!isInPlace) {
      at = text === "" ? at + 1 : texts;
      continue;
    }
    if (courier === "" || lines.subarray(start, texts - 1).equals(of)) {
      found.push(idBefore(lines, start));
    }
    at = endOfLine(lines, at);
  }
  return found;
}

/** The lines of all shipments but these. */
export function linesWithout(lines: Buffer, gone: ReadonlySet<number>): Buffer {
  const kept: Buffer[] = [];
  for (let from = 0; from < lines.length; ) {
    let text = from;
    while (text < lines.length && (lines[text] as number) >= HEAD) text += 1;
    const end = endOfLine(lines, text);
    if (!gone.has(idBefore(lines, text))) kept.push(lines.subarray(from, end));
    from = end;
  }
  return Buffer.concat(kept);
}

function startOfLine(lines: Buffer, at: number): number {
  let start = at;
  while (start > 0 && (lines[start - 1] as number) < HEAD) start -= 1;
  return start;
}

function endOfLine(lines: Buffer, at: number): number {
  let end = at;
  while (end < lines.length && (lines[end] as number) < HEAD) end += 1;
  return end;
}

function idBefore(lines: Buffer, start: number): number {
  let id = 0;
  for (let at = start - 1; at >= 0 && (lines[at] as number) >= HEAD; at -= 1) {
    id = id * 8 + (lines[at] as number) - HEAD;
  }
  return id;
}

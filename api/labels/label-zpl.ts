/** One label as ZPL II: 10x15 cm at 8 dots a millimetre, the content of the PDF. */

import { printableInZpl } from "#core/merchants/pdf/printable.ts";
import { code128 } from "./code128.ts";
import type { LabelSheet } from "./label-sheet.ts";

/** Dots. */
const WIDTH = 800;
const HEIGHT = 1200;
const MARGIN = 32;
const BARS_HEIGHT = 200;
const MODULE_MAX = 4;
/** Dots of a character's width for each of its height, at the most: font 0 is narrower. */
const WIDE = 0.6;

const Y = { carrier: 28, from: 84, to: 240, facts: 560, bars: 880, number: 1100 };

interface Block {
  readonly y: number;
  readonly until: number;
  readonly sizes: readonly number[];
}

export function labelZpl(sheet: LabelSheet): string {
  const facts = sheet.facts.map(([caption, value]) => `${caption}: ${value}`);
  return page([
    ...block([sheet.carrier], { y: Y.carrier, until: Y.from, sizes: [40, 30] }),
    ...block(sheet.from, { y: Y.from, until: Y.to - 20, sizes: [26, 22, 18] }),
    rule(Y.to - 16),
    ...block([sheet.toCaption], { y: Y.to, until: Y.to + 30, sizes: [24] }),
    ...block(sheet.to, { y: Y.to + 34, until: Y.facts - 20, sizes: [44, 36, 30, 24, 18] }),
    rule(Y.facts - 16),
    ...block(facts, { y: Y.facts, until: Y.bars - 20, sizes: [34, 28, 24, 20] }),
    rule(Y.bars - 16),
    bars(sheet.trackingNumber),
    ...block([sheet.trackingNumber], { y: Y.number, until: HEIGHT, sizes: [36, 28] }),
  ]);
}

/** The sheet that tells an operator not to ship: no barcode, no tracking number. */
export function errorZpl(title: readonly string[], lines: readonly string[]): string {
  return page([
    ...block(title, { y: 60, until: 340, sizes: [90, 70, 50, 40] }),
    rule(360),
    ...block(lines, { y: 400, until: HEIGHT, sizes: [36, 30, 24, 18] }),
  ]);
}

function page(fields: readonly string[]): string {
  return ["^XA", "^CI28", `^PW${WIDTH}`, `^LL${HEIGHT}`, ...fields, "^XZ"].join("\n");
}

function rule(y: number): string {
  return `^FO${MARGIN},${y}^GB${WIDTH - 2 * MARGIN},2,2^FS`;
}

/** Wraps lines into the largest size that fits; what is too long even then is cut. */
function block(lines: readonly string[], { y, until, sizes }: Block): string[] {
  const texts = lines.map(printableInZpl);
  const rows = (size: number) => Math.max(1, Math.floor((until - y) / (size * 1.2)));
  const wrappedAt = (size: number) => texts.flatMap((text) => wrapped(text, charactersAt(size)));
  const size = sizes.find((one) => wrappedAt(one).length <= rows(one)) ?? sizes.at(-1) ?? 18;
  return wrappedAt(size)
    .slice(0, rows(size))
    .map((text, at) => {
      const top = Math.round(y + at * size * 1.2);
      return `^FO${MARGIN},${top}^A0N,${size},${size}^FH_^FD${escaped(text)}^FS`;
    });
}

function charactersAt(size: number): number {
  return Math.floor((WIDTH - 2 * MARGIN) / (size * WIDE));
}

function wrapped(text: string, length: number): string[] {
  const rows: string[] = [];
  let row = "";
  for (const word of text.split(" ").flatMap((one) => pieces(one, length))) {
    if (row !== "" && row.length + 1 + word.length > length) {
      rows.push(row);
      row = word;
    } else {
      row = row === "" ? word : `${row} ${word}`;
    }
  }
  return [...rows, row];
}

function pieces(word: string, length: number): string[] {
  const count = Math.max(1, Math.ceil(word.length / length));
  return Array.from({ length: count }, (_, at) => word.slice(at * length, (at + 1) * length));
}

/** Printers read `^` and `~` as commands; `_` begins our hexadecimal escapes. */
function escaped(text: string): string {
  return text.replaceAll(/[\^~_\\]/g, (one) => `_${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

function bars(text: string): string {
  const { modules } = code128(text);
  const module = Math.max(2, Math.min(MODULE_MAX, Math.floor(WIDTH / (modules + 20))));
  const x = Math.max(0, Math.round((WIDTH - modules * module) / 2));
  return `^FO${x},${Y.bars}^BY${module}^BCN,${BARS_HEIGHT},N,N,N,A^FH_^FD${escaped(text)}^FS`;
}

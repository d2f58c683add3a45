/** One label as PDF: a page of 10x15 cm. */

import { LABEL_SIZE, type Pdf, renderPdf, writeFitting } from "#core/merchants/pdf/pdf.ts";
import { printableInPdf } from "#core/merchants/pdf/printable.ts";
import { code128 } from "./code128.ts";
import type { LabelSheet } from "./label-sheet.ts";

const MARGIN = 12;
const [PAGE_WIDTH] = LABEL_SIZE;
const WIDTH = PAGE_WIDTH - 2 * MARGIN;
/** Code 128 needs ten modules of white on both sides. */
const QUIET_MODULES = 10;
/** Points of one module: 2 dots of a 203 dpi printer at least. */
const MODULE_MAX = 2;
const BARS_HEIGHT = 72;

/** Heights from the top, in points. */
const Y = { carrier: 10, from: 30, to: 86, facts: 200, bars: 306, number: 382 };

/** @returns base64 */
export async function labelPdf(sheet: LabelSheet): Promise<string> {
  const bytes = await renderPdf(sheet.trackingNumber, (pdf) => drawLabel(pdf, sheet));
  return Buffer.from(bytes).toString("base64");
}

function drawLabel(pdf: Pdf, sheet: LabelSheet): void {
  pdf.addPage({ size: LABEL_SIZE, margin: 0 });
  const box = (y: number, height: number) => ({ x: MARGIN, y, width: WIDTH, height });
  const shown = (lines: readonly string[]) => lines.map(printableInPdf);
  writeFitting(pdf, "bold", [13, 10, 8], shown([sheet.carrier]), box(Y.carrier, 16));
  writeFitting(pdf, "regular", [8, 7, 6, 5], shown(sheet.from), box(Y.from, 46));
  line(pdf, Y.to - 6);
  writeFitting(pdf, "regular", [8], shown([sheet.toCaption]), box(Y.to, 10));
  writeFitting(pdf, "bold", [15, 13, 11, 9, 7, 6], shown(sheet.to), box(Y.to + 12, 92));
  line(pdf, Y.facts - 6);
  const facts = sheet.facts.map(([caption, value]) => `${caption}: ${value}`);
  writeFitting(pdf, "regular", [11, 10, 9, 8, 7], shown(facts), box(Y.facts, 96));
  line(pdf, Y.bars - 6);
  drawBars(pdf, sheet.trackingNumber);
  pdf.font("bold").fontSize(12);
  pdf.text(sheet.trackingNumber, MARGIN, Y.number, { width: WIDTH, align: "center" });
}

function line(pdf: Pdf, y: number): void {
  pdf
    .moveTo(MARGIN, y)
    .lineTo(MARGIN + WIDTH, y)
    .lineWidth(0.75)
    .stroke();
}

function drawBars(pdf: Pdf, text: string): void {
  const { widths, modules } = code128(text);
  const module = Math.min(MODULE_MAX, PAGE_WIDTH / (modules + 2 * QUIET_MODULES));
  let x = (PAGE_WIDTH - modules * module) / 2;
  widths.forEach((width, at) => {
    if (at % 2 === 0) pdf.rect(x, Y.bars, width * module, BARS_HEIGHT);
    x += width * module;
  });
  pdf.fill("black");
}

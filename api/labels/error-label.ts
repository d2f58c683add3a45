/** The error label (document 1, "Labels"): tells the operator not to ship. It is not stored. */

import { LABEL_SIZE, renderPdf, writeFitting } from "#core/merchants/pdf/pdf.ts";
import { printableInPdf } from "#core/merchants/pdf/printable.ts";
import type { LabelFormat, LabelRequest } from "#core/merchants/rules/label.ts";
import { romeDateTime } from "#core/platform/time/rome-time.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";
import type { Failed } from "./label-problem.ts";
import { type ErrorWords, errorWords } from "./label-words.ts";
import { errorZpl } from "./label-zpl.ts";

const MARGIN = 16;

export interface ErrorSheet {
  readonly request: Pick<LabelRequest, "courier" | "reference">;
  readonly failure: Failed;
  readonly language: Language;
  readonly format: LabelFormat;
  readonly nowMs: number;
}

export async function errorLabel(
  sheet: ErrorSheet,
): Promise<{ readonly format: LabelFormat; readonly label: string }> {
  const { request, failure, language, format, nowMs } = sheet;
  const words = errorWords(language);
  const english = errorWords("en").doNotShip;
  // Transliterated words do not warn everybody: the English ones stand below.
  const title = language === "en" ? [english] : [words.doNotShip, english];
  const lines = [
    `${words.reference}: ${request.reference}`,
    `${words.carrier}: ${request.courier}`,
    `${words.time}: ${romeDateTime(nowMs)}`,
    `${words.error}: ${messageOf(failure, words)}`,
  ];
  const label = format === "ZPL" ? errorZpl(title, lines) : await errorPdf(title, lines);
  return { format, label };
}

/** A carrier's own message is kept as it is; ours is in the company's language. */
function messageOf({ code, message }: Failed, words: ErrorWords): string {
  if (code === "CARRIER_UNREACHABLE") return words.unreachable;
  return code === "CARRIER_UNREADABLE" ? words.unreadable : message;
}

async function errorPdf(title: readonly string[], lines: readonly string[]): Promise<string> {
  const [pageWidth, pageHeight] = LABEL_SIZE;
  const width = pageWidth - 2 * MARGIN;
  const shown = (texts: readonly string[]) => texts.map(printableInPdf);
  const bytes = await renderPdf("error label", (pdf) => {
    pdf.addPage({ size: LABEL_SIZE, margin: 0 });
    pdf
      .rect(6, 6, pageWidth - 12, pageHeight - 12)
      .lineWidth(3)
      .stroke();
    const head = { x: MARGIN, y: 24, width, height: 110 };
    writeFitting(pdf, "bold", [32, 26, 20, 16], shown(title), head);
    const body = { x: MARGIN, y: 150, width, height: pageHeight - 170 };
    writeFitting(pdf, "regular", [12, 11, 10, 9, 8, 7], shown(lines), body);
  });
  return Buffer.from(bytes).toString("base64");
}

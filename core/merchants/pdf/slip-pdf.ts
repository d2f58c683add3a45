/** The slip of a transmission, which a driver signs, on A4. The same inputs give the same bytes. */

import type { Slip, SlipRow } from "#core/merchants/rules/slip.ts";
import { nextTurn } from "#core/platform/process/next-turn.ts";
import { romeDateTime } from "#core/platform/time/rome-time.ts";
import { type Pdf, renderPdf } from "./pdf.ts";
import { printableInPdf } from "./printable.ts";

const PAGE: [number, number] = [595.28, 841.89];
const MARGIN = 40;
const ROW_HEIGHT = 14;
const LAST_ROW_Y = PAGE[1] - 90;

/** Left edge and width in points. */
const COLUMNS = [
  [40, 115],
  [158, 100],
  [262, 135],
  [400, 95],
  [498, 25],
  [526, 40],
] as const;

export function slipPdf(slip: Slip): Promise<Uint8Array> {
  const { transmissionNumber, createdAtMs, rows } = slip;
  const draw = async (pdf: Pdf) => {
    let y = startPage(pdf, slip);
    for (const row of rows) {
      if (y > LAST_ROW_Y) {
        // A page takes about 15 ms; other requests are served in between.
        await nextTurn();
        y = startPage(pdf, slip);
      }
      writeRow(pdf, "regular", y, cellsOf(row));
      y += ROW_HEIGHT;
    }
    const parcels = rows.reduce((sum, row) => sum + row.parcels, 0);
    pdf.font("bold").fontSize(10);
    pdf.text(`Labels: ${rows.length}   Parcels: ${parcels}`, MARGIN, y + 12);
    pdf.text("Signature / Firma: ______________________________", MARGIN, y + 40);
  };
  return renderPdf(`Transmission ${transmissionNumber}`, draw, createdAtMs);
}

function cellsOf({
  trackingNumber,
  reference,
  name,
  locality,
  parcels,
  weight,
}: SlipRow): string[] {
  const weighed = weight === null ? "" : `${weight} kg`;
  return [trackingNumber, reference, name, locality, String(parcels), weighed];
}

function startPage(pdf: Pdf, slip: Slip): number {
  pdf.addPage({ size: PAGE, margin: 0 });
  pdf.font("bold").fontSize(16).text(`Transmission ${slip.transmissionNumber}`, MARGIN, 36);
  pdf.font("regular").fontSize(10);
  const facts = [slip.courier, slip.channelName, romeDateTime(slip.createdAtMs)];
  if (slip.pickup !== null) facts.push(`Pickup / Ritiro: ${slip.pickup}`);
  pdf.text(facts.map(printableInPdf).join("   "), MARGIN, 60, { width: PAGE[0] - 2 * MARGIN });
  writeRow(pdf, "bold", 92, ["Tracking", "Reference", "Consignee", "Place", "No", "Weight"]);
  return 92 + ROW_HEIGHT;
}

function writeRow(pdf: Pdf, font: "regular" | "bold", y: number, cells: readonly string[]): void {
  pdf.font(font).fontSize(7.5);
  COLUMNS.forEach(([x, width], at) => {
    const text = printableInPdf(cells[at] ?? "");
    pdf.text(text, x, y, { width, height: ROW_HEIGHT - 4, ellipsis: true, lineBreak: true });
  });
}

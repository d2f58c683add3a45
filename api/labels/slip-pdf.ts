/** The slip of a transmission: what a driver signs for, A4. */
import type { LabelRecord } from "#core/domain/label.ts";
import { romeDateTime } from "#core/domain/rome-time.ts";
import { type Pdf, renderPdf } from "./pdf.ts";
import { printableInPdf } from "./printable.ts";

export interface Slip {
  readonly transmissionNumber: string;
  readonly courier: string;
  readonly channelName: string;
  /** `YYYY-MM-DD`, with `HH:MM` behind it where one was asked for; null = none. */
  readonly pickup: string | null;
  readonly createdAtMs: number;
  readonly labels: ReadonlyArray<{ readonly id: number; readonly record: LabelRecord }>;
}

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
  return renderPdf(`Transmission ${slip.transmissionNumber}`, (pdf) => {
    let y = startPage(pdf, slip);
    for (const { record } of slip.labels) {
      if (y > LAST_ROW_Y) y = startPage(pdf, slip);
      writeRow(pdf, "regular", y, rowOf(record));
      y += ROW_HEIGHT;
    }
    const parcels = slip.labels.reduce((sum, { record }) => sum + record.parcels, 0);
    pdf.font("bold").fontSize(10);
    pdf.text(`Labels: ${slip.labels.length}   Parcels: ${parcels}`, MARGIN, y + 12);
    pdf.text("Signature / Firma: ______________________________", MARGIN, y + 40);
  });
}

function rowOf(record: LabelRecord): string[] {
  const { name, postcode, city, country } = record.consignee;
  return [
    record.trackingNumbers[0]?.number ?? "",
    record.reference,
    name,
    `${postcode} ${city} ${country}`,
    String(record.parcels),
    record.weight === null ? "" : `${record.weight} kg`,
  ];
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

/** PDF documents with an embedded font that covers Latin, Greek and Cyrillic. */
import { readFileSync } from "node:fs";
import type PDFDocument from "pdfkit";
import { packageFile } from "#core/platform/process/own-files.ts";

export type Pdf = InstanceType<typeof PDFDocument>;

/** Millimetres to points. */
export const mm = (millimetres: number) => (millimetres * 72) / 25.4;

/** 10x15 cm. */
export const LABEL_SIZE: [number, number] = [mm(100), mm(150)];

const REGULAR = "dejavu-fonts-ttf/ttf/DejaVuSans.ttf";
const BOLD = "dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf";

let fonts: { readonly regular: Buffer; readonly bold: Buffer } | undefined;

const read = (font: string) => readFileSync(packageFile(font));

/**
 * @param draw may use the fonts `regular` and `bold`; it draws on the pages that it adds
 * @param createdAtMs is written into the document and determines the file's id: the same value gives the same bytes every
 * time
 */
export async function renderPdf(
  title: string,
  draw: (pdf: Pdf) => void | Promise<void>,
  createdAtMs = Date.now(),
): Promise<Uint8Array> {
  // Loaded with the first document: a process that prints nothing does without it.
  const { default: Document } = await import("pdfkit");
  fonts ??= { regular: read(REGULAR), bold: read(BOLD) };
  const info = { Title: title, Creator: "Waybill", CreationDate: new Date(createdAtMs) };
  // Without a font of its own, which would be read from a file of the package.
  const pdf = new Document({ autoFirstPage: false, info, font: "" });
  const chunks: Uint8Array[] = [];
  const ended = new Promise((resolve, reject) => {
    pdf.on("end", resolve);
    pdf.on("error", reject);
  });
  pdf.on("data", (chunk: Uint8Array) => chunks.push(chunk));
  pdf.registerFont("regular", fonts.regular);
  pdf.registerFont("bold", fonts.bold);
  await draw(pdf);
  pdf.end();
  await ended;
  return Buffer.concat(chunks);
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Writes lines into a box in the largest size that fits; text that is still too long ends with an ellipsis. */
export function writeFitting(
  pdf: Pdf,
  font: "regular" | "bold",
  sizes: readonly number[],
  lines: readonly string[],
  { x, y, width, height }: Box,
): void {
  const text = lines.join("\n");
  const heightAt = (size: number) => pdf.font(font).fontSize(size).heightOfString(text, { width });
  const size = sizes.find((one) => heightAt(one) <= height) ?? sizes.at(-1) ?? 6;
  pdf.font(font).fontSize(size).text(text, x, y, { width, height, ellipsis: true });
}

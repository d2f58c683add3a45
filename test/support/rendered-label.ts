/** Labels as a printer and a scanner meet them: pages rendered by poppler, bars read by a decoder, text read back. */
import { spawnSync } from "node:child_process";
import {
  BinaryBitmap,
  Code128Reader,
  DecodeHintType,
  HybridBinarizer,
  RGBLuminanceSource,
} from "@zxing/library";

/** Of a label printer. */
const DPI = 203;
const TRY_HARDER = new Map([[DecodeHintType.TRY_HARDER, true]]);

export interface Page {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8ClampedArray;
}

function poppler(program: string, args: readonly string[], input: Uint8Array): Buffer {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    input,
    maxBuffer: 256 * 1024 * 1024,
  });
  if (error) throw new Error(`${program} does not run: install poppler-utils`);
  if (status !== 0) throw new Error(`${program}: ${stderr.toString()}`);
  return stdout;
}

/** Width and height in points, how many pages, and whether it would run a script. */
export function pdfInfo(pdf: Uint8Array) {
  const text = poppler("pdfinfo", ["-"], pdf).toString();
  const [, width, height] = /Page size: +([\d.]+) x ([\d.]+) pts/.exec(text) ?? [];
  const pages = Number(/Pages: +(\d+)/.exec(text)?.[1]);
  const hasScript = !/JavaScript: +no/.test(text);
  return { pages, width: Number(width), height: Number(height), hasScript };
}

export function pdfText(pdf: Uint8Array): string {
  return poppler("pdftotext", ["-layout", "-", "-"], pdf).toString();
}

/** The first page in grey, as a printer of 203 dpi shows it. */
export function renderPage(pdf: Uint8Array): Page {
  const pgm = poppler("pdftoppm", ["-r", String(DPI), "-gray", "-singlefile", "-"], pdf);
  const head = /^P5\s+(\d+)\s+(\d+)\s+255\s/.exec(pgm.subarray(0, 64).toString("latin1"));
  if (!head) throw new Error("no grey picture");
  const pixels = new Uint8ClampedArray(pgm.subarray(head[0].length));
  return { width: Number(head[1]), height: Number(head[2]), pixels };
}

/** What a scanner reads of the page's Code 128. */
export function readBarcode({ width, height, pixels }: Page): string {
  const source = new RGBLuminanceSource(pixels, width, height);
  const bitmap = new BinaryBitmap(new HybridBinarizer(source));
  return new Code128Reader().decode(bitmap, TRY_HARDER).getText();
}

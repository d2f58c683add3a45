/** Code 128 as bars and gaps. */
import bwipjs from "bwip-js/node";

/** Widths in modules, bar first, then gap, in turn. */
interface RawBars {
  readonly sbs: readonly number[];
}

/** `raw` is missing in the package's own types. */
const { raw } = bwipjs as unknown as {
  readonly raw: (kind: string, text: string, options: object) => readonly RawBars[];
};

/** @param text printable ASCII */
export function code128(text: string): {
  readonly widths: readonly number[];
  readonly modules: number;
} {
  const widths = raw("code128", text, {})[0]?.sbs ?? [];
  return { widths, modules: widths.reduce((sum, one) => sum + one, 0) };
}

/** CSV (RFC 4180) that a spreadsheet opens without calculating anything. */

export type Cell = string | number | boolean | null;

export type Separator = "," | ";";

/** A spreadsheet calculates a text that begins so. Apostrophes before it count with it, so that each text is read back as it was. */
const FORMULA = /^'*[=+\-@\t\r]/;

export function csvText(lines: readonly (readonly Cell[])[], separator: Separator = ","): string {
  const lineOf = (cells: readonly Cell[]) =>
    `${cells.map((cell) => csvCell(cell, separator)).join(separator)}\r\n`;
  return lines.map(lineOf).join("");
}

function csvCell(value: Cell, separator: Separator): string {
  if (value === null) return "";
  const isFormula = typeof value === "string" && FORMULA.test(value);
  // The apostrophe keeps it a text.
  const text = isFormula ? `'${value}` : String(value);
  return text.includes(separator) || /["\r\n]/.test(text)
    ? `"${text.replaceAll('"', '""')}"`
    : text;
}

/** The text of a cell without the apostrophe that `csvText` put before it. */
export function unguarded(cell: string): string {
  return cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell;
}

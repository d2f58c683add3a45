/** Text for a label: kept if the font covers it, otherwise transliterated; never a missing glyph, never the wrong order. */
import anyAscii from "any-ascii";

/**
 * Characters that both weights of DejaVu Sans can show without shaping: Latin, Greek and Cyrillic with their diacritics,
 * punctuation. Right-to-left scripts are transliterated: a renderer without bidirectional layout would reverse their words.
 */
const IN_FONT =
  /^(?:[\u0020-\u007e\u00a0-\u00ac\u00ae-\u02af]|[\u0300-\u033f]|[\u0370-\u0482]|[\u048a-\u0525]|[\u1e00-\u1efb\u1f00-\u1fff\u2010-\u2027\u2030-\u205e\u20ac\u2116])$/u;
/** Characters that the scalable font of ZPL printers has had since firmware x.14: Latin-1 and Latin Extended-A. */
const IN_PRINTER = /^[\u0020-\u007e\u00a1-\u00ac\u00ae-\u017f\u20ac]$/u;

export function printableInPdf(text: string): string {
  return printable(text, IN_FONT);
}

export function printableInZpl(text: string): string {
  return printable(text, IN_PRINTER);
}

function printable(text: string, kept: RegExp): string {
  let shown = "";
  for (const character of text.normalize("NFC")) {
    if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(character)) shown += " ";
    else if (kept.test(character)) shown += character;
    else shown += anyAscii(character);
  }
  return shown.replaceAll(/ +/g, " ").trim();
}

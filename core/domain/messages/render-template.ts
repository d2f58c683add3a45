/** Placeholders `{{name}}` of a merchant's templates: what stands for them is text, never markup; unknown ones are empty. */

export type Values = Readonly<Record<string, string | null | undefined>>;

const PLACEHOLDER = /\{\{\s*([A-Za-z0-9_.]{1,64})\s*\}\}/g;
const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** A body in HTML. */
export function renderHtml(template: string, values: Values): string {
  return fill(template, values, escapeHtml);
}

/** A subject: one line of plain text. */
export function renderLine(template: string, values: Values): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a header takes none of them
  return fill(template, values, (text) => text).replace(/[\u0000-\u001f\u007f]+/g, " ");
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

/** The plain text beside an HTML body. */
export function textOfHtml(html: string): string {
  return html
    .replace(/<(style|script|head|title)\b[^>]*>[\s\S]*?<\/\1\s*>/gi, "")
    .replace(/<a\b[^>]*\bhref="(https?:[^"]*)"[^>]*>([\s\S]*?)<\/a\s*>/gi, "$2 ($1)")
    .replace(/<(br|\/p|\/div|\/h[1-6]|\/li|\/tr)\b[^>]*>/gi, "\n")
    .replace(/<[^>]*>/g, "")
    .replace(/&(lt|gt|quot|#39|nbsp|amp);/g, (_, name: string) => CHARACTERS[name] ?? "")
    .replace(/[ \t]+\n/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

const CHARACTERS: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  quot: '"',
  "#39": "'",
  nbsp: " ",
  amp: "&",
};

/** Looked up as own members only: `{{constructor}}` is unknown. */
function fill(template: string, values: Values, write: (text: string) => string): string {
  return template.replace(PLACEHOLDER, (_, name: string) =>
    Object.hasOwn(values, name) ? write(values[name] ?? "") : "",
  );
}

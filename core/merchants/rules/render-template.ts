/** Placeholders `{{name}}` of a merchant's templates: what stands for them is text, never markup; unknown ones are empty. */

export type Values = Readonly<Record<string, string | null | undefined>>;

const PLACEHOLDER = /\{\{\s*([\w.]+)\s*\}\}/g;
const LINK = / \(\{\{\s*([\w.]+)\s*\}\}\)/g;

/** A body in HTML. */
export function renderHtml(template: string, values: Values): string {
  return fill(template, values, Bun.escapeHTML);
}

/** A subject: one line of plain text. */
export function renderLine(template: string, values: Values): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a header takes none of them
  return fill(template, values, (text) => text).replace(/[\u0000-\u001f\u007f]+/g, " ");
}

/** A body in plain text. An address in brackets behind a link's text is left out with them where there is none. */
export function renderText(template: string, values: Values): string {
  const known = template.replace(LINK, (link, name: string) =>
    Object.hasOwn(values, name) && values[name] ? link : "",
  );
  return fill(known, values, (text) => text);
}

/** Names of placeholders that stand for nothing, each once. */
export function unknownPlaceholders(templates: readonly string[], values: Values): string[] {
  const named = templates.flatMap((text) =>
    [...text.matchAll(PLACEHOLDER)].map(([, name]) => name),
  );
  return [...new Set(named as string[])].filter((name) => !Object.hasOwn(values, name));
}

/** Looked up as own members only: `{{constructor}}` is unknown. */
function fill(template: string, values: Values, write: (text: string) => string): string {
  return template.replace(PLACEHOLDER, (_, name: string) =>
    Object.hasOwn(values, name) ? write(values[name] ?? "") : "",
  );
}

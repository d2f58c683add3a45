/** Placeholders `{{name}}` of a merchant's templates: what stands for them is text, never markup; unknown ones are empty. */

export type Values = Readonly<Record<string, string | null | undefined>>;

const PLACEHOLDER = /\{\{\s*([\w.]+)\s*\}\}/g;
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

/** Names of placeholders that stand for nothing, each once. */
export function unknownPlaceholders(templates: readonly string[], values: Values): string[] {
  const named = templates.flatMap((text) =>
    [...text.matchAll(PLACEHOLDER)].map(([, name]) => name),
  );
  return [...new Set(named as string[])].filter((name) => !Object.hasOwn(values, name));
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

/** Elements whose content is not shown. */
const HIDDEN = new Set(["style", "script", "head", "title"]);
/** Tags that begin a new line. */
const BREAKS = new Set([
  "br",
  "/p",
  "/div",
  "/h1",
  "/h2",
  "/h3",
  "/h4",
  "/h5",
  "/h6",
  "/li",
  "/tr",
]);

/** The plain text beside an HTML body: one pass, since a body may be long and is not ours. */
export function textOfHtml(html: string): string {
  const texts: string[] = [];
  const endOf = endsOfElements(html);
  /** Where the link goes whose text is being read. */
  let href: string | null = null;
  let at = 0;
  for (;;) {
    const open = html.indexOf("<", at);
    const close = open === -1 ? -1 : html.indexOf(">", open);
    if (close === -1) break;
    texts.push(html.slice(at, open));
    const tag = html.slice(open, close + 1);
    const name = /^<(\/?[a-z][a-z0-9]*)\b/i.exec(tag)?.[1]?.toLowerCase() ?? "";
    at = HIDDEN.has(name) ? endOf(name, close + 1) : close + 1;
    if (BREAKS.has(name)) texts.push("\n");
    if (name === "a") href ??= /\bhref="(https?:[^"]*)"/i.exec(tag)?.[1] ?? null;
    if (name === "/a" && href !== null) {
      texts.push(` (${href})`);
      href = null;
    }
  }
  texts.push(html.slice(at));
  return texts
    .join("")
    .replace(/&(lt|gt|quot|#39|nbsp|amp);/g, (_, name: string) => CHARACTERS[name] ?? "")
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

/** @returns where an element ends that was opened before `from`; `from` itself if it is never closed */
function endsOfElements(html: string): (name: string, from: number) => number {
  const lower = html.toLowerCase();
  // Not looked for again: many elements that are never closed would cost the square of their number.
  const unclosed = new Set<string>();
  return (name, from) => {
    if (unclosed.has(name)) return from;
    const end = lower.indexOf(`</${name}`, from);
    const close = end === -1 ? -1 : lower.indexOf(">", end);
    if (close === -1) unclosed.add(name);
    return close === -1 ? from : close + 1;
  };
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

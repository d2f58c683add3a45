/** Pages as text: what is put into one is escaped, unless it is HTML already. */

export interface Html {
  readonly markup: string;
}

type Part = Html | string | number | null | readonly Part[];

export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { markup: String.raw({ raw: texts }, ...parts.map(markupOf)) };
}

function markupOf(part: Part): string {
  if (part === null) return "";
  if (typeof part === "string" || typeof part === "number") return Bun.escapeHTML(String(part));
  return "markup" in part ? part.markup : part.map(markupOf).join("");
}

/** Of texts of our own, which may hold HTML. A heading's id is what other viewers of Markdown make of it. */
export function markdown(text: string): Html {
  return { markup: Bun.markdown.html(text, { headings: { ids: true } }) };
}

/** @param head beside what every page has */
export function htmlPage(title: string, body: Html, head: Part = null): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
${head}
</head>
<body>
${body}
</body>
</html>
`.markup;
}

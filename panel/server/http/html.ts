/** HTML as text: what a page puts in is escaped unless it is HTML already. */

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

/** Nothing from anywhere else, no scripts, no frames. */
const POLICY =
  "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

export function pageResponse(
  title: string,
  body: Html,
  init: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Waybill</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/panel/style.css">
</head>
<body>
${body}
</body>
</html>
`;
  return new Response(page.markup, {
    status: init.status ?? 200,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": POLICY,
      "cache-control": "no-store",
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
      ...init.headers,
    },
  });
}

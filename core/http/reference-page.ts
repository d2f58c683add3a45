/** Pages of a reference: static HTML documents without scripts and without requests to anybody. */

/** A row may have an id, so that an address can lead to it. */
export interface Row {
  readonly id?: string;
  readonly cells: readonly string[];
}

/** @param body HTML */
export function referencePage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
<main>
<h1>${escapeHtml(title)}</h1>
${body}
</main>
</html>
`;
}

/** @param more headers, which every answer of the port has */
export function pageResponse(page: string, more: Readonly<Record<string, string>> = {}): Response {
  const headers = {
    ...more,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy":
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    ...PUBLIC_CACHE,
  };
  return new Response(page, { headers });
}

/** Of what changes only with a new version of the service. */
export const PUBLIC_CACHE = { "cache-control": "public, max-age=300" } as const;

export function table(head: readonly string[], rows: readonly Row[]): string {
  const cells = (tag: string, row: readonly string[]) =>
    row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("");
  const body = rows.map(({ id, cells: row }) => {
    const attribute = id === undefined ? "" : ` id="${escapeHtml(id)}"`;
    return `<tr${attribute}>${cells("td", row)}</tr>`;
  });
  return `<div class="wide"><table><thead><tr>${cells("th", head)}</tr></thead><tbody>\n${body.join("\n")}\n</tbody></table></div>`;
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d5d9de, #3a4048); --soft: light-dark(#f4f6f8, #1d2126); }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: light-dark(#14181d, #e4e8ec); background: light-dark(#fff, #14171a); }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
td:first-child { font-family: ui-monospace, monospace; font-size: .9em; }
tr:target { background: var(--soft); }
pre { overflow-x: auto; padding: .8rem; background: var(--soft); }
a { color: light-dark(#0b57c4, #8ab4f8); }
`;

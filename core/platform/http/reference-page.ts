/** Pages of a reference: static HTML documents that ask nobody for anything. A long one may have a small script that searches its tables. */
import { createHash } from "node:crypto";

/** A row may have an id, so that an address can lead to it. */
export interface Row {
  readonly id?: string;
  readonly cells: readonly string[];
}

/** @param body HTML */
export function referencePage(title: string, body: string, isSearchable = false): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
<main>
<h1>${escapeHtml(title)}</h1>
${isSearchable ? SEARCH : ""}${body}
</main>
</html>
`;
}

/** A page that searches its tables may run the script that does, and no other. */
function policyOf(page: string): string {
  const scripts = page.includes(SEARCH) ? `script-src 'sha256-${SCRIPT_HASH}'; ` : "";
  return `default-src 'none'; ${scripts}style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

/**
 * @param more headers, which every answer of the port has
 * @param policy what the page may load
 */
export function pageResponse(
  page: string,
  more: Readonly<Record<string, string>> = {},
  policy = policyOf(page),
): Response {
  const headers = {
    ...more,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
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

/** Shows the rows of all tables that have every word. */
const SCRIPT = `
document.getElementById("search").addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase().split(/\\s+/);
  for (const row of document.querySelectorAll("tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});
`;
const SCRIPT_HASH = createHash("sha256").update(SCRIPT).digest("base64");
const SEARCH = `<p><label>Search the tables <input id="search" type="search"></label></p>\n<script type="module">${SCRIPT}</script>\n`;

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

/** Pages of a reference: HTML documents without scripts that ask nobody for anything. The tables of a long one can be searched. */
import { type Html, html, htmlPage } from "./html.ts";

/** A row may have an id, so that an address can lead to it. */
export interface Row {
  readonly id?: string;
  readonly cells: readonly string[];
}

interface Extras {
  readonly isSearchable?: boolean;
  /** Beside the text. */
  readonly menu?: Html | null;
}

export function referencePage(
  title: string,
  body: Html,
  { isSearchable = false, menu = null }: Extras = {},
): string {
  const main = html`${menu}
<main>
<h1>${title}</h1>
${isSearchable ? SEARCH : null}${body}
</main>`;
  return htmlPage(title, main, STYLE);
}

function policyOf(page: string): string {
  const forms = page.includes("<form") ? "'self'" : "'none'";
  return `default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action ${forms}; frame-ancestors 'none'`;
}

/** @param more headers, which every answer of the port has */
export function pageResponse(page: string, more: Readonly<Record<string, string>> = {}): Response {
  const headers = {
    ...more,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policyOf(page),
    "x-content-type-options": "nosniff",
    ...PUBLIC_CACHE,
  };
  return new Response(page, { headers });
}

/** Of what changes only with a new version of the service. */
export const PUBLIC_CACHE = { "cache-control": "public, max-age=300" } as const;

export function table(head: readonly string[], rows: readonly Row[]): Html {
  const body = rows.map(({ id, cells }) => {
    const attribute = id === undefined ? null : html` id="${id}"`;
    return html`<tr${attribute}>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`;
  });
  return html`<div class="wide"><table class="names"><thead><tr>${head.map((cell) => html`<th>${cell}</th>`)}</tr></thead><tbody>
${body}</tbody></table></div>`;
}

/** Name and address of other pages. */
export function linkList(links: Readonly<Record<string, string>>): Html {
  const anchors = Object.entries(links).map(
    ([name, href], at) => html`${at === 0 ? "" : ", "}<a href="${href}">${name}</a>`,
  );
  return html`${anchors}`;
}

const SEARCH = html`<form><label>Search the tables <input name="q" type="search" value=""></label></form>
`;
const ROW = /<tr[^>]*><td>.*<\/tr>\n/g;

/** @returns the page with the rows alone that have every word of `q`, and with all of them where it is not given */
export function searched(page: string, { url }: Request): string {
  const question = Bun.escapeHTML(new URL(url).searchParams.get("q") ?? "");
  if (question === "") return page;
  const words = question.toLowerCase().split(/\s+/);
  const hasAll = (row: string) => {
    const text = row.replace(/<[^>]*>/g, " ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return page
    .replace(ROW, (row) => (hasAll(row) ? row : ""))
    .replace('name="q" type="search" value=""', () => `name="q" type="search" value="${question}"`);
}

const STYLE = html`<style>
:root { color-scheme: light dark; --line: light-dark(#d5d9de, #3a4048); --soft: light-dark(#f4f6f8, #1d2126); }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: light-dark(#14181d, #e4e8ec); background: light-dark(#fff, #14171a); }
main { box-sizing: border-box; width: 100%; max-width: 62rem; margin: 0 auto; padding: 1rem; }
nav { padding: 1rem; font-size: .9em; }
nav ul { margin: .2rem 0 .6rem; padding-left: 1rem; list-style: none; }
nav a { text-decoration: none; }
nav a[aria-current] { font-weight: bold; }
@media (min-width: 60rem) {
  body:has(nav) { display: grid; grid-template-columns: 16rem minmax(0, 62rem); gap: 1rem; }
  nav { position: sticky; top: 0; max-height: 100vh; overflow-y: auto; box-sizing: border-box; }
}
.wide { overflow-x: auto; }
img, svg { max-width: 100%; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
.names td:first-child { font-family: ui-monospace, monospace; font-size: .9em; }
tr:target { background: var(--soft); }
code { font: .9em ui-monospace, monospace; }
pre { overflow-x: auto; padding: .8rem; background: var(--soft); }
mark { background: light-dark(#ffec99, #6b5900); color: inherit; }
a { color: light-dark(#0b57c4, #8ab4f8); }
</style>`;

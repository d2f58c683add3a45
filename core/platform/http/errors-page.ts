/** The page that explains the error codes of an API, for people, and the same as JSON, for programs. */
import { type ErrorApi, errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { publicRoutes } from "./access.ts";
import { type Html, html } from "./html.ts";
import {
  linkList,
  PUBLIC_CACHE,
  pageResponse,
  referencePage,
  searched,
  table,
} from "./reference-page.ts";

interface CodeList {
  readonly title: string;
  /** Name in the JSON. */
  readonly name: string;
  readonly codes: Readonly<Record<string, string>>;
  /** Of the ids of its rows: some codes are in two lists. */
  readonly prefix?: string;
}

export interface ErrorsPage {
  readonly api: ErrorApi;
  readonly title: string;
  /** What an error answer looks like. */
  readonly shapes: string;
  readonly lists: readonly CodeList[];
  /** Name and address of other pages. */
  readonly links: Readonly<Record<string, string>>;
  /** That every answer of the port has. */
  readonly headers?: Readonly<Record<string, string>>;
}

const PATHS: Readonly<Record<ErrorApi, string>> = {
  merchant: "/v2/errors",
  courier: "/v1/errors",
  operator: "/panel/errors",
};

const CODES = new Map(
  (Object.keys(PATHS) as ErrorApi[]).map((api) => [
    api,
    new Set(errorsOf(api).map(({ code }) => code)),
  ]),
);

/** Where a code is explained: a path, since the service does not know under which name a caller reaches it. */
export function explanationOf(api: ErrorApi, code: string): string | null {
  return CODES.get(api)?.has(code) ? `${PATHS[api]}#${code}` : null;
}

export function errorRoutes(page: ErrorsPage) {
  const path = PATHS[page.api];
  const text = htmlOf(page, path);
  const list = JSON.stringify({
    errors: errorsOf(page.api).map(({ status, code, meaning, remedy }) => ({
      status,
      code,
      meaning,
      remedy,
    })),
    ...Object.fromEntries(
      page.lists.map(({ name, codes }) => [
        name,
        Object.entries(codes).map(([code, meaning]) => ({ code, meaning })),
      ]),
    ),
  });
  const headers = { "content-type": "application/json", ...PUBLIC_CACHE, ...page.headers };
  return publicRoutes(`errors ${path}`)
    .get(path, ({ request }) => pageResponse(searched(text, request), page.headers))
    .get(`${path}.json`, () => new Response(list, { headers }));
}

function htmlOf({ api, title, shapes, lists, links }: ErrorsPage, path: string): string {
  return referencePage(
    title,
    html`<p>Codes are stable; messages may change.
${linkList({ "The same as JSON": `${path}.json`, ...links })}</p>
<p>${shapes}</p>
<h2 id="errors">Errors</h2>
${table(
  ["Code", "Status", "Meaning", "What to do"],
  errorsOf(api).map(({ status, code, meaning, remedy }) => ({
    id: code,
    cells: [code, String(status), meaning, remedy],
  })),
)}
${lists.map(listHtml)}`,
    { isSearchable: true },
  );
}

function listHtml({ title, name, codes, prefix = "" }: CodeList): Html {
  const rows = Object.entries(codes).map(([code, meaning]) => ({
    id: `${prefix}${code}`,
    cells: [code, meaning],
  }));
  return html`<h2 id="${name}">${title}</h2>\n${table(["Code", "Meaning"], rows)}\n`;
}

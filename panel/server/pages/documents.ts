/**
 * The documents of the repository for people in a browser, where alarms lead. They are for everybody: nothing in them is of this
 * installation. A page is made when it is first asked for; none runs a script.
 */
import { Problem } from "#core/platform/errors/problem.ts";
import { publicRoutes } from "#core/platform/http/access.ts";
import { type Html, html, markdown } from "#core/platform/http/html.ts";
import { PUBLIC_CACHE, pageResponse, referencePage } from "#core/platform/http/reference-page.ts";
import { ownFile } from "#core/platform/process/own-files.ts";
import { withChart } from "./document-charts.ts";
import { found } from "./document-search.ts";
import { type Guide, guideFiles, guides, linkOf, outlineOf, readGuide } from "./guides.ts";

const FIRST_PAGE = "index";
/** Of files that are no pages. */
const FILES = "source/";
/** Files that have an address of their own. */
const SERVED: Readonly<Record<string, string>> = {
  "docs/vectors/webhook-signature.json": "/webhooks/vector.json",
};
/** Levels of headings that a page's own menu has. */
const OUTLINE_LEVELS = [2, 3];

interface Page extends Guide, ReturnType<typeof outlineOf> {
  readonly title: string;
}

export function documentRoutes() {
  let pages: readonly Page[] | null = null;
  const all = () => {
    pages ??= guides().map(readPage);
    return pages;
  };
  const made = new Map<string, string>();
  const answer = (name: string): Response => {
    if (name.startsWith(FILES)) return fileResponse(name.slice(FILES.length));
    const page = all().find((one) => one.name === name);
    if (!page) throw notFound();
    const text = made.get(name) ?? documentPage(page, all());
    made.set(name, text);
    return pageResponse(text);
  };
  return publicRoutes("documents")
    .get("/docs", () => answer(FIRST_PAGE))
    .get("/docs/search", ({ request }) => searchPage(request, all()))
    .get("/docs/*", ({ params }) => answer(params["*"] || FIRST_PAGE));
}

const notFound = () => new Problem(404, "NOT_FOUND", "There is no such path.");

/** Only what a page leads to has an address. */
function fileResponse(path: string): Response {
  files ??= new Set(guideFiles());
  if (!files.has(path)) throw notFound();
  const headers = { ...PUBLIC_CACHE, "x-content-type-options": "nosniff" };
  return new Response(Bun.file(ownFile(path)), { headers });
}
let files: ReadonlySet<string> | null = null;

function readPage(guide: Guide): Page {
  const outline = outlineOf(guide.source, readGuide(guide.source));
  return { ...guide, ...outline, title: outline.sections[0]?.heading ?? guide.name };
}

function documentPage(page: Page, pages: readonly Page[]): string {
  const text = withChart(page.name, readGuide(page.source));
  const body = withAddresses(markdown(text), page, pages);
  return referencePage(page.title, body, { menu: menuOf(pages, page) });
}

/** Links lead to the addresses that pages and files have here; wide tables scroll by themselves; the page shows its title itself. */
function withAddresses({ markup }: Html, { source }: Page, pages: readonly Page[]): Html {
  const rewriter = new HTMLRewriter();
  for (const [selector, name] of [
    ["a[href]", "href"],
    ["img[src]", "src"],
  ] as const) {
    rewriter.on(selector, {
      element: (element) => {
        const text = element.getAttribute(name) ?? "";
        const { path, anchor } = linkOf(source, text);
        if (path === null || text.startsWith("#")) return;
        const page = pages.find((one) => one.source === path);
        const address = page ? addressOf(page) : (SERVED[path] ?? `/docs/${FILES}${path}`);
        element.setAttribute(name, anchor === null ? address : `${address}#${anchor}`);
      },
    });
  }
  rewriter.on("h1", { element: (element) => void element.remove() });
  rewriter.on("table", {
    element: (element) => {
      element.before('<div class="wide">', { html: true });
      element.after("</div>", { html: true });
    },
  });
  return { markup: rewriter.transform(markup) };
}

function addressOf({ name }: Guide): string {
  return name === FIRST_PAGE ? "/docs" : `/docs/${name}`;
}

/** The part under the title is the page itself. */
function partOf(page: Page, { id, level }: Page["sections"][number]): string {
  return level === 1 ? addressOf(page) : `${addressOf(page)}#${id}`;
}

function menuOf(pages: readonly Page[], shown: Page | null, words = ""): Html {
  const groups = [...Map.groupBy(pages, ({ group }) => group)].map(
    ([group, members]) => html`<li>${group}<ul>
${members.map((page) => menuEntry(page, page === shown))}</ul></li>
`,
  );
  return html`<nav aria-label="Documents">
<form action="/docs/search"><input name="q" type="search" value="${words}" aria-label="Search the documents" placeholder="Search"></form>
<ul>
${groups}</ul>
</nav>`;
}

function menuEntry(page: Page, isShown: boolean): Html {
  const link = html`<a href="${addressOf(page)}"${isShown ? html` aria-current="page"` : null}>${page.title}</a>`;
  if (!isShown) return html`<li>${link}</li>\n`;
  const parts = page.sections
    .filter(({ level }) => OUTLINE_LEVELS.includes(level))
    .map(({ id, heading }) => html`<li><a href="#${id}">${heading}</a></li>\n`);
  return html`<li>${link}<ul>\n${parts}</ul></li>\n`;
}

function searchPage({ url }: Request, pages: readonly Page[]): Response {
  const words = new URL(url).searchParams.get("q") ?? "";
  const results = found(words, pages).map(
    ({
      page,
      section,
      before,
      match,
      after,
    }) => html`<p><a href="${partOf(page, section)}">${page.title}: ${section.heading}</a><br>
${before}<mark>${match}</mark>${after}</p>
`,
  );
  const body =
    results.length > 0
      ? html`${results}`
      : html`<p>No part of a document has all of these words.</p>`;
  return pageResponse(referencePage("Search", body, { menu: menuOf(pages, null, words) }));
}

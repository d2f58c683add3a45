/** The pages of `docs/` for people in a browser, where alarms lead. They are for everybody: nothing in them is of this installation. */
import { readdirSync, readFileSync } from "node:fs";
import { publicRoutes } from "#core/http/access.ts";
import { escapeHtml, pageResponse, referencePage } from "#core/http/reference-page.ts";
import { Problem } from "#core/problem.ts";

const FOLDER = new URL("../../docs/", import.meta.url).pathname;

interface Page {
  readonly title: string;
  /** HTML. */
  readonly body: string;
}

export function documentRoutes() {
  const pages = new Map(readPages());
  return publicRoutes("documents")
    .get("/docs", () => pageResponse(referencePage("Documents", contents(pages))))
    .get("/docs/:page", ({ params }) => {
      const page = pages.get(params.page);
      if (page) return pageResponse(referencePage(page.title, page.body));
      throw new Problem(404, "NOT_FOUND", "There is no such path.");
    });
}

function readPages(): (readonly [name: string, page: Page])[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith(".md"))
    .toSorted()
    .map((file) => [file.replace(/\.md$/, ""), pageOf(readFileSync(FOLDER + file, "utf8"))]);
}

function pageOf(markdown: string): Page {
  const [, title = "", text = markdown] = /^# (.*)\n([\s\S]*)$/.exec(markdown) ?? [];
  return { title, body: withinPanel(Bun.markdown.html(text, { headings: { ids: true } })) };
}

/** Links to other pages lead to them here; what stands outside of `docs/`, and images, are words only. */
function withinPanel(html: string): string {
  return html
    .replace(/<img [^>]*alt="([^"]*)"[^>]*>/g, "$1")
    .replace(/href="([a-z]+)\.md(#[^"]*)?"/g, 'href="/docs/$1$2"')
    .replace(/<a href="(?:\.\.\/|vectors\/)[^"]*">(.*?)<\/a>/g, "$1")
    .replaceAll("<table>", '<div class="wide"><table>')
    .replaceAll("</table>", "</table></div>");
}

function contents(pages: ReadonlyMap<string, Page>): string {
  const items = [...pages].map(
    ([name, { title }]) => `<li><a href="/docs/${name}">${escapeHtml(title)}</a></li>`,
  );
  return `<ul>\n${items.join("\n")}\n</ul>`;
}

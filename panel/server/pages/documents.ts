/**
 * The pages of `docs/` for people in a browser, where alarms lead. They are for everybody: nothing in them is of this installation.
 * Where the site has been built (`bun run docs`, and in the image), its files are served; elsewhere the same addresses show the
 * same documents, rendered here, because a start from the sources must not wait for a generator.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { Problem } from "#core/platform/errors/problem.ts";
import { publicRoutes } from "#core/platform/http/access.ts";
import { PUBLIC_CACHE, pageResponse, referencePage } from "#core/platform/http/reference-page.ts";
import { ownFile } from "#core/platform/process/own-files.ts";

const FOLDER = ownFile("docs/");
export const BUILT_SITE = "docs-built";
const FIRST_PAGE = "index";
const SCRIPT = /<script[^>]*>([\s\S]*?)<\/script>/g;

/** @param site the folder of the built site */
export function documentRoutes(site = ownFile(BUILT_SITE)) {
  const find = existsSync(join(site, `${FIRST_PAGE}.html`)) ? builtPages(site) : renderedPages();
  const answer = (path: string) => {
    const found = find(path);
    if (found) return found;
    throw new Problem(404, "NOT_FOUND", "There is no such path.");
  };
  return publicRoutes("documents")
    .get("/docs", () => answer(FIRST_PAGE))
    .get("/docs/*", ({ params }) => answer(params["*"] || FIRST_PAGE));
}

type Find = (path: string) => Response | null;

/** Only what the folder held at the start has an address. */
function builtPages(site: string): Find {
  const files = readdirSync(site, { recursive: true, encoding: "utf8" }).filter(
    (path) => extname(path) !== "",
  );
  const known = new Set(files);
  return (path) => {
    if (!known.has(path)) return known.has(`${path}.html`) ? page(`${path}.html`) : null;
    return extname(path) === ".html" ? page(path) : file(path);
  };

  function page(path: string): Response {
    return siteResponse(readFileSync(join(site, path), "utf8"));
  }

  function file(path: string): Response {
    const headers = { ...PUBLIC_CACHE, "x-content-type-options": "nosniff" };
    return new Response(Bun.file(join(site, path)), { headers });
  }
}

/** The generator writes scripts into its pages, which are named by their hashes, and colours into their code. */
function siteResponse(page: string): Response {
  const scripts = [...page.matchAll(SCRIPT)].filter(([, text = ""]) => text !== "");
  const hashes = scripts.map(
    ([, text = ""]) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`,
  );
  const policy = [
    "default-src 'none'",
    ["script-src 'self'", ...hashes].join(" "),
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return pageResponse(page, {}, policy.join("; "));
}

function renderedPages(): Find {
  const files = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".md"),
  );
  const pages = new Map(
    files.map((file) => {
      const name = file.replace(/\.md$/, "");
      const folder = /^.*\//.exec(name)?.[0] ?? "";
      return [name, pageOf(readFileSync(FOLDER + file, "utf8"), folder)];
    }),
  );
  return (name) => {
    const page = pages.get(name);
    return page === undefined ? null : pageResponse(page);
  };
}

/**
 * @param folder of `docs/` with a slash behind it; empty = `docs/` itself
 * @returns HTML
 */
function pageOf(markdown: string, folder: string): string {
  const [, title = "", text = markdown] = /^# (.*)\n([\s\S]*)$/.exec(markdown) ?? [];
  return referencePage(
    title,
    withinPanel(Bun.markdown.html(text, { headings: { ids: true } }), folder),
  );
}

/** Links to other pages lead to them here; what stands outside of `docs/`, and images, are words only. */
function withinPanel(html: string, folder: string): string {
  return html
    .replace(/<img [^>]*alt="([^"]*)"[^>]*>/g, "$1")
    .replace(/href="([a-z0-9/-]+)\.md(#[^"]*)?"/g, `href="/docs/${folder}$1$2"`)
    .replace('href="vectors/webhook-signature.json"', 'href="/webhooks/vector.json"')
    .replace(/<a href="(?:\.\.\/|vectors\/)[^"]*">(.*?)<\/a>/g, "$1")
    .replaceAll("<table>", '<div class="wide"><table>')
    .replaceAll("</table>", "</table></div>");
}

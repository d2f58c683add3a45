/** The pages of the documentation site: which files they are, and where their links lead. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

export interface Page {
  /** Of the file, from the root of the repository. */
  readonly source: string;
  /** Of the page: its address below the site's. */
  readonly name: string;
}

export interface Link {
  /** As it is written. */
  readonly text: string;
  /** From the root of the repository; null: an address of the web. */
  readonly path: string | null;
  readonly anchor: string | null;
}

/** Files outside of `docs/` that are pages too. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "CONTRIBUTING.md": "contributing",
  "ARCHITECTURE.md": "architecture",
  "CHANGELOG.md": "changelog",
  "client/README.md": "client",
  "client/python/README.md": "python",
};
/** `[text](target)` and `![text](target)`; code has been taken out. */
const LINK = /(\]\()([^)\s]+)(\))/g;
const FENCE = /^```[\s\S]*?^```$/gm;

export function sitePages(): Page[] {
  const ofDocs = [...new Bun.Glob("docs/**/*.md").scanSync(".")].sort();
  const named = ofDocs.map((source) => ({ source, name: source.slice("docs/".length, -3) }));
  const others = Object.entries(ELSEWHERE).map(([source, name]) => ({ source, name }));
  return [...named, ...others];
}

/** Every link of a document but those to the web. */
export function linksOf(source: string, markdown: string): Link[] {
  const prose = markdown.replace(FENCE, "").replace(/`[^`\n]*`/g, "");
  return [...prose.matchAll(LINK)].map(([, , text = ""]) => linkOf(source, text));
}

export function linkOf(source: string, text: string): Link {
  if (/^[a-z]+:/.test(text)) return { text, path: null, anchor: null };
  const [file = "", anchor = null] = text.split("#");
  const path = file === "" ? source : normalize(join(dirname(source), file));
  return { text, path, anchor };
}

/** Links whose file or heading is not there. */
export function deadLinks(source: string, markdown: string): string[] {
  const dead = linksOf(source, markdown).filter(({ path, anchor }) => {
    if (path === null) return false;
    if (!existsSync(path)) return true;
    return anchor !== null && !headingsOf(readFileSync(path, "utf8")).includes(anchor);
  });
  return dead.map(({ text }) => text);
}

/** The anchors of a document's headings. */
function headingsOf(markdown: string): string[] {
  const titles = [...markdown.replace(FENCE, "").matchAll(/^#+ (.*)$/gm)];
  return titles.map(([, title = ""]) => anchorOf(title));
}

/** As the panel and the usual viewers of Markdown name them: the site has the same addresses. */
export function anchorOf(title: string): string {
  const words = title.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
  return words.replace(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-");
}

/**
 * A document as a page of the site: links to pages lead to their addresses, other files of the repository are handed out below
 * `source/`.
 * @param takeAlong is called with the path of each file
 */
export function asPage(
  { source }: Page,
  markdown: string,
  pages: readonly Page[],
  takeAlong: (path: string) => void,
): string {
  const rewrite = (text: string) => {
    const { path, anchor } = linkOf(source, text);
    if (path === null || text.startsWith("#")) return text;
    const suffix = anchor === null ? "" : `#${anchor}`;
    const page = pages.find((one) => one.source === path);
    if (page) return `/${page.name}${suffix}`;
    takeAlong(path);
    return `/source/${path}`;
  };
  const parts = markdown.split(/(^```[\s\S]*?^```$)/m);
  return parts
    .map((part) =>
      part.startsWith("```")
        ? part
        : part.replace(LINK, (_, open, text, close) => `${open}${rewrite(text)}${close}`),
    )
    .join("");
}

/** The documents of the repository that are pages of the panel: which they are, what they say, and where their links lead. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { ownFile } from "#core/platform/process/own-files.ts";

export interface Guide {
  /** Path of the file, from the root of the repository. */
  readonly source: string;
  /** Of the page: its address below `/docs/`. */
  readonly name: string;
  /** Its part of the menu. */
  readonly group: string;
}

interface Link {
  /** As it is written. */
  readonly text: string;
  /** From the root of the repository; null: an address of the web. */
  readonly path: string | null;
  readonly anchor: string | null;
}

/** What stands between two headings. */
interface Section {
  readonly id: string;
  readonly level: number;
  readonly heading: string;
  /** Without markup. */
  readonly text: string;
}

interface Outline {
  readonly sections: readonly Section[];
  readonly links: readonly Link[];
}

/** In the order of the menu. A document of `docs` that nothing names stands in the last group. */
const GROUPS: ReadonlyArray<readonly [string, ...string[]]> = [
  ["Start", "docs/index.md", "docs/start.md"],
  ["Couriers", "docs/couriers.md"],
  [
    "Merchants",
    "docs/merchants.md",
    "docs/webhooks.md",
    "docs/webhooks-v1.md",
    "docs/test-mode.md",
    "client/README.md",
    "client/python/README.md",
  ],
  [
    "Operators",
    "docs/configuration.md",
    "docs/operations.md",
    "docs/operations/*.md",
    "docs/compatibility.md",
    "docs/scale.md",
    "docs/performance.md",
    "docs/reliability.md",
    "CHANGELOG.md",
  ],
  ["Data team", "docs/analytics.md"],
  ["Contributors", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/glossary.md", "docs/limits.md"],
  ["Decisions", "docs/decisions/*.md"],
  ["More", "docs/**/*.md"],
];

export function guides(): Guide[] {
  const found = new Map<string, Guide>();
  for (const [group, ...patterns] of GROUPS) {
    const sources = patterns.flatMap((pattern) =>
      [...new Bun.Glob(pattern).scanSync(ownFile("."))].sort(),
    );
    for (const source of sources) {
      if (!found.has(source)) found.set(source, { source, name: nameOf(source), group });
    }
  }
  return [...found.values()];
}

/** `docs/a/b.md` is `a/b`, `ARCHITECTURE.md` is `architecture`, `client/python/README.md` is `python`. */
function nameOf(source: string): string {
  if (source.startsWith("docs/")) return source.slice("docs/".length, -".md".length);
  return source.endsWith("/README.md")
    ? basename(dirname(source))
    : source.slice(0, -".md".length).toLowerCase();
}

/** @param source the file that says so */
export function linkOf(source: string, text: string): Link {
  if (/^[a-z]+:/.test(text)) return { text, path: null, anchor: null };
  const [file = "", anchor = null] = text.split("#");
  const path = file === "" ? source : normalize(join(dirname(source), file));
  return { text, path, anchor };
}

/** Of no text. */
const MARK = "\u0000";

export function outlineOf(source: string, text: string): Outline {
  const headings: Omit<Section, "text">[] = [];
  const links: Link[] = [];
  const block = (content: string) => `${content}\n`;
  const plain = Bun.markdown.render(
    text,
    {
      heading: (heading, { level, id = "" }) => {
        headings.push({ id, level, heading });
        return MARK;
      },
      link: (content, { href }) => {
        links.push(linkOf(source, href));
        return content;
      },
      image: (content, { src }) => {
        links.push(linkOf(source, src));
        return content;
      },
      html: () => " ",
      paragraph: block,
      code: block,
      listItem: block,
      th: block,
      td: block,
    },
    { headings: { ids: true } },
  );
  const [, ...texts] = plain.split(MARK);
  const sections = headings.map((heading, at) => ({ ...heading, text: texts[at] ?? "" }));
  return { sections, links };
}

/** Links whose file or heading is not there. */
export function deadLinks(source: string, text: string): string[] {
  const dead = outlineOf(source, text).links.filter(({ path, anchor }) => {
    if (path === null) return false;
    if (!existsSync(ownFile(path))) return true;
    return anchor !== null && !anchorsOf(path).includes(anchor);
  });
  return dead.map((link) => link.text);
}

function anchorsOf(source: string): string[] {
  return outlineOf(source, readGuide(source)).sections.map(({ id }) => id);
}

export function readGuide(source: string): string {
  return readFileSync(ownFile(source), "utf8");
}

/** Everything that the pages are made of and lead to, from the root of the repository. */
export function guideFiles(): string[] {
  const sources = guides().map(({ source }) => source);
  const linked = sources.flatMap((source) =>
    outlineOf(source, readGuide(source)).links.flatMap(({ path }) => path ?? []),
  );
  return [...new Set([...sources, ...linked])];
}

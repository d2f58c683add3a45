/** The plain text beside a mail's HTML body, by `html-to-text`: entities, tables, lists and comments as a reader shows them. */
import { compile, type FormatCallback } from "html-to-text";
import { limit } from "#core/platform/schema/limit.ts";

/** What is read of a body; 100 KB of HTML written by hand have about 2,000 tags. The rest costs time, and is left out. */
export const TAGS_READ = limit(
  4_000,
  "tags of a template that its plain text is made of",
  "the rest is left out (`…`)",
);
export const ENTITIES_READ = limit(
  4_000,
  "entities of a template that its plain text is made of",
  "the rest is left out (`…`)",
);
const LEFT_OUT = "…";
export const DEPTH_READ = limit(
  200,
  "depth of a template that its plain text is made of",
  "the rest is left out (`…`)",
);
const RULE_LENGTH = 20;

/** A link's address behind its text, unless it is the text. Of a placeholder the address is not known yet. */
const link: FormatCallback = (element, walk, builder) => {
  let text = "";
  builder.pushWordTransform((word) => {
    text += word;
    return word;
  });
  walk(element.children, builder);
  builder.popWordTransform();
  const href = element.attribs?.["href"]?.trim() ?? "";
  if (/^(?:https?:|\{\{)/i.test(href) && href !== text) {
    builder.addInline(text === "" ? href : ` (${href})`, { noWordTransform: true });
  }
};

/** Cells of a row are apart. */
const cell: FormatCallback = (element, walk, builder) => {
  walk(element.children, builder);
  builder.addInline(" ");
};

const image: FormatCallback = (element, _, builder) => {
  builder.addInline(element.attribs?.["alt"] ?? "");
};

const read = compile({
  wordwrap: false,
  limits: { maxDepth: DEPTH_READ, ellipsis: LEFT_OUT },
  formatters: { link, cell, image },
  selectors: [
    { selector: "a", format: "link" },
    { selector: "img", format: "image" },
    { selector: "hr", options: { length: RULE_LENGTH } },
    { selector: "table", format: "block" },
    { selector: "tr", format: "block", options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
    ...["td", "th"].map((selector) => ({ selector, format: "cell" })),
    ...["head", "title"].map((selector) => ({ selector, format: "skip" })),
    ...["h1", "h2", "h3", "h4", "h5", "h6"].map((selector) => ({
      selector,
      options: { uppercase: false },
    })),
  ],
});

export function textOfHtml(html: string): string {
  const end = Math.min(endOf(html, "<", TAGS_READ), endOf(html, "&", ENTITIES_READ));
  return tidied(end < html.length ? `${read(html.slice(0, end))}${LEFT_OUT}` : read(html));
}

/** No blanks at the ends of lines, and no more than one empty line. */
export function tidied(text: string): string {
  const lines = text.split("\n").map((line) => line.trimEnd());
  return lines
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

/** Where a text has a sign once more than so many times; its length where it has not. */
function endOf(text: string, sign: string, times: number): number {
  let at = -1;
  for (let found = 0; found <= times; found += 1) {
    at = text.indexOf(sign, at + 1);
    if (at === -1) return text.length;
  }
  return at;
}

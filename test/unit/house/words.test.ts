/** One word for one thing: the glossary stays short, and what was replaced does not come back. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";

/** Before a newcomer changes the main flow. */
const CONCEPTS_LIMIT = 18;

interface Retired {
  readonly word: RegExp;
  readonly instead: string;
  /** Where it is looked for; everywhere by default. */
  readonly in?: RegExp;
}

const RETIRED: readonly Retired[] = [
  { word: /\brooms\b|\b(?:every|each|own|another|#) ?room\b/gi, instead: "role, or folder" },
  { word: /\banew\b/gi, instead: "again" },
  { word: /\bwork(?:s|ed)? (?:it |them )?off\b|\bworkOff\b/gi, instead: "process" },
  { word: /\bto be had\b/gi, instead: "available" },
  { word: /\bin vain\b/gi, instead: "without success" },
  { word: /\bsome (?=\d|\$\{\w)/gi, instead: "about" },
  { word: /\bsql[- ]?doors?\b/gi, instead: "SQL access" },
  // Elsewhere it is Dutch.
  {
    word: /\b\w*doors?\b/gi,
    instead: "listener, route or input",
    in: /^(?!core\/statuses\/rules\/)/,
  },
  { word: /\bimport law/gi, instead: "import rules" },
  { word: /\b(?:find|finds|found) (?:its|their) level/gi, instead: "adapts" },
  { word: /\b\w*[a-z]Rooms?\b|\brooms?Of\w*/g, instead: "capacity" },
  { word: /\b\w*[sS]etAside\w*|\bset[- ]aside\b/g, instead: "parked" },
  { word: /\b\w*[lL]anes?\b/g, instead: "queue", in: /^(?:core|processors)\/webhooks\// },
  { word: /\b\w*[lL]evels?\b/g, instead: "concurrency", in: /^(?:core|processors)\/webhooks\// },
];
/** Words of the documents, of the panel's API and of stored data, which stay. */
const QUOTED =
  /"[^"\n]*\bset-aside\b[^"\n]*"|\bset-aside \(document 2|\bset-aside event are judged|\bset-aside of unknown-tracking events|\bsetAside\b|WaybillEventsNotSetAside|"lane full"|\blane: null/gi;
/** What couriers are told, in the words of document 2; what was noticed at the time. */
const ELSEWHERE = /^(?:ingest\/(?:reference|doctor)\/|CHANGELOG\.md|test\/unit\/house\/words)/;

const PATHS = [
  ...["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"],
  ...["analytics", "api", "bench", "cli", "core", "demo", "docs", "ingest", "panel"],
  ...["processors", "test", "tools"],
].flatMap((root) =>
  root.includes(".") ? [root] : [...new Bun.Glob(`${root}/**/*.{ts,tsx,mjs,lua,md}`).scanSync(".")],
);
const SOURCES = await Promise.all(
  PATHS.map(async (path) => ({ path, text: await Bun.file(path).text() })),
);

test.each(RETIRED.map((one) => [one.instead, one] as const))(
  "%s is the word for it",
  (_, retired) => {
    const found = SOURCES.filter(
      ({ path }) => !ELSEWHERE.test(path) && (retired.in?.test(path) ?? true),
    )
      .map(({ path, text }) => [path, ...new Set(text.replaceAll(QUOTED, "").match(retired.word))])
      .filter(({ length }) => length > 1);
    expect(found).toEqual([]);
  },
);

test("members of an object are written plainly, not spread from a literal inside it", () => {
  const found = SOURCES.filter(({ path }) => /\.tsx?$/.test(path) && !ELSEWHERE.test(path)).filter(
    ({ text }) => /\.\.\.\(?\{/.test(text),
  );
  expect(found.map(({ path }) => path)).toEqual([]);
});

test(`the main flow takes ${CONCEPTS_LIMIT} concepts at most, and each lives where the glossary says`, async () => {
  const page = await Bun.file("docs/glossary.md").text();
  const [, table = ""] = page.split("## The main flow");
  const rows = (table.split("## ")[0] ?? "").split("\n").filter((line) => line.startsWith("| "));
  expect(rows.length - 1).toBeGreaterThan(0);
  expect(rows.length - 1).toBeLessThanOrEqual(CONCEPTS_LIMIT);
  const places = rows.slice(1).map((row) => /`([\w/.-]+)` \|$/.exec(row)?.[1] ?? row);
  expect(places.filter((place) => !existsSync(place))).toEqual([]);
});

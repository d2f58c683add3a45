/** Biome's limit of 70 lines a function does not hold for test files, since it counts the blocks that group tests: it holds here. */
import { expect, test } from "bun:test";
import { Glob } from "bun";

const MAX_LINES = 70;
const ROOT = `${import.meta.dir}/../..`;

/** Lines of each test, by its indentation: Biome formats every file. */
function longTests(source: string): string[] {
  const lines = source.split("\n");
  return lines.flatMap((line, at) => {
    const indent = /^(\s*)(?:test|it)(?:\.\w+)?\(/.exec(line)?.[1];
    if (indent === undefined) return [];
    const ends = [`${indent}}`, `${indent})`];
    const length = lines.slice(at).findIndex((one) => ends.some((end) => one.startsWith(end))) + 1;
    return length > MAX_LINES ? [`line ${at + 1}: ${length} lines`] : [];
  });
}

test("no test is longer than 70 lines", async () => {
  const found: string[] = [];
  for await (const path of new Glob("**/*.test.ts").scan(ROOT)) {
    const long = longTests(await Bun.file(`${ROOT}/${path}`).text());
    found.push(...long.map((place) => `${path}, ${place}`));
  }
  expect(found).toEqual([]);
});

test("a test of 70 lines passes, one of 71 does not, however it is called", () => {
  const ofLines = (count: number) => `test("x", () => {\n${"  run();\n".repeat(count - 2)}});\n`;
  expect(longTests(ofLines(MAX_LINES))).toEqual([]);
  expect(longTests(ofLines(MAX_LINES + 1))).toEqual(["line 1: 71 lines"]);
  const table = `test.each([1])(\n  "x",\n${"  run();\n".repeat(MAX_LINES - 3)});\n`;
  expect(longTests(`${table}\n${ofLines(3)}`)).toEqual([]);
});

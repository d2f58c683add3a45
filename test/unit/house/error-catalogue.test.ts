/** `core/platform/errors/error-catalogue.ts` lists what is thrown: its types allow no other code, and here nothing is listed that nothing throws. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Glob } from "bun";
import { type ErrorApi, errorsOf } from "#core/platform/errors/error-catalogue.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** Sources whose errors an API can answer. */
const SOURCES: Readonly<Record<ErrorApi, readonly string[]>> = {
  merchant: [
    "api/**/*.ts",
    "core/platform/http/**/*.ts",
    "core/runtime/*.ts",
    "analytics/benchmarks.ts",
  ],
  courier: ["ingest/**/*.ts", "core/platform/http/**/*.ts", "core/runtime/*.ts"],
  operator: ["panel/**/*.ts", "core/**/*.ts", "analytics/**/*.ts"],
};
const APIS = Object.keys(SOURCES) as ErrorApi[];

/** `<status> <code>` of problems, also where a value holds both until it is thrown. */
const THROWN = /(?:(?:new Problem|labelProblem)\(\s*|status: )(\d{3}),\s*(?:code: )?"([A-Z_]+)"/g;

function textsOf(patterns: readonly string[]): string[] {
  const paths = patterns.flatMap((pattern) => [...new Glob(pattern).scanSync(ROOT)]);
  return [...new Set(paths)].map((path) => readFileSync(`${ROOT}${path}`, "utf8"));
}

function thrownIn(texts: readonly string[]): string[] {
  return texts.flatMap((text) =>
    [...text.matchAll(THROWN)].map(([, status, code]) => `${status} ${code}`),
  );
}

describe.each(APIS)("%s", (api) => {
  const listed = errorsOf(api).map(({ status, code }) => `${status} ${code}`);

  test("every code of the catalogue can be thrown", () => {
    const source = textsOf(SOURCES[api]).join("\n");
    const unused = errorsOf(api).filter(({ code }) => !source.includes(`"${code}"`));
    expect(unused.map(({ code }) => code)).toEqual([]);
  });

  test("every code that its own role throws is in its catalogue, with a meaning and a remedy", () => {
    const role = { merchant: "api", courier: "ingest", operator: "panel" }[api];
    const thrown = thrownIn(textsOf([`${role}/**/*.ts`]));
    expect(thrown.length).toBeGreaterThan(10);
    expect(thrown.filter((entry) => !listed.includes(entry))).toEqual([]);
    for (const { meaning, remedy } of errorsOf(api)) {
      expect([meaning, remedy].every((text) => /^[A-Z].*\.$/.test(text))).toBe(true);
    }
  });
});

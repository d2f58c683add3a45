/** Where a body stops being JSON. */
import { expect, test } from "bun:test";
import { placeOfFault } from "#core/platform/http/body/json-fault-at.ts";

const placeOf = (text: string) => placeOfFault(new TextEncoder().encode(text));

test.each([
  ['{"a": 1,}', "line 1, column 9"],
  ['{\n  "a": [1, 2\n  "b": 3\n}', "line 3, column 3"],
  ["{'a': 1}", "line 1, column 2"],
  ['{"a": undefined}', "line 1, column 7"],
  ['{"a": 01}', "line 1, column 8"],
  ['{"a": "\\x"}', "line 1, column 7"],
  ["[1, 2}", "line 1, column 6"],
  ["[1] 2", "line 1, column 5"],
  ['{"a" 1}', "line 1, column 6"],
  ['{"à": 1 "b": 2}', "line 1, column 9"],
])("%s", (text, place) => {
  expect(() => JSON.parse(text)).toThrow();
  expect(placeOf(text)).toBe(` It stops being JSON at ${place}.`);
});

test("a text that ends too early says so; JSON has no such place", () => {
  for (const text of ["", " ", "{", '{"a":', '["a"', '{"a": 1']) {
    expect(placeOf(text)).toBe(" It ends too early.");
  }
  for (const text of [
    "1",
    "[]",
    "{}",
    ' {"a": [1, -2.5e3, null, true, {"b": "\\u00e0"}]} ',
    "[[],[{}]]",
  ]) {
    expect(placeOf(text)).toBe("");
  }
});

test("what comes late in a large body is not looked for", () => {
  const large = `[${"1,".repeat(200_000)}]`;
  expect(placeOf(large)).toBe(" It stops being JSON after the first 262144 bytes.");
});

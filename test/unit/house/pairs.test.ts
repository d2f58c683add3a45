/** Every pair of features that can meet is decided: a test covers it, or the list says why the two cannot meet. */
import { expect, test } from "bun:test";
import { FEATURES, PAIRS, type Pair } from "#test/pairs.ts";

const listed = FEATURES.flatMap((feature, at) =>
  FEATURES.slice(0, at).map((other) => ({ feature, other, pair: PAIRS[feature][other] })),
);

/** Files are read once. */
const texts = new Map<string, string>();

async function textOf(file: string): Promise<string> {
  const known = texts.get(file);
  if (known !== undefined) return known;
  const text = await Bun.file(`test/${file}.test.ts`)
    .text()
    .catch(() => "");
  texts.set(file, text);
  return text;
}

test("every pair stands once, with the feature that is listed later", () => {
  expect(listed.filter(({ pair }) => pair === undefined)).toEqual([]);
  const count = Object.values(PAIRS).reduce((sum, row) => sum + Object.keys(row).length, 0);
  expect(count).toBe(listed.length);
});

test("every test that is named exists", async () => {
  const names = listed.flatMap(({ pair }) => (pair && "by" in pair ? pair.by : []));
  const missing: string[] = [];
  for (const name of new Set(names)) {
    const [file = "", title = ""] = name.split(": ", 1).concat(name.slice(name.indexOf(": ") + 2));
    if (title === "" || !(await textOf(file)).includes(title)) missing.push(name);
  }
  expect(missing).toEqual([]);
});

test("a pair that cannot meet says why", () => {
  const isEmpty = (pair: Pair | undefined) =>
    pair !== undefined && ("by" in pair ? pair.by.length === 0 : pair.apart === "");
  expect(listed.filter(({ pair }) => isEmpty(pair))).toEqual([]);
});

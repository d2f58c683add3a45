import { describe, expect, test } from "bun:test";
import { VARIABLES } from "#core/platform/environment/variables.ts";
import { limitsPage, PAGE } from "#tools/limits/limits-page.ts";

describe("docs/limits.md", async () => {
  const page = await Bun.file(PAGE).text();
  const lines = page.split("\n").filter((line) => /^\| (?!What)/.test(line));
  const rows = lines.map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")));
  const [, byHand = ""] = page.split("\n## Settings and scripts\n");

  test("is what `npm run tool -- limits` makes of the limits in the source", async () => {
    expect(rows.length).toBeGreaterThan(300);
    expect(page).toBe(await limitsPage());
  });

  test("has figures in no other cell, where nothing would compare them; HTTP statuses are none", () => {
    const others = rows.flatMap(([what = "", , , atTheLimit = ""]) => [
      what,
      atTheLimit.replace(/\b[45]\d\d\b/g, ""),
    ]);
    expect(others.filter((text) => /\b\d/.test(text))).toEqual([]);
  });

  const handRows = rows.filter((_, at) => byHand.includes(lines[at] ?? ""));
  test.each(handRows)("%s", async (_, figure = "", where = "") => {
    expect(await definedValue(where.replaceAll("`", ""))).toBe(Number(figure.replaceAll(",", "")));
  });
});

/** @param where an environment variable, whose default is meant, or `file.lua:NAME` of `local ONE, NAME = 1, 2` */
async function definedValue(where: string): Promise<number> {
  const variables: Readonly<Record<string, { readonly fallback: string | null }>> = VARIABLES;
  const [file = "", name = ""] = where.split(":");
  if (name === "") return Number(variables[file]?.fallback);
  const [path = ""] = new Bun.Glob(`core/**/${file}`).scanSync(".");
  const definitions = (await Bun.file(path).text()).matchAll(/^local ([A-Z_, ]+) = (.+)$/gm);
  for (const [, names = "", values = ""] of definitions) {
    const at = names.split(", ").indexOf(name);
    if (at !== -1) return Number(values.split(/, |$/)[at]);
  }
  throw new Error(`${path} defines no ${name}`);
}

import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { everyPart } from "#bench/every-part.ts";
import { merge, rewritten, withGrowth } from "#bench/publish.ts";
import { everysecWork, type Figure, type Report } from "#bench/table.ts";

const DOCS = join(import.meta.dir, "../../../docs");

const figure = (row: number, work: string, ours: number): Figure => ({
  row,
  work,
  ours,
  beside: null,
  peer: null,
  unit: "ms",
  goal: { oursMost: 10 },
});

test("the page shows the published figures and none that was changed by hand", async () => {
  const page = await readFile(join(DOCS, "performance.md"), "utf8");
  const published: Report = JSON.parse(await readFile("bench/results/performance.json", "utf8"));
  expect(rewritten(page, published)).toBe(page);
  const scale = await readFile(join(DOCS, "scale.md"), "utf8");
  const sizes = published.figures.find(({ growth }) => growth)?.growth ?? [];
  expect(withGrowth(scale, sizes)).toBe(scale);
});

test("rows that were measured replace those of the same kind, and the others stay", () => {
  const everysec = figure(1, everysecWork("a"), 5);
  const before = { machine: "old", figures: [figure(1, "a", 3), figure(2, "b", 4), everysec] };
  const after = merge(before, { machine: "new", figures: [figure(1, "a, smaller", 2)] });
  expect(after).toEqual({
    machine: "new",
    figures: [figure(1, "a, smaller", 2), everysec, figure(2, "b", 4)],
  });
});

test("figures of both kinds stand in their own tables, with what became of their goals", () => {
  const page = ["always", "everysec"].flatMap((name) => [
    ...[`<!-- figures: ${name} -->`, "old", `<!-- end of figures: ${name} -->`, ""],
  ]);
  const figures = [figure(1, "a", 3), figure(1, everysecWork("a"), 12)];
  const text = rewritten(page.join("\n"), { machine: "", figures });
  const [always = "", everysec = ""] = text.split("<!-- figures: everysec -->");
  expect(always).toContain("| 1 | a | 3.0 |  | ms |  | < 10.0 ms met |");
  expect(everysec).toContain("| 1 | a, everysec | 12.0 |  | ms |  | < 10.0 ms MISSED |");
  expect(text).not.toContain("old");
  expect(() => rewritten("no table", { machine: "", figures })).toThrow("no table");
});

test("a part of the benchmark that fails costs its own rows only", async () => {
  const report: Report = { machine: "m", figures: [figure(2, "b", 4)] };
  const lines: string[] = [];
  const outcome = await everyPart(
    [
      { name: "one", measure: () => Promise.reject(new Error("no answer")) },
      { name: "two", measure: async () => report },
    ],
    (line) => lines.push(line),
  );
  expect(outcome).toEqual({ reports: [report], failures: ["one FAILED: no answer"] });
  expect(lines).toEqual(["one", "one FAILED: no answer", "two", "two: 0 s"]);
});

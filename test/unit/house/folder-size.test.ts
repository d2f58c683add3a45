/** No folder holds more files than a reader takes in at a glance. */
import { expect, test } from "bun:test";
import { dirname } from "node:path";
import { Glob } from "bun";

const MOST_FILES = 30;
const FILES =
  "{core,ingest,api,processors,analytics,panel,cli,demo,tools,test}/**/*.{ts,tsx,mjs,lua,sql,css,sh}";

test("no folder holds more than 30 files", () => {
  const counts = new Map<string, number>();
  for (const path of new Glob(FILES).scanSync(".")) {
    const folder = dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  expect(counts.size).toBeGreaterThan(50);
  const large = [...counts].filter(([, count]) => count > MOST_FILES);
  expect(large).toEqual([]);
});

/** `cli/run.mjs` tells why Bun's allocator is set, and where: it is read before any code of ours. */
import { expect, test } from "bun:test";
import { ALLOCATOR_OF_ALL } from "#bench/harness.ts";

const { scripts } = await Bun.file("package.json").json();

test.each(["ingest", "api", "processors", "analytics", "panel", "bench"])(
  "bun run %s sets the allocator",
  (name) => {
    const setting = `MIMALLOC_PURGE_DELAY=\${MIMALLOC_PURGE_DELAY:--1}`;
    expect(scripts[name]).toBe(`exec env ${setting} bun ${name}/main.ts`);
  },
);

test("npm start lets the allocator give memory back at rest, as row 18 of the benchmark does", async () => {
  const setting = JSON.stringify(ALLOCATOR_OF_ALL)
    .replace(/"(\w+)":"/, '$1: "')
    .slice(1, -1);
  expect(await Bun.file("cli/run.mjs").text()).toContain(`const ALLOCATOR = { ${setting} };`);
});

test("the image sets the allocator", async () => {
  const env = (await Bun.file("Dockerfile").text()).match(/^ENV .*$/gm);
  expect(env?.join(" ").split(" ")).toContain("MIMALLOC_PURGE_DELAY=-1");
});

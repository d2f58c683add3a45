/** The import law is enforced by the linter; here forbidden imports are planted, to see that it can refuse. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const BIOME = join(process.cwd(), "node_modules", ".bin", "biome");

/** `true` = the law lets this file import this. */
const CASES: ReadonlyArray<readonly [file: string, imported: string, allowed: boolean]> = [
  ["client/src/planted.ts", "./client.ts", true],
  ["client/src/planted.ts", "#core/log.ts", false],
  ["ingest/planted.ts", "#core/log.ts", true],
  ["ingest/routes/planted.ts", "#ingest/app.ts", true],
  ["ingest/planted.ts", "#processors/main.ts", false],
  ["ingest/planted.ts", "#api/main.ts", false],
  ["ingest/routes/planted.ts", "../app.ts", false],
  ["processors/planted.ts", "#core/log.ts", true],
  ["processors/planted.ts", "#ingest/main.ts", false],
  ["processors/webhooks/planted.ts", "#start/main.ts", false],
  ["api/planted.ts", "#analytics/benchmarks.ts", true],
  ["api/planted.ts", "#analytics/archive.ts", true],
  ["api/planted.ts", "#analytics/main.ts", false],
  ["processors/planted.ts", "#analytics/archive.ts", true],
  ["processors/planted.ts", "#analytics/archiver.ts", false],
  ["panel/planted.ts", "#analytics/archive.ts", true],
  ["api/planted.ts", "#panel/main.ts", false],
  ["panel/planted.ts", "#analytics/benchmarks.ts", true],
  ["panel/planted.ts", "#analytics/insights.ts", true],
  ["panel/planted.ts", "#analytics/sql-door.ts", false],
  ["panel/planted.ts", "#api/main.ts", false],
  ["analytics/planted.ts", "#core/log.ts", true],
  ["analytics/planted.ts", "#processors/main.ts", false],
  ["core/planted.ts", "#core/log.ts", true],
  ["core/planted.ts", "#ingest/main.ts", false],
  ["core/redis/log/planted.ts", "#test/support/eventually.ts", false],
  ["core/redis/client/planted.ts", "#core/redis/log/consumer.ts", false],
  ["core/redis/log/planted.ts", "#core/redis/client/keys.ts", true],
  ["core/redis/nodes/planted.ts", "#core/redis/client/keys.ts", true],
  ["core/redis/nodes/planted.ts", "#core/redis/log/consumer.ts", false],
  ["core/redis/log/planted.ts", "#core/redis/shipments/shipments.ts", false],
  ["core/redis/shipments/planted.ts", "#core/redis/intake/references.ts", true],
  ["core/redis/shipments/planted.ts", "#core/redis/webhooks/leases.ts", false],
  ["core/redis/webhooks/planted.ts", "#core/redis/shipments/shipments.ts", true],
  ["core/redis/webhooks/planted.ts", "#core/redis/merchant/orders.ts", false],
  ["core/redis/setup/planted.ts", "#core/redis/merchant/orders.ts", true],
  ["core/domain/planted.ts", "#core/domain/courier-events/event.ts", true],
  ["core/domain/planted.ts", "#core/redis/client/keys.ts", false],
  ["core/domain/planted.ts", "node:fs", false],
  ["start/planted.ts", "#ingest/main.ts", true],
  ["start/demo/planted.ts", "#core/log.ts", true],
  ["start/planted.ts", "#test/support/eventually.ts", false],
  ["bench/planted.ts", "#processors/main.ts", true],
  ["test/unit/planted.ts", "#api/main.ts", true],
  ["test/unit/planted.ts", "../support/eventually.ts", false],
];

/** A tree with the project's law and nothing else: what is planted there disturbs nobody's lint. */
let tree = "";

beforeAll(async () => {
  tree = await mkdtemp(join(tmpdir(), "waybill-law-"));
  for (const file of ["biome.json", "package.json", ".gitignore"]) await cp(file, join(tree, file));
});

afterAll(() => rm(tree, { recursive: true, force: true }));

async function plant(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(tree, file)), { recursive: true });
  await writeFile(join(tree, file), text);
}

/** Rules that refuse something in these files. */
async function refusals(...files: string[]): Promise<string[]> {
  const lint = Bun.spawn([BIOME, "lint", "--reporter=json", ...files], {
    cwd: tree,
    stdout: "pipe",
    stderr: "ignore",
  });
  const report = JSON.parse(await new Response(lint.stdout).text()) as {
    diagnostics: { category: string }[];
  };
  return report.diagnostics.map(({ category }) => category);
}

describe("the import law", () => {
  test.each(CASES)("%s imports %s: %p", async (file, imported, allowed) => {
    await plant(file, `import * as planted from "${imported}";\n\nexport const used = planted;\n`);
    const found = await refusals(file);
    await rm(join(tree, file));
    expect(found.includes("lint/style/noRestrictedImports")).toBe(!allowed);
  });

  test("modules that import each other are refused", async () => {
    await plant(
      "core/one.ts",
      'import { two } from "./two.ts";\n\nexport const one = () => two();\n',
    );
    await plant(
      "core/two.ts",
      'import { one } from "./one.ts";\n\nexport const two = (): unknown => one();\n',
    );
    expect(await refusals("core/one.ts", "core/two.ts")).toContain(
      "lint/suspicious/noImportCycles",
    );
  });
});

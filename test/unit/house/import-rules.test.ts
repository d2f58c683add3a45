/** The import rules are enforced by the linter; here forbidden imports are planted, to see that it can refuse. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const BIOME = join(process.cwd(), "node_modules", ".bin", "biome");

/** `true` = the rules let this file import this. */
const CASES: ReadonlyArray<readonly [file: string, imported: string, allowed: boolean]> = [
  ["client/src/planted.ts", "./client.ts", true],
  ["client/src/planted.ts", "#core/platform/process/log.ts", false],
  ["ingest/planted.ts", "#core/platform/process/log.ts", true],
  ["ingest/routes/planted.ts", "#ingest/app.ts", true],
  ["ingest/planted.ts", "#processors/main.ts", false],
  ["ingest/planted.ts", "#api/main.ts", false],
  ["ingest/routes/planted.ts", "../app.ts", false],
  ["processors/planted.ts", "#core/platform/process/log.ts", true],
  ["processors/planted.ts", "#ingest/main.ts", false],
  ["processors/webhooks/planted.ts", "#cli/start.ts", false],
  ["api/planted.ts", "#analytics/benchmarks.ts", true],
  ["api/planted.ts", "#analytics/archive.ts", true],
  ["api/planted.ts", "#analytics/main.ts", false],
  ["processors/planted.ts", "#analytics/archive.ts", true],
  ["processors/planted.ts", "#analytics/archive/archiver.ts", false],
  ["panel/planted.ts", "#analytics/archive.ts", true],
  ["api/planted.ts", "#panel/main.ts", false],
  ["panel/planted.ts", "#analytics/benchmarks.ts", true],
  ["panel/planted.ts", "#analytics/insights.ts", true],
  ["panel/planted.ts", "#analytics/sql-access.ts", false],
  ["panel/planted.ts", "#api/main.ts", false],
  ["analytics/planted.ts", "#core/platform/process/log.ts", true],
  ["analytics/planted.ts", "#processors/main.ts", false],
  ["core/planted.ts", "#core/platform/process/log.ts", true],
  ["core/planted.ts", "#ingest/main.ts", false],
  ["core/platform/log/planted.ts", "#test/support/eventually.ts", false],
  ["core/platform/redis/planted.ts", "#core/platform/log/consumer.ts", true],
  ["core/platform/redis/planted.ts", "#core/shipments/rules/shipment.ts", false],
  ["core/platform/redis/planted.ts", "#core/events/rules/reference.ts", true],
  ["core/platform/log/planted.ts", "#core/platform/redis/keys.ts", true],
  ["core/platform/log/planted.ts", "#core/shipments/store/shipments.ts", false],
  ["core/shipments/store/planted.ts", "#core/events/store/references.ts", true],
  ["core/shipments/store/planted.ts", "#core/webhooks/store/deliveries/leases.ts", false],
  ["core/webhooks/store/planted.ts", "#core/shipments/store/shipments.ts", true],
  ["core/webhooks/store/planted.ts", "#core/merchants/store/orders.ts", false],
  ["core/setup/store/planted.ts", "#core/merchants/store/orders.ts", true],
  ["core/shipments/rules/planted.ts", "#core/events/rules/event.ts", true],
  ["core/shipments/rules/planted.ts", "#core/shipments/store/shipments.ts", false],
  ["core/shipments/rules/planted.ts", "#core/platform/time/rome-time.ts", true],
  ["core/shipments/rules/planted.ts", "#core/platform/redis/keys.ts", false],
  ["core/shipments/rules/planted.ts", "node:fs", false],
  ["cli/planted.ts", "#ingest/main.ts", true],
  ["demo/planted.ts", "#core/platform/process/log.ts", true],
  ["tools/planted.ts", "#test/support/eventually.ts", false],
  ["bench/planted.ts", "#processors/main.ts", true],
  ["test/unit/planted.ts", "#api/main.ts", true],
  ["test/unit/planted.ts", "../support/eventually.ts", false],
];

/** A tree with the project's rules and nothing else: what is planted there disturbs nobody's lint. */
let tree = "";

beforeAll(async () => {
  tree = await mkdtemp(join(tmpdir(), "waybill-rules-"));
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

describe("the import rules", () => {
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

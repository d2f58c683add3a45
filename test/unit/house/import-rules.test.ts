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

/** Planted files whose import the rules refuse. */
let refused: ReadonlySet<string>;

beforeAll(async () => {
  tree = await mkdtemp(join(tmpdir(), "waybill-rules-"));
  for (const file of ["biome.json", "package.json", ".gitignore"]) await cp(file, join(tree, file));
  for (const [at, [file, imported]] of CASES.entries()) {
    const text = `import * as planted from "${imported}";\n\nexport const used = planted;\n`;
    await plant(plantedAs(file, at), text);
  }
  const found = await refusals(...CASES.map(([file], at) => plantedAs(file, at)));
  const ofImports = found.filter(({ category }) => category === "lint/style/noRestrictedImports");
  refused = new Set(ofImports.map(({ location }) => location.path));
});

afterAll(() => rm(tree, { recursive: true, force: true }));

/** All cases are linted at once, so each has a file of its own. */
function plantedAs(file: string, at: number): string {
  return file.replace("planted", `planted-${at}`);
}

async function plant(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(tree, file)), { recursive: true });
  await writeFile(join(tree, file), text);
}

interface Refusal {
  readonly category: string;
  readonly location: { readonly path: string };
}

/** What the rules refuse in these files. */
async function refusals(...files: string[]): Promise<Refusal[]> {
  const command = [BIOME, "lint", "--reporter=json", "--max-diagnostics=none", ...files];
  const lint = Bun.spawn(command, {
    cwd: tree,
    stdout: "pipe",
    stderr: "ignore",
  });
  const report = JSON.parse(await new Response(lint.stdout).text()) as { diagnostics: Refusal[] };
  return report.diagnostics;
}

describe("the import rules", () => {
  for (const [at, [file, imported, allowed]] of CASES.entries()) {
    test(`let ${file} import ${imported}: ${allowed}`, () => {
      expect(refused.has(plantedAs(file, at))).toBe(!allowed);
    });
  }

  test("modules that import each other are refused", async () => {
    await plant(
      "core/one.ts",
      'import { two } from "./two.ts";\n\nexport const one = () => two();\n',
    );
    await plant(
      "core/two.ts",
      'import { one } from "./one.ts";\n\nexport const two = (): unknown => one();\n',
    );
    const found = await refusals("core/one.ts", "core/two.ts");
    expect(found.map(({ category }) => category)).toContain("lint/suspicious/noImportCycles");
  });
});

/** Which tests may kill the mutants of a file. */
import { dirname, join, normalize } from "node:path";

const IMPORT = /(?:from|import) "(#[^"]+|\.[^"]+)"/g;

export interface Tests {
  /** Run first. */
  readonly near: readonly string[];
  /** Run where the others pass. */
  readonly far: readonly string[];
}

/** Unit tests that import a file of `core/domain`: themselves, and through others. */
export async function unitTestsOf(file: string): Promise<Tests> {
  const tests = [...new Bun.Glob("test/unit/*.test.ts").scanSync(".")].toSorted();
  const near: string[] = [];
  const far: string[] = [];
  for (const test of tests) {
    if ((await Bun.file(test).text()).includes(`"#${file}"`)) near.push(test);
    else if ((await importsOf(test)).has(file)) far.push(test);
  }
  return { near, far };
}

const known = new Map<string, Promise<Set<string>>>();

function importsOf(file: string, above: readonly string[] = []): Promise<Set<string>> {
  const before = known.get(file);
  if (before) return before;
  const reading = readImports(file, [...above, file]);
  known.set(file, reading);
  return reading;
}

async function readImports(file: string, above: readonly string[]): Promise<Set<string>> {
  const text = await Bun.file(file)
    .text()
    .catch(() => "");
  const direct = [...text.matchAll(IMPORT)].map(([, name = ""]) =>
    name.startsWith("#") ? name.slice(1) : normalize(join(dirname(file), name)),
  );
  const all = new Set(direct);
  for (const one of direct) {
    if (!one.endsWith(".ts") || above.includes(one)) continue;
    for (const further of await importsOf(one, above)) all.add(further);
  }
  return all;
}

const contract = (...names: readonly string[]) =>
  names.map((name) => `test/contract/${name}.test.ts`);

/** Scripts whose mutants are made, and the contract tests of what they do. */
export const TESTS_OF_SCRIPTS: Readonly<Record<string, readonly string[]>> = {
  "core/redis/shipments/commit.lua": contract("commits", "track"),
  "core/redis/log/claim.lua": contract("log-limits", "ingest-events", "ingest-backpressure"),
  "core/redis/log/acknowledge.lua": contract("consumer", "dead-letters"),
  "core/redis/log/settle-retry.lua": contract("consumer", "dead-letters"),
  "core/redis/intake/park.lua": contract("set-aside", "one-moment"),
  "core/redis/webhooks/decide.lua": contract("webhooks-decisions", "webhooks-lanes"),
  "core/redis/webhooks/lease.lua": contract("webhooks-leases", "webhooks-lanes"),
  "core/redis/webhooks/finish.lua": contract("webhooks-leases", "webhooks-delivery"),
};

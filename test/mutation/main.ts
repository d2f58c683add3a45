/**
 * `bun run mutate [--only path] [--scripts] [--most N] [--seed N]`: changes the rules of `core/domain`, or with `--scripts` the Lua
 * scripts, in one small place at a time, and tells which changes no test notices. Works on a copy of the project. A mutator of
 * our own, since Stryker has no runner for Bun's tests: with its command runner it would start the whole suite for every mutant.
 * @param most mutants of a file that are tried, drawn with the seed; absent = all
 */
import { spawn } from "node:child_process";
import { cp, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { productEnv } from "#test/support/product.ts";
import { luaMutantsOf } from "./lua-mutants.ts";
import { TESTS_OF_SCRIPTS, type Tests, unitTestsOf } from "./tests-of.ts";
import { type Mutant, mutantsOf } from "./typescript-mutants.ts";

/** A mutant that runs for so much longer than the unchanged source hangs: it counts as killed. */
const SLOWER = 5;
const LEAST_LIMIT_MS = 10_000;
const COPIED = ["api", "analytics", "bench", "client", "core", "deploy", "docs", "ingest", "panel"];
COPIED.push("processors", "start", "test", "package.json", "tsconfig.json", "bunfig.toml");
COPIED.push("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "biome.json");

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    scripts: { type: "boolean", default: false },
    most: { type: "string", default: "" },
    seed: { type: "string", default: "1" },
  },
});
const most = Number(values.most) || Number.POSITIVE_INFINITY;

const files = values.scripts
  ? Object.keys(TESTS_OF_SCRIPTS)
  : [...new Bun.Glob("core/domain/**/*.ts").scanSync(".")].toSorted();
const copies = await Promise.all(Array.from({ length: availableParallelism() }, makeCopy));
let [tried, killed] = [0, 0];
for (const file of files.filter((path) => path.includes(values.only))) await tryFile(file);
process.stdout.write(`in all: ${killed} of ${tried} killed, ${shareOf(killed, tried)}\n`);
for (const folder of copies) await rm(folder, { recursive: true, force: true });

async function makeCopy(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-mutants-"));
  for (const name of COPIED) await cp(name, join(folder, name), { recursive: true });
  await symlink(resolve("node_modules"), join(folder, "node_modules"));
  return folder;
}

async function tryFile(file: string): Promise<void> {
  const source = await Bun.file(file).text();
  const tests = values.scripts
    ? { near: TESTS_OF_SCRIPTS[file] ?? [], far: [] }
    : await unitTestsOf(file);
  const all = values.scripts ? luaMutantsOf(source) : mutantsOf(file, source);
  if (all.length === 0) return;
  if (tests.near.length + tests.far.length === 0) {
    process.stdout.write(`${file}: ${all.length} mutants, no unit test imports it\n`);
    return;
  }
  const fromMs = performance.now();
  const [first = ""] = copies;
  if (!(await passes(first, tests, Number.POSITIVE_INFINITY))) {
    throw new Error(`the tests of ${file} are not green to begin with`);
  }
  const limitMs = Math.max(LEAST_LIMIT_MS, SLOWER * (performance.now() - fromMs));
  const waiting = drawn(all).values();
  const survivors: Mutant[] = [];
  let count = 0;
  const work = async (folder: string) => {
    for (const mutant of waiting) {
      await writeFile(join(folder, file), mutant.source);
      count += 1;
      if (await passes(folder, tests, limitMs)) survivors.push(mutant);
    }
    await writeFile(join(folder, file), source);
  };
  await Promise.all(copies.map(work));
  tried += count;
  killed += count - survivors.length;
  const share = shareOf(count - survivors.length, count);
  process.stdout.write(`${file}: ${count - survivors.length} of ${count} killed, ${share}\n`);
  for (const { line, before, after } of survivors.toSorted((one, two) => one.line - two.line)) {
    const short = before.replace(/\s+/g, " ").slice(0, 80);
    process.stdout.write(`  survived at line ${line}: ${short} -> ${after || "nothing"}\n`);
  }
}

/** In an order of their own, the same for the same seed. */
function drawn(all: readonly Mutant[]): Mutant[] {
  const order = (mutant: Mutant, at: number) =>
    Bun.hash(`${values.seed} ${at} ${mutant.line} ${mutant.after}`);
  return all
    .map((mutant, at) => ({ mutant, order: order(mutant, at) }))
    .toSorted((one, other) => (one.order < other.order ? -1 : 1))
    .slice(0, most)
    .map(({ mutant }) => mutant);
}

async function passes(cwd: string, { near, far }: Tests, limitMs: number): Promise<boolean> {
  return (await runs(cwd, near, limitMs)) && (await runs(cwd, far, limitMs));
}

async function runs(cwd: string, tests: readonly string[], limitMs: number): Promise<boolean> {
  if (tests.length === 0) return true;
  const args = ["test", "--bail", "--timeout=60000", ...tests];
  const child = spawn("bun", args, { cwd, env: productEnv(), stdio: "ignore" });
  const timer =
    limitMs === Number.POSITIVE_INFINITY ? null : setTimeout(() => child.kill("SIGKILL"), limitMs);
  const status = await new Promise<number | null>((done) => child.once("exit", done));
  if (timer) clearTimeout(timer);
  return status === 0;
}

function shareOf(part: number, whole: number): string {
  return whole === 0 ? "none" : `${((100 * part) / whole).toFixed(1)} %`;
}

/**
 * `npm run tool -- mutate [--only path] [--scripts] [--most N] [--seed N] [--part 1/4] [--record] [--verbose]`: changes the rules of core,
 * or with `--scripts` the Lua scripts, in one small place at a time, and tells which changes no test notices. No file is changed.
 * A mutator of our own, since Stryker has no runner for Bun's tests: with its command runner it would start the whole suite for
 * every mutant. Here a process loads the tests once and runs them against many mutants (`judge.ts`).
 * @param most mutants of a file that are tried, drawn with the seed; absent = all
 * @param part of the mutants of each file, so that a long run can be cut into pieces
 * @param record adds what was found to test/mutation/mutants.json, which docs/reliability.md shows; a first part begins its file again
 * @param verbose prints what has noticed each mutant
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { type Judge, startJudge } from "./judges.ts";
import { luaMutantsOf } from "./lua-mutants.ts";
import { recordMutants } from "./record.ts";
import { testsOfRule, testsOfScript } from "./tests-of.ts";
import { type Mutant, mutantsOf } from "./typescript-mutants.ts";

/** A mutant that runs for so much longer than the unchanged source hangs: it counts as killed. */
const SLOWER = 5;
const LEAST_LIMIT_MS = 15_000;
/** A test that waits for what never comes gives up after a minute; by then its verdict is known. */
const MOST_LIMIT_MS = 60_000;
/** Of the unchanged source. */
const BASE_LIMIT_MS = 120_000;
/** CPU time of a test that imports the mutated file, and of one that does so through others only: what takes longer is left out. */
const NEAR_LIMIT_MS = 1_500;
const FAR_LIMIT_MS = 250;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    scripts: { type: "boolean", default: false },
    most: { type: "string", default: "" },
    seed: { type: "string", default: "1" },
    part: { type: "string", default: "1/1" },
    record: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
  },
});
const most = Number(values.most) || Number.POSITIVE_INFINITY;
const [part = 1, parts = 1] = values.part.split("/").map(Number);

const pattern = values.scripts ? "core/**/*.lua" : "core/*/rules/**/*.ts";
const files = [...new Bun.Glob(pattern).scanSync(".")].toSorted();
const judges = await Promise.all(Array.from({ length: availableParallelism() }, startJudge));
let [tried, killed] = [0, 0];
for (const file of files.filter((path) => path.includes(values.only))) await tryFile(file);
process.stdout.write(`in all: ${killed} of ${tried} killed, ${shareOf(killed, tried)}\n`);
for (const judge of judges) await judge.end();

async function tryFile(file: string): Promise<void> {
  const source = await Bun.file(file).text();
  const all = values.scripts ? luaMutantsOf(source) : mutantsOf(file, source);
  if (all.length === 0) return;
  const { tests, tookMs } = await testsOf(file, source);
  if (tests.length === 0) {
    process.stdout.write(`${file}: ${all.length} mutants, no test is near it\n`);
    return;
  }
  const limitMs = Math.max(tookMs, Math.min(MOST_LIMIT_MS, LEAST_LIMIT_MS + SLOWER * tookMs));
  const waiting = drawn(all).values();
  const survivors: Mutant[] = [];
  let count = 0;
  const work = async (judge: Judge) => {
    for (const mutant of waiting) {
      count += 1;
      const { failure } = await judge.ask({ file, source: mutant.source, tests }, limitMs);
      if (failure === null) survivors.push(mutant);
      if (values.verbose) process.stdout.write(`  ${mutant.line}: ${failure ?? "survived"}\n`);
    }
  };
  await Promise.all(judges.map(work));
  tried += count;
  killed += count - survivors.length;
  if (values.record) {
    await recordMutants(file, { tried: count, survivors }, part === 1 ? "new" : "more");
  }
  const share = shareOf(count - survivors.length, count);
  process.stdout.write(`${file}: ${count - survivors.length} of ${count} killed, ${share}\n`);
  for (const { line, before, after } of survivors.toSorted((one, two) => one.line - two.line)) {
    const short = before.replace(/\s+/g, " ").slice(0, 80);
    process.stdout.write(`  survived at line ${line}: ${short} -> ${after || "nothing"}\n`);
  }
}

/** The quickest first; of unit tests only those that are quick. */
async function testsOf(
  file: string,
  source: string,
): Promise<{ readonly tests: readonly string[]; readonly tookMs: number }> {
  const { near, far, listed } = values.scripts
    ? { near: [], far: [], listed: await testsOfScript(file) }
    : await testsOfRule(file);
  const timed: { readonly test: string; readonly cpuMs: number }[] = [];
  const waiting = [...near, ...far, ...listed].values();
  const fromMs = performance.now();
  const work = async (judge: Judge) => {
    for (const test of waiting) {
      const { failure, cpuMs } = await judge.ask({ file, source, tests: [test] }, BASE_LIMIT_MS);
      if (failure) throw new Error(`${file} is not green to begin with: ${failure}`);
      const most = near.includes(test) ? NEAR_LIMIT_MS : FAR_LIMIT_MS;
      if (listed.includes(test) || cpuMs < most) timed.push({ test, cpuMs });
    }
  };
  await Promise.all(judges.map(work));
  return {
    tests: timed.toSorted((one, other) => one.cpuMs - other.cpuMs).map(({ test }) => test),
    tookMs: performance.now() - fromMs,
  };
}

/** In an order of their own, the same for the same seed. */
function drawn(all: readonly Mutant[]): Mutant[] {
  const order = (mutant: Mutant, at: number) =>
    Bun.hash(`${values.seed} ${at} ${mutant.line} ${mutant.after}`);
  return all
    .map((mutant, at) => ({ mutant, order: order(mutant, at) }))
    .toSorted((one, other) => (one.order < other.order ? -1 : 1))
    .slice(0, most)
    .filter((_, at) => at % parts === part - 1)
    .map(({ mutant }) => mutant);
}

function shareOf(part: number, whole: number): string {
  return whole === 0 ? "none" : `${((100 * part) / whole).toFixed(1)} %`;
}

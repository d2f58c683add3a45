/**
 * A mutator of our own, since Stryker has no runner for Bun's tests: with its command runner it would start the whole suite for
 * every mutant. Here a process loads the tests once and runs them against many mutants (`judge.ts`).
 */
import { availableParallelism } from "node:os";
import { command, numberOption, WrongUsage } from "#core/platform/process/command-line.ts";
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

interface Run {
  readonly judges: readonly Judge[];
  readonly scripts: boolean;
  readonly most: number;
  readonly seed: number;
  readonly part: number;
  readonly parts: number;
  readonly record: boolean;
  readonly verbose: boolean;
  tried: number;
  killed: number;
}

export const tool = command({
  name: "npm run tool -- mutate",
  forms: ["[--only PATH] [--scripts] [--most N] [--seed N] [--part 1/4] [--record] [--verbose]"],
  about: `Changes the rules of core in one small place at a time, and tells which changes no test notices. No file is changed.`,
  options: {
    only: { type: "string", value: "PATH", about: "mutates files with this in their path" },
    scripts: { type: "boolean", about: "mutates the Lua scripts" },
    most: {
      type: "string",
      value: "N",
      about: "mutants of a file, drawn with the seed; all by default",
    },
    seed: { type: "string", value: "N", about: "1 by default" },
    part: {
      type: "string",
      value: "N/M",
      about: "part of the mutants of each file, so that a long run can be cut into pieces",
    },
    record: {
      type: "boolean",
      about:
        "adds what was found to test/mutation/mutants.json, which docs/reliability.md shows;\na first part replaces what it has of a file",
    },
    verbose: { type: "boolean", about: "prints what has noticed each mutant" },
  },
  async run({ values, say }) {
    const { only = "", scripts = false, record = false, verbose = false } = values;
    const [, part, parts] = (/^([1-9]\d*)\/([1-9]\d*)$/.exec(values.part ?? "1/1") ?? []).map(
      Number,
    );
    if (part === undefined || parts === undefined || part > parts) {
      throw new WrongUsage(`--part is a part such as 1/4: ${values.part}`);
    }
    const most = values.most === undefined ? Infinity : numberOption("most", values.most);
    const seed = numberOption("seed", values.seed ?? "1", 0);
    const pattern = scripts ? "core/**/*.lua" : "core/*/rules/**/*.ts";
    const files = [...new Bun.Glob(pattern).scanSync(".")].toSorted();
    const judges = await Promise.all(Array.from({ length: availableParallelism() }, startJudge));
    const run: Run = {
      judges,
      scripts,
      most,
      seed,
      part,
      parts,
      record,
      verbose,
      tried: 0,
      killed: 0,
    };
    for (const file of files.filter((path) => path.includes(only))) await tryFile(run, file);
    say(`in all: ${run.killed} of ${run.tried} killed, ${shareOf(run.killed, run.tried)}`);
    for (const judge of judges) await judge.end();
  },
});

async function tryFile(run: Run, file: string): Promise<void> {
  const source = await Bun.file(file).text();
  const all = run.scripts ? luaMutantsOf(source) : mutantsOf(file, source);
  if (all.length === 0) return;
  const { tests, tookMs } = await testsOf(run, file, source);
  if (tests.length === 0) {
    process.stdout.write(`${file}: ${all.length} mutants, no test is near it\n`);
    return;
  }
  const limitMs = Math.max(tookMs, Math.min(MOST_LIMIT_MS, LEAST_LIMIT_MS + SLOWER * tookMs));
  const waiting = drawn(run, all).values();
  const survivors: Mutant[] = [];
  let count = 0;
  const work = async (judge: Judge) => {
    for (const mutant of waiting) {
      count += 1;
      const { failure } = await judge.ask({ file, source: mutant.source, tests }, limitMs);
      if (failure === null) survivors.push(mutant);
      if (run.verbose) process.stdout.write(`  ${mutant.line}: ${failure ?? "survived"}\n`);
    }
  };
  await Promise.all(run.judges.map(work));
  run.tried += count;
  run.killed += count - survivors.length;
  if (run.record) {
    await recordMutants(file, { tried: count, survivors }, run.part === 1 ? "new" : "more");
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
  { judges, scripts }: Run,
  file: string,
  source: string,
): Promise<{ readonly tests: readonly string[]; readonly tookMs: number }> {
  const { near, far, listed } = scripts
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
function drawn({ seed, most, part, parts }: Run, all: readonly Mutant[]): Mutant[] {
  const order = (mutant: Mutant, at: number) =>
    Bun.hash(`${seed} ${at} ${mutant.line} ${mutant.after}`);
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

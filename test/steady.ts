/** Whether the suite is steady. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { command, numberOption } from "#core/platform/process/command-line.ts";

interface Run {
  readonly isBusy: boolean;
  readonly status: number;
  readonly tests: number;
  readonly seconds: number;
  /** File and name of each. */
  readonly failed: readonly string[];
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
};

async function runOnce(isBusy: boolean, testArgs: readonly string[]): Promise<Run> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-steady-"));
  const report = join(folder, "report.xml");
  const load = isBusy ? startLoad() : [];
  const from = performance.now();
  const args = ["cli/run.mjs", "test", ...testArgs];
  const reporting = ["--reporter=junit", `--reporter-outfile=${report}`];
  const child = spawn("node", [...args, ...reporting], { stdio: ["ignore", 2, 2] });
  const status = await new Promise<number>((resolve) => {
    child.once("exit", (code) => resolve(code ?? 1));
  });
  for (const one of load) one.kill("SIGKILL");
  const seconds = Math.round((performance.now() - from) / 1_000);
  const { tests, failed } = read(await readFile(report, "utf8").catch(() => ""));
  await rm(folder, { recursive: true, force: true });
  return { isBusy, status, seconds, tests, failed };
}

/** One process a core, each as busy as a core can be. */
function startLoad() {
  return Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
  );
}

function read(report: string): Pick<Run, "tests" | "failed"> {
  const tests = Number(/<testsuites [^>]*\btests="(\d+)"/.exec(report)?.[1] ?? 0);
  const cases = report.matchAll(/<testcase ([^>]*[^/])>\s*<(?:failure|error)\b/g);
  const failed = [...cases].map(
    ([, members = ""]) => `${memberOf(members, "file")}: ${memberOf(members, "name")}`,
  );
  return { tests, failed };
}

function memberOf(members: string, name: string): string {
  const text = new RegExp(`\\b${name}="([^"]*)"`).exec(members)?.[1] ?? "";
  return text.replace(/&(amp|lt|gt|quot|apos);/g, (_, entity: string) => ENTITIES[entity] ?? "");
}

/** A run that broke off has no report, or one without a failed test. */
function isGreen({ status, tests, failed }: Run): boolean {
  return status === 0 && tests > 0 && failed.length === 0;
}

function tableOf(all: readonly Run[]): string {
  const rows = all.map((one, at) => {
    const what = isGreen(one) ? "green" : `status ${one.status}`;
    const columns = [
      at + 1,
      one.isBusy ? "busy" : "quiet",
      one.tests,
      one.failed.length,
      one.seconds,
      what,
    ];
    return `| ${columns.join(" | ")} |`;
  });
  const times = new Map<string, number>();
  for (const name of all.flatMap(({ failed }) => failed))
    times.set(name, (times.get(name) ?? 0) + 1);
  const names = [...times].toSorted(([, one], [, other]) => other - one);
  return [
    "| run | machine | tests | failed | seconds | |",
    "|---|---|---|---|---|---|",
    ...rows,
    "",
    ...names.map(([name, count]) => `${count} of ${all.length} runs: ${name}`),
    `${all.filter(isGreen).length} of ${all.length} runs are green`,
  ].join("\n");
}

export const tool = command({
  name: "npm run tool -- steady",
  forms: ["[--runs N] [--busy N] [-- arguments of the test runner]"],
  about: `Runs the tests again and again, and prints what failed. Arguments behind -- go to the test runner, such as test/fault or
--parallel=2.`,
  options: {
    runs: { type: "string", value: "N", about: "10 by default" },
    busy: {
      type: "string",
      value: "N",
      about: "of these, runs beside a load on every core; 5 by default",
    },
  },
  operands: [0, Number.POSITIVE_INFINITY],
  async run({ values, operands, say }) {
    const runs = numberOption("runs", values.runs ?? "10");
    const busy = numberOption("busy", values.busy ?? "5", 0);
    const done: Run[] = [];
    for (let number = 0; number < runs; number += 1) {
      const one = await runOnce(number >= runs - busy, operands);
      done.push(one);
      say(`run ${number + 1} of ${runs}: ${one.failed.length} of ${one.tests} failed`);
    }
    say(tableOf(done));
    return done.every(isGreen) ? 0 : 1;
  },
});

/** The tests that kill processes, inject faults and overload the product, and the page of what they measured. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { command, numberOption } from "#core/platform/process/command-line.ts";
import { readMutants } from "#test/mutation/record.ts";
import type { Measured } from "#test/support/measured.ts";
import { productEnv } from "#test/support/product/product.ts";
import { machine, type Part, pageOf, type Report } from "./page.ts";

/** Parts of the time that a file goes on for; 0 = it takes the time that it takes. */
const FILES: ReadonlyArray<readonly [file: string, share: number]> = [
  ["test/fault/operation/kill-everything.test.ts", 4],
  ["test/fault/redis/kill-redis.test.ts", 2],
  ["test/fault/webhooks/kill-webhooks.test.ts", 0],
  ["test/fault/merchants/kill-import.test.ts", 0],
  ["test/fault/archive/kill-archive.test.ts", 2],
  ["test/fault/archive/kill-archive-roles.test.ts", 1],
  ["test/fault/redis/rough-store.test.ts", 1],
  ["test/fault/redis/disk-full.test.ts", 0],
  ["test/fault/redis/store-unavailable.test.ts", 0],
  ["test/fault/redis/silent-master.test.ts", 0],
  ["test/fault/redis/lose-masters.test.ts", 0],
  ["test/fault/redis/lose-shard.test.ts", 0],
  ["test/fault/redis/slot-migration.test.ts", 0],
  ["test/fault/operation/clock-steps.test.ts", 0.5],
  ["test/fault/redis/bad-disks.test.ts", 0],
  ["test/fault/webhooks/names-fail.test.ts", 0],
  ["test/fault/operation/rolling-upgrade.test.ts", 0],
  ["test/fault/operation/rolling-restarts.test.ts", 0],
  ["test/fault/operation/overload.test.ts", 6],
  ["test/bounds/operation/noisy-neighbour.test.ts", 2],
  ["test/contract/events/ingest-fuzz.test.ts", 2],
  ["test/security/http/bad-input.test.ts", 4],
  ["test/security/http/injection.test.ts", 0.5],
  ["test/bounds/http/linear-regex.test.ts", 0],
  ["test/unit/webhooks/public-address.test.ts", 0],
  ["test/security/http/every-route.test.ts", 0],
  ["test/security/accounts/panel-roles.test.ts", 0],
  ["test/bounds/http/answer-times.test.ts", 0],
  ["test/fault/operation/alarms.test.ts", 0],
  ["test/security/accounts/planted-data.test.ts", 0],
  ["test/contract/shipments/erase-personal-data.test.ts", 0],
  ["test/fault/operation/backup.test.ts", 0],
  ["test/fault/operation/kill-roles.test.ts", 4],
];
/** What the files take that go on for no longer than they need, about. */
const FIXED_MINUTES = 10;
/** Of a run of an hour; of a shorter one the same part. */
const INPUTS = 1_000_000;

interface Run {
  readonly minutes: number;
  readonly previous: string;
  readonly folder: string;
  readonly fromMs: number;
  readonly parts: Part[];
  /** The run on record, whose parts are replaced. */
  readonly record: Report | null;
}

export const tool = command({
  name: "npm run tool -- reliability",
  forms: ["[--minutes N] [--only NAME | --again NAME] [--previous REF]"],
  about: `Runs the tests of npm run test:slow that measure reliability for longer, and writes docs/reliability.md and
test/reliability/reliability.json after each file.`,
  options: {
    minutes: { type: "string", value: "N", about: "in all; 60 by default" },
    only: {
      type: "string",
      value: "NAME",
      about: "runs files with this in their path; prints the page, and writes nothing",
    },
    again: {
      type: "string",
      value: "NAME",
      about: "runs files with this in their path; they take their place in the run on record",
    },
    previous: {
      type: "string",
      value: "REF",
      about:
        "the version that the rolling upgrade comes from; by default the last tag before this commit",
    },
  },
  async run({ values: { minutes: asked = "60", only = "", again = "", previous = "" } }) {
    const most = numberOption("minutes", asked, 0);
    const record: Report | null =
      again === "" ? null : await Bun.file("test/reliability/reliability.json").json();
    const minutes = record?.minutesAsked ?? most;
    const folder = await mkdtemp(join(tmpdir(), "waybill-reliability-"));
    const run: Run = { minutes, previous, folder, fromMs: Date.now(), parts: [], record };
    const shares = FILES.reduce((sum, [, share]) => sum + share, 0);
    for (const [file, share] of FILES.filter(([path]) => path.includes(again || only))) {
      const own = (Math.max(0, minutes - FIXED_MINUTES) * share) / shares;
      run.parts.push(await runFile(run, file, own));
      if (only === "") await writeReport(reportOf(run));
    }
    await rm(folder, { recursive: true, force: true });
    if (only !== "") process.stdout.write(pageOf(reportOf(run), await readMutants()));
    return run.parts.every(({ passed }) => passed) ? 0 : 1;
  },
});

function reportOf(run: Run): Report {
  if (run.record) return withParts(run.record, run);
  const done = new Set(run.parts.map(({ file }) => file));
  return {
    startedAt: new Date(run.fromMs).toISOString(),
    minutesAsked: run.minutes,
    minutesTaken: Math.round((Date.now() - run.fromMs) / 6_000) / 10,
    machine: machine(),
    parts: run.parts,
    notRun: FILES.map(([file]) => file).filter((file) => !done.has(file)),
  };
}

/** In the order of the files; a file that is newer than the run on record is added to it. */
function withParts(before: Report, { fromMs, parts }: Run): Report {
  const againAt = new Date(fromMs).toISOString();
  const own = new Map(parts.map((part) => [part.file, { ...part, againAt }]));
  const known = new Map(before.parts.map((part) => [part.file, part]));
  return {
    ...before,
    parts: FILES.flatMap(([file]) => own.get(file) ?? known.get(file) ?? []),
    notRun: before.notRun.filter((file) => !own.has(file)),
  };
}

/** A run that is broken off leaves what it has measured. */
async function writeReport(report: Report): Promise<void> {
  await writeFile("test/reliability/reliability.json", `${JSON.stringify(report, null, 2)}\n`);
  await writeFile("docs/reliability.md", pageOf(report, await readMutants()));
}

async function runFile(run: Run, file: string, ownMinutes: number): Promise<Part> {
  const { minutes, previous, folder } = run;
  const rows = join(folder, "rows");
  await rm(rows, { force: true });
  const env = {
    ...productEnv(),
    FAULT_MINUTES: ownMinutes.toFixed(2),
    RELIABILITY_FILE: rows,
    RELIABILITY_INPUTS: String(Math.round((INPUTS * Math.min(60, minutes)) / 60)),
    ...(previous && { PREVIOUS_VERSION: previous }),
  };
  process.stdout.write(`${file}: at least ${ownMinutes.toFixed(1)} minutes\n`);
  const child = spawn("bun", ["test", "--timeout=120000", file], { env, stdio: "inherit" });
  const status = await new Promise<number>((resolve) => {
    child.once("exit", (code) => resolve(code ?? 1));
  });
  const text = await readFile(rows, "utf8").catch(() => "");
  const measured = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Measured => JSON.parse(line));
  const command = `npm run tool -- reliability --minutes ${minutes} --only ${file}`;
  return { file, command, passed: status === 0, measured };
}

/** The program `waybill`: what all of its commands have in common, whatever they do. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { COMMANDS } from "#cli/commands.ts";
import { VERSION } from "#core/platform/process/version.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { TOOLS } from "#tools/tools.ts";

/** What the help of a command must name. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  start: ["--quiet", "--reset-demo"],
  setup: ["FILE", "--schema", "--json"],
  backup: ["DIR", "--json"],
  restore: ["DIR", "--json"],
  archive: ["--status", "--bring-back CHANNEL", "--let-go CHANNEL", "--json"],
  sql: ["--format", "--out FILE"],
  doctor: ["store", "courier", "--json"],
  reencrypt: ["--json", "ENCRYPTION_KEY_PREVIOUS"],
  listen: ["--forward URL", "--endpoint ID", "--channel CODE", "--panel", "--secret", "--since"],
  slots: ["--masters N", "--apply", "--json"],
  verify: ["--share PERCENT", "--json"],
};

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-program-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const WRONG_TOOL_ARGUMENTS: readonly (readonly [name: string, ...args: string[]])[] = [
  ["binary"],
  ["env-example", "now"],
  ["fault", "--minutes", "long"],
  ["fuzz", "--cases", "0"],
  ["image-tree"],
  ["mutate", "--part", "5/4"],
  ["release"],
  ["reliability", "--minutes"],
  ["screenshots"],
  ["steady", "--runs", "0"],
];

const NO_STORE = { REDIS_URL: "redis://127.0.0.1:1" };
const BETWEEN = "--- next ---\n";
/** Runs commands one after the other in one process: loading their code is what takes its time. */
const SCRIPT = `
import { COMMANDS } from "#cli/commands.ts";
const statuses = [];
for (const [name, ...args] of JSON.parse(process.argv[1])) {
  statuses.push(await (await COMMANDS[name].load())(args, process.env));
  process.stdout.write(${JSON.stringify(BETWEEN)});
  process.stderr.write(${JSON.stringify(BETWEEN)});
}
process.stdout.write(JSON.stringify(statuses));`;

/** Each command with what it printed. Nothing that it may write to exists before, or afterwards. */
async function runAll(commands: readonly (readonly string[])[]) {
  const env = { DATA_DIR: join(folder, "data"), REDIS_URL: NO_STORE.REDIS_URL };
  const program = [process.execPath, "-e", SCRIPT, JSON.stringify(commands)];
  const all = await outcomeOf(startCommand(program, env));
  const outputs = all.output.split(BETWEEN);
  const errors = all.errors.split(BETWEEN);
  const statuses: unknown[] = JSON.parse(outputs[commands.length] ?? "[]");
  expect(await readdir(folder)).toEqual([]);
  return commands.map((words, at) => ({
    words,
    status: statuses[at],
    output: outputs[at] ?? "",
    errors: errors[at] ?? "",
  }));
}

const waybill = (...args: readonly string[]) =>
  outcomeOf(startCommand(["bun", "cli/main.ts", ...args], NO_STORE));

test("--help lists every command, and --version is that of package.json and /healthz", async () => {
  const { output, status } = await waybill("--help");
  expect(status).toBe(0);
  for (const name of Object.keys(OPTIONS)) expect(output).toMatch(new RegExp(`^ {2}${name} `, "m"));
  expect(Object.keys(OPTIONS)).toEqual(Object.keys(COMMANDS));
  const { version } = await Bun.file("package.json").json();
  expect(VERSION).toBe(version);
  expect(await waybill("--version")).toEqual({ output: `${version}\n`, errors: "", status: 0 });
});

test("a missing command and one that does not exist are status 2, with the usage", async () => {
  for (const args of [[], ["fly"], ["toString", "--help"]]) {
    const { output, errors, status } = await waybill(...args);
    expect([args, status, output]).toEqual([args, 2, ""]);
    expect(errors).toContain("usage: waybill <command>");
  }
});

test("every command answers --help with its options and status 0", async () => {
  const names = Object.keys(OPTIONS);
  for (const { words, status, output, errors } of await runAll(
    names.map((name) => [name, "--help"]),
  )) {
    const [name = ""] = words;
    expect([name, status, errors]).toEqual([name, 0, ""]);
    expect(output).toStartWith(`usage: waybill ${name}`);
    for (const option of OPTIONS[name] ?? []) expect(output).toContain(option);
  }
});

test("wrong arguments of any kind are status 2 with the usage, before anything is read or written", async () => {
  const wrong = [
    ...Object.keys(OPTIONS).map((name) => [name, "--loud"]),
    ["setup"],
    ["setup", "one.json", "two.json"],
    ["setup", "one.json", "--schema"],
    ["backup"],
    ["restore", "one", "two"],
    ["archive"],
    ["archive", "--status", "--let-go", "acme-it"],
    ["archive", "--bring-back"],
    ["sql", "SELECT 1", "--format", "xml"],
    ["sql", "--out", "rows.csv"],
    ["doctor", "nobody"],
    ["doctor", "courier", "--url", "nowhere"],
    ["reencrypt", "now"],
    ["listen"],
    ["listen", "--forward", "http://localhost:3000/", "--since", "yesterday"],
    ["slots", "--masters", "0"],
    ["slots", "--apply"],
    ["verify", "--share", "0%"],
    ["verify", "--share", "half"],
  ];
  for (const { words, status, output, errors } of await runAll(wrong)) {
    expect([words, status, output]).toEqual([words, 2, ""]);
    expect(errors).toContain(`usage: waybill ${words[0]}`);
  }
});

const TOOL_SCRIPT = `
const statuses = [];
for (const [file, ...args] of JSON.parse(process.argv[1])) {
  statuses.push(await (await import(file)).tool(args, process.env));
  process.stdout.write(${JSON.stringify(BETWEEN)});
  process.stderr.write(${JSON.stringify(BETWEEN)});
}
process.stdout.write(JSON.stringify(statuses));`;

describe("the tools of maintainers", () => {
  const tool = (...args: string[]) =>
    outcomeOf(startCommand(["bun", "tools/main.ts", ...args], {}));

  test("are listed by --help, and one that is missing or does not exist is status 2", async () => {
    const { output, status } = await tool("--help");
    expect(status).toBe(0);
    for (const name of Object.keys(TOOLS)) expect(output).toMatch(new RegExp(`^ {2}${name} `, "m"));
    for (const args of [[], ["fly"]]) expect((await tool(...args)).status).toBe(2);
  });

  test("answer --help with status 0, and wrong arguments with status 2 and the usage, before anything is done", async () => {
    const entries = Object.entries(TOOLS).map(([name, [file]]) => [name, resolve(file)] as const);
    const calls = [
      ...entries.flatMap(([, file]) => [
        [file, "--help"],
        [file, "--loud"],
      ]),
      ...WRONG_TOOL_ARGUMENTS.map(([name, ...args]) => [resolve(TOOLS[name]?.[0] ?? ""), ...args]),
    ];
    const all = await outcomeOf(
      startCommand([process.execPath, "-e", TOOL_SCRIPT, JSON.stringify(calls)], {}),
    );
    const [outputs, errors] = [all.output.split(BETWEEN), all.errors.split(BETWEEN)];
    const statuses: number[] = JSON.parse(outputs.at(-1) ?? "[]");
    for (const [at, [name]] of entries.entries()) {
      const usage = `usage: npm run tool -- ${name}`;
      expect([name, statuses[2 * at], statuses[2 * at + 1]]).toEqual([name, 0, 2]);
      expect(outputs[2 * at]).toStartWith(usage);
      expect(errors[2 * at + 1]).toContain(usage);
    }
    const wrong = statuses.slice(2 * entries.length);
    expect(wrong).toEqual(WRONG_TOOL_ARGUMENTS.map(() => 2));
  });
});

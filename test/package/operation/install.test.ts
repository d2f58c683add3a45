/** What `cli/run.mjs` installs, with npm itself, in a small product whose packages are files. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, exists, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";

const INSTALLING = "waybill: installing the npm packages";

let root: string;

const isThere = (path: string) => exists(join(root, "node_modules", path));

async function pack(name: string, version: string): Promise<void> {
  const folder = join(root, "package");
  await mkdir(folder);
  const manifest = { name, version, bin: { [name]: "program.sh" } };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  const program = `#!/bin/sh\nexec "${process.execPath}" "$@"\n`;
  await writeFile(join(folder, "program.sh"), program, { mode: 0o755 });
  const made = ["tar", "-czf", `${name}-${version}.tgz`, "package"];
  expect(await outcomeOf(startCommand(made, {}, { cwd: root }))).toMatchObject({ status: 0 });
  await rm(folder, { recursive: true });
}

/** As `npm install` locks them: Bun is shipped, the tool is for development. */
async function lock(bunVersion: string, toolVersion: string): Promise<void> {
  const bun = `file:bun-${bunVersion}.tgz`;
  const tool = `file:tool-${toolVersion}.tgz`;
  const bin = { waybill: "cli/run.mjs" };
  const manifest = { name: "small", bin, dependencies: { bun }, devDependencies: { tool } };
  const packages = {
    "": manifest,
    "node_modules/bun": { version: bunVersion, resolved: bun, bin: { bun: "program.sh" } },
    "node_modules/tool": {
      version: toolVersion,
      resolved: tool,
      dev: true,
      bin: { tool: "program.sh" },
    },
  };
  await writeFile(join(root, "package.json"), JSON.stringify(manifest));
  const text = JSON.stringify({ name: "small", lockfileVersion: 3, requires: true, packages });
  await writeFile(join(root, "package-lock.json"), text);
}

async function run(...args: string[]) {
  const done = await outcomeOf(startCommand(["node", "cli/run.mjs", ...args], {}, { cwd: root }));
  expect([args, done.status, done.status === 0 ? "" : done.errors]).toEqual([args, 0, ""]);
  return { ...done, installs: done.errors.includes(INSTALLING) };
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "waybill-install-"));
  await mkdir(join(root, "cli"));
  await cp("cli/run.mjs", join(root, "cli/run.mjs"));
  const program = 'console.log(process.argv.slice(2).join(" "));\n';
  await writeFile(join(root, "cli/main.ts"), program);
  const testFile = 'import { test } from "bun:test";\ntest("runs", () => {});\n';
  await writeFile(join(root, "small.test.ts"), testFile);
  await pack("bun", "1.0.0");
  await pack("bun", "1.0.1");
  await pack("tool", "1.0.0");
  await lock("1.0.0", "1.0.0");
});

afterAll(() => rm(root, { recursive: true, force: true }));

test("a start installs what is shipped, once; tests add the rest and keep what is there", async () => {
  expect(await run("start")).toMatchObject({ output: "start\n", installs: true });
  expect([await isThere("bun"), await isThere("tool")]).toEqual([true, false]);
  expect((await run("start")).installs).toBe(false);

  await writeFile(join(root, "node_modules/bun/kept"), "");
  expect((await run("test", "./small.test.ts")).installs).toBe(true);
  expect([await isThere("bun/kept"), await isThere("tool")]).toEqual([true, true]);
  expect((await run("test", "./small.test.ts")).installs).toBe(false);
}, 300_000);

test("npx waybill runs the program in the clone, with its arguments", async () => {
  const command = ["npx", "--offline", "waybill", "doctor", "--json"];
  const done = await outcomeOf(startCommand(command, {}, { cwd: root }));
  expect([done.output, done.status]).toEqual(["doctor --json\n", 0]);
}, 300_000);

test("after an upgrade a start asks for shipped packages alone, and takes nothing from a contributor", async () => {
  await lock("1.0.0", "2.0.0");
  expect((await run("start")).installs).toBe(false);
  await lock("1.0.1", "1.0.0");
  expect((await run("start")).installs).toBe(true);
  expect([await isThere("bun/kept"), await isThere("tool")]).toEqual([false, true]);
}, 300_000);

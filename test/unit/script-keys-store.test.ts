import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { CALLED } from "#test/support/script-names.ts";

const SCRIPTS = join(import.meta.dir, "../../core/redis/scripts");

const sourceOf = (path: string) => Bun.file(join(SCRIPTS, path)).text();

async function sources(): Promise<Map<string, string>> {
  const parts = await readdir(join(SCRIPTS, "parts"));
  const paths = [...CALLED.map((name) => `${name}.lua`), ...parts.map((name) => `parts/${name}`)];
  return new Map(
    await Promise.all(paths.map(async (path) => [path, await sourceOf(path)] as const)),
  );
}

/** What a command is given as its key. */
const KEY = /call\('(?!TIME')[A-Z]+',\s*(?:'(?:GROUPS|DELCONSUMER)',\s*)?([^,)]+)/g;

test("no script of the store builds a key: it takes them from KEYS", async () => {
  const built: string[] = [];
  for (const [path, source] of await sources()) {
    const code = source.replace(/^--.*$/gm, "");
    // A key built beside the command, or from a hash tag or the start of a name.
    for (const [, key = ""] of code.matchAll(KEY)) {
      if (/\.\.|ARGV/.test(key)) built.push(`${path}: ${key}`);
    }
    if (/['"]:[a-z]+:?['"]\s*\.\.|\.\.\s*['"]:[a-z]/.test(code))
      built.push(`${path}: a name in parts`);
  }
  expect(built).toEqual([]);
});

test("the header of every script documents its keys and its reply", async () => {
  const silent: string[] = [];
  for (const [path, source] of await sources()) {
    if (path.startsWith("parts/")) continue;
    if (!/^-- KEYS/m.test(source) || !/^-- Reply: /m.test(source)) silent.push(path);
    for (const [, number = ""] of source.matchAll(/\bARGV\[(\d+)\]/g)) {
      if (!source.includes(`-- ARGV[`) && !source.includes("-- ARGV "))
        silent.push(`${path} ${number}`);
    }
  }
  expect(silent).toEqual([]);
});

test("no script of the store is longer than 120 lines", async () => {
  const long = [...(await sources())].filter(
    ([, source]) => source.trimEnd().split("\n").length > 120,
  );
  expect(long.map(([path]) => path)).toEqual([]);
});

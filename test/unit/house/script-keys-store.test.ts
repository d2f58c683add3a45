import { expect, test } from "bun:test";
import { PART_FILES, SCRIPT_FILES, scriptName } from "#test/support/scripts/script-files.ts";
import { CALLED } from "#test/support/scripts/script-names.ts";

const WATCHED = [
  ...SCRIPT_FILES.filter((path) => CALLED.includes(scriptName(path))),
  ...PART_FILES,
];

async function sourcesOf(paths: readonly string[]): Promise<Map<string, string>> {
  return new Map(
    await Promise.all(paths.map(async (path) => [path, await Bun.file(path).text()] as const)),
  );
}

/** What a command is given as its key. */
const KEY = /call\('(?!TIME')[A-Z]+',\s*(?:'(?:GROUPS|DELCONSUMER)',\s*)?([^,)]+)/g;

test("no script of the store builds a key: it takes them from KEYS", async () => {
  const built: string[] = [];
  for (const [path, source] of await sourcesOf(WATCHED)) {
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
  for (const [path, source] of await sourcesOf(SCRIPT_FILES)) {
    if (!/^-- KEYS/m.test(source) || !/^-- Reply: /m.test(source)) silent.push(path);
    for (const [, number = ""] of source.matchAll(/\bARGV\[(\d+)\]/g)) {
      if (!source.includes(`-- ARGV[`) && !source.includes("-- ARGV "))
        silent.push(`${path} ${number}`);
    }
  }
  expect(silent).toEqual([]);
});

test("no script of the store is longer than 120 lines", async () => {
  const long = [...(await sourcesOf([...SCRIPT_FILES, ...PART_FILES]))].filter(
    ([, source]) => source.trimEnd().split("\n").length > 120,
  );
  expect(long.map(([path]) => path)).toEqual([]);
});

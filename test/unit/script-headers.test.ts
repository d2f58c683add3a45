import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

const SCRIPTS = join(import.meta.dir, "../../core/redis/scripts");
/** Wraps another script, whose header it takes over (`client.ts`). */
const WRAPPER = "several.lua";

test("every script has a header, so that Redis refuses it before its first write where memory is full or a key has moved", async () => {
  const names = (await readdir(SCRIPTS)).filter(
    (name) => name.endsWith(".lua") && name !== WRAPPER,
  );
  const headers = await Promise.all(
    names.map(async (name) => (await Bun.file(join(SCRIPTS, name)).text()).split("\n", 1)[0]),
  );
  const odd = names.filter(
    (_, at) => !/^#!lua( flags=(no-writes|allow-oom))?$/.test(headers[at] ?? ""),
  );
  expect(odd).toEqual([]);
});

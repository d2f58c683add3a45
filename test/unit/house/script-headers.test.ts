import { expect, test } from "bun:test";
import { SCRIPT_FILES, scriptName } from "#test/support/scripts/script-files.ts";

/** Wraps another script and gives it that script's header (`run-together.ts`). */
const WRAPPER = "run-together";

test("every script has a header, so that Redis refuses it before its first write where memory is full or a key has moved", async () => {
  const files = SCRIPT_FILES.filter((path) => scriptName(path) !== WRAPPER);
  const headers = await Promise.all(
    files.map(async (path) => (await Bun.file(path).text()).split("\n", 1)[0]),
  );
  const odd = files.filter(
    (_, at) => !/^#!lua( flags=(no-writes|allow-oom))?$/.test(headers[at] ?? ""),
  );
  expect(odd).toEqual([]);
});

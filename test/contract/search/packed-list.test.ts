/** What goes to scripts and into fields in packed form comes out whole, short or long. */
import { describe, expect, test } from "bun:test";
import { binary } from "#core/platform/redis/client.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

const EXACT_NUMBERS = `
  local reply = {}
  for at, one in ipairs(cmsgpack.unpack(ARGV[1])) do reply[at] = string.format('%.17g', one) end
  return reply`;

const runtime = forAll(() => openTestRuntime(testSetup()));

describe("a packed list", () => {
  test("gives a script every text and all bytes, also long and empty ones", async () => {
    const items: Array<string | Buffer> = [
      "",
      "id",
      "città ☀ 𝄞",
      Buffer.of(0, 255, 13, 10),
      "x".repeat(70_000),
    ];
    items.push(Buffer.alloc(300_000, 7), "é".repeat(40_000), "last");
    const reply = await binary(runtime.redis).eval("return cmsgpack.unpack(ARGV[1])", {
      arguments: [packList(items)],
    });
    expect(reply as unknown as Buffer[]).toEqual(items.map((one) => Buffer.from(one)));
  });

  test("gives a script every number", async () => {
    const items = [0, 1, -1, 255, 65_536, 0xffffffff, 2 ** 32, Number.MAX_SAFE_INTEGER, -0.5];
    const reply = await runtime.redis.eval(EXACT_NUMBERS, { arguments: [packList(items)] });
    expect((reply as string[]).map(Number)).toEqual(items);
  });

  test("gives a script lists in lists, empty ones too", async () => {
    const items = [["a", 1, []], "b", [["c"], 2]];
    const reply = await runtime.redis.eval("return cjson.encode(cmsgpack.unpack(ARGV[1]))", {
      arguments: [packList(items)],
    });
    // An empty table of Lua is an object to cjson.
    expect(reply).toBe('[["a",1,{}],"b",[["c"],2]]');
  });
});

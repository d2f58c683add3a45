/**
 * A script that is given malformed arguments fails before it has changed anything. Each real call is spoilt in every way
 * below before it is made: where Redis answers with an error the store must be as it was.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { type Redis, run } from "#core/platform/redis/client.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { readAll, writeAll } from "#test/support/data/everything.ts";
import { forAll } from "#test/support/for-all.ts";
import {
  openScriptRuntime,
  type ScriptCall,
  type ScriptName,
  SOURCES,
  scriptNamed,
  useAllScripts,
} from "#test/support/scripts/webhook-scripts.ts";

/** Refusals by script. */
const refused = new Map<ScriptName, number>();
/** Refusals that have left something behind. */
const broken: string[] = [];

const runtime = forAll(() => openScriptRuntime());
beforeAll(async () => {
  const keysOf = () => runtime.redis.keys("{[ek]*");
  await useAllScripts(runtime, (name, call) => spoil(runtime.redis, name, call, keysOf));
}, 300_000);

async function spoil(
  redis: Redis,
  name: ScriptName,
  call: ScriptCall,
  keysOf: () => Promise<string[]>,
): Promise<void> {
  const before = await readAll(redis, await keysOf());
  for (const [how, spoilt] of spoilings(call)) {
    const outcome = await run(redis, scriptNamed(name), spoilt.keys, spoilt.arguments).then(
      () => "done",
      () => "refused",
    );
    const after = await readAll(redis, await keysOf());
    if (outcome === "refused") {
      refused.set(name, (refused.get(name) ?? 0) + 1);
      if (!Bun.deepEquals(before.values, after.values)) broken.push(`${name}: ${how}`);
    }
    if (Bun.deepEquals(before.values, after.values)) continue;
    await writeAll(redis, before, await keysOf());
  }
}

const GARBAGE = ["garbage", ""] as const;

/** Each argument and each item of a packed one replaced or left out, and the first and last key left out. */
function spoilings(call: ScriptCall): [string, ScriptCall][] {
  const { keys, arguments: args } = call;
  const all: [string, ScriptCall][] = [
    ["the last key is missing", { ...call, keys: keys.slice(0, -1) }],
    ["a key too many", { ...call, keys: [...keys, keys.at(-1) ?? ""] }],
    ["an argument too many", { ...call, arguments: [...args, "1"] }],
    ["no argument", { ...call, arguments: [] }],
  ];
  args.forEach((arg, at) => {
    const replaced = (how: string, value: string | Buffer): [string, ScriptCall] => [
      `argument ${at + 1} ${how}`,
      { ...call, arguments: args.with(at, value) },
    ];
    all.push([`argument ${at + 1} is missing`, { ...call, arguments: args.toSpliced(at, 1) }]);
    for (const value of GARBAGE) all.push(replaced(`is "${value}"`, value));
    if (typeof arg === "string") return;
    const items = unpackList(arg);
    all.push(replaced("is cut off", arg.subarray(0, arg.length / 2)));
    all.push(replaced("is a number", Buffer.from([1])));
    items.forEach((_, index) => {
      all.push(replaced(`lacks item ${index}`, packList(items.toSpliced(index, 1))));
      for (const value of ["garbage", 7.5]) {
        all.push(replaced(`item ${index} is ${value}`, packList(items.with(index, value))));
      }
    });
  });
  return all;
}

/** What `packList` has packed: texts. */
function unpackList(packed: Buffer): (string | number)[] {
  const items: string[] = [];
  for (let at = 5; at < packed.length; ) {
    const isLong = packed[at] === 0xdb;
    const from = at + (isLong ? 5 : 3);
    at = from + (isLong ? packed.readUInt32BE(at + 1) : packed.readUInt16BE(at + 1));
    items.push(packed.toString("utf8", from, at));
  }
  return items;
}

describe("malformed arguments", () => {
  test.each(Object.keys(SOURCES) as ScriptName[])("%s.lua refuses them", (name) => {
    expect(refused.get(name) ?? 0).toBeGreaterThan(3);
  });

  test("what is refused has changed nothing", () => {
    expect(broken).toEqual([]);
  });
});

/** Calls of scripts as the store makes them, with what stood under their keys before, so that a test can make them again. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { binary, type Redis } from "#core/platform/redis/client.ts";
import type { ListItem } from "#core/platform/redis/packed-list.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { PART_FILES, SCRIPT_FILES, scriptName } from "#test/support/scripts/script-files.ts";

export interface NamedScript {
  readonly name: string;
  readonly source: string;
}

/** By digest, those included that are made of parts. */
export function scriptsByDigest(): Map<string, NamedScript> {
  const read = (path: string) => readFileSync(path, "utf8");
  const parts = Object.fromEntries(
    [...PART_FILES, ...SCRIPT_FILES].map((path) => [scriptName(path), read(path)]),
  );
  return new Map(
    SCRIPT_FILES.map((path) => {
      const { sha, source } = scriptOfParts(read(path), parts);
      return [sha, { name: scriptName(path), source }];
    }),
  );
}

export interface ScriptCall {
  readonly sha: string;
  readonly keys: string[];
  readonly args: Array<string | Buffer>;
  readonly before: Snapshot;
}

/** By key: its value as Redis dumps it, null where there is none. */
export type Snapshot = ReadonlyMap<string, Buffer | null>;

/** @returns a client that makes the same calls, one after the other, and notes them */
export function recordCalls(redis: Redis): {
  readonly redis: Redis;
  readonly calls: readonly ScriptCall[];
} {
  const calls: ScriptCall[] = [];
  let last: Promise<unknown> = Promise.resolve();
  const recorded = async (sha: string, { keys, arguments: args }: Options, make: Make) => {
    const own = last.then(async () => {
      const before = await snapshot(redis, keys);
      const reply = await make();
      calls.push({ sha, keys, args, before });
      return reply;
    });
    last = own.catch(() => {});
    return own;
  };
  const evalSha = (sha: string, options: Options) =>
    recorded(sha, options, () => redis.evalSha(sha, options));
  // The first call of a script, which the server does not know yet.
  const evaluate = (source: string, options: Options) =>
    recorded(digestOf(source), options, () => redis.eval(source, options));
  const recording = new Proxy(redis, {
    get(target, name) {
      if (name === "evalSha") return evalSha;
      if (name === "eval") return evaluate;
      const member = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
  return { redis: recording, calls };
}

type Make = () => Promise<unknown>;

function digestOf(source: string): string {
  return createHash("sha1").update(source).digest("hex");
}

interface Options {
  readonly keys: string[];
  readonly arguments: Array<string | Buffer>;
}

export async function snapshot(redis: Redis, keys: readonly string[]): Promise<Snapshot> {
  const own = [...new Set(keys)];
  const dumps = await Promise.all(own.map((key) => binary(redis).dump(key)));
  return new Map(own.map((key, at) => [key, dumps[at] as unknown as Buffer | null]));
}

/** By key what stands there, in an order of its own: a dump tells the members of hashes and sets in any. */
export async function contents(redis: Redis, keys: readonly string[]): Promise<object> {
  const own = [...new Set(keys)];
  return Object.fromEntries(
    await Promise.all(own.map(async (key) => [key, await standing(redis, key)])),
  );
}

async function standing(redis: Redis, key: string): Promise<unknown> {
  const bytes = binary(redis);
  const hex = (values: readonly unknown[]) =>
    values.map((value) => (value as Buffer).toString("hex"));
  switch (await redis.type(key)) {
    case "hash":
      return Object.entries(await bytes.hGetAll(key))
        .map(([field, value]) => [field, ...hex([value])])
        .sort();
    case "set":
      return (await redis.sMembers(key)).sort();
    case "zset":
      return redis.zRangeWithScores(key, 0, -1);
    case "none":
      return null;
    default:
      return hex([await bytes.dump(key)]);
  }
}

export async function restore(redis: Redis, state: Snapshot): Promise<void> {
  await Promise.all(
    [...state].map(([key, dump]) =>
      dump ? redis.restore(key, 0, dump, { REPLACE: true }) : redis.del(key),
    ),
  );
}

/** The opposite of `packList`; null when the argument is no list. */
export function unpackList(bytes: string | Buffer): readonly ListItem[] | null {
  if (typeof bytes === "string" || bytes[0] !== LIST_32) return null;
  return readItem(bytes, 0).item as readonly ListItem[];
}

const LIST_32 = 0xdd;

function readItem(bytes: Buffer, at: number): { readonly item: ListItem; readonly next: number } {
  switch (bytes[at]) {
    case 0xce:
      return { item: bytes.readUInt32BE(at + 1), next: at + 5 };
    case 0xcb:
      return { item: bytes.readDoubleBE(at + 1), next: at + 9 };
    case LIST_32: {
      const items: ListItem[] = [];
      let next = at + 5;
      for (let left = bytes.readUInt32BE(at + 1); left > 0; left -= 1) {
        const read = readItem(bytes, next);
        items.push(read.item);
        next = read.next;
      }
      return { item: items, next };
    }
    default: {
      const isShort = bytes[at] === 0xda;
      const from = at + (isShort ? 3 : 5);
      const next = from + (isShort ? bytes.readUInt16BE(at + 1) : bytes.readUInt32BE(at + 1));
      return { item: bytes.subarray(from, next), next };
    }
  }
}

/** A list with one thing wrong in it, on whatever level: an item of another kind, gone, or far too large. */
export function* spoiledLists(list: readonly ListItem[]): Generator<readonly ListItem[]> {
  for (const [at, one] of list.entries()) {
    yield list.with(at, typeof one === "number" ? "x" : 7);
    yield list.toSpliced(at, 1);
    if (typeof one === "number") yield list.with(at, 1e9);
    if (typeof one !== "object" || Buffer.isBuffer(one)) {
      yield list.with(at, []);
    } else {
      yield [...list, "surplus"];
      for (const spoiled of spoiledLists(one as readonly ListItem[])) yield list.with(at, spoiled);
    }
  }
}

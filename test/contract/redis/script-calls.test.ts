/** Calls of scripts as the store makes them: which keys they touch, and what a call leaves behind that cannot be carried out. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createClient } from "redis";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import {
  contents,
  recordCalls,
  restore,
  type ScriptCall,
  scriptsByDigest,
  spoiledLists,
  unpackList,
} from "#test/support/scripts/script-calls.ts";
import { tourOfTheStore } from "#test/support/scripts/store-tour.ts";
import { startTestRedis, type TestServer } from "#test/support/servers/servers.ts";

/** Scripts that write, whose calls the tour makes. */
const WRITING = [
  ...[
    "accept-job",
    "accept-messages",
    "acknowledge",
    "admit",
    "begin-request",
    "claim",
    "commit",
    "courier-rate",
  ],
  ...[
    "create",
    "discard",
    "end-request",
    "expire-parked",
    "finish-chunk",
    "finish-job",
    "forget-counts",
    "note-callback",
    "park",
    "raise-field",
  ],
  ...["record-message", "redrive", "register", "save-orders", "settle-retry", "settle-work"],
  ...["swap-field", "take-event", "take-work", "trim-log", "unpark"],
  ...["compact", "number-rows", "remove", "restore"],
];

const scripts = scriptsByDigest();

/** Where calls are spoiled: the runtime's heartbeats write keys to its own. */
let spare: TestServer & { readonly address: string };
let runtime: TestRuntime;
let calls: readonly ScriptCall[];
/** What a monitor of the server has seen of the tour. */
const seen: string[] = [];

beforeAll(async () => {
  const server = await startTestRedis();
  spare = await startTestRedis();
  runtime = await openTestRuntime(testSetup(), {}, server);
  const monitor = server.address.startsWith("/")
    ? createClient({ socket: { path: server.address, tls: false } })
    : createClient({ url: server.address });
  await monitor.connect();
  await monitor.monitor((line) => seen.push(String(line)));
  const recording = recordCalls(runtime.redis);
  await tourOfTheStore(runtime, recording.redis);
  calls = recording.calls;
  monitor.destroy();
  const loader = await connectRedis(spare.address, runtime.log);
  for (const { source } of scripts.values()) await loader.scriptLoad(source);
  loader.destroy();
}, 300_000);
afterAll(async () => {
  await runtime.end();
  await spare.stop();
});

const nameOf = ({ sha }: { readonly sha: string }) => scripts.get(sha)?.name ?? "run-together";

test("a script touches the keys that its call declares, and no other", () => {
  const undeclared = new Set<string>();
  const called = new Set<string>();
  let declared = new Set<string>();
  let script = "";
  for (const line of seen) {
    const words = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = ""]) => word);
    const command = words[0]?.toUpperCase() ?? "";
    if (!/ lua\] /.test(line)) {
      if (command !== "EVALSHA" && command !== "EVAL") continue;
      declared = new Set(words.slice(3, 3 + Number(words[2])));
      script = nameOf({ sha: words[1] ?? "" });
      called.add(script);
    } else {
      const touched = keysOf(command, words).filter((key) => !declared.has(key));
      for (const key of touched) undeclared.add(`${script}: ${command} ${key}`);
    }
  }
  expect([...undeclared]).toEqual([]);
  const missing = [...WRITING, "read-columns", "read-blocks", "read-hashes"].filter(
    (name) => !called.has(name),
  );
  expect(missing).toEqual([]);
});

function keysOf(command: string, words: readonly string[]): readonly string[] {
  if (command === "TIME") return [];
  if (command === "XINFO" || command === "XGROUP") return words.slice(2, 3);
  return command === "DEL" || command === "UNLINK" ? words.slice(1) : words.slice(1, 2);
}

/** Arguments one by one: cut short, of another kind, and gone; of a list each of its items too. */
function* spoiled({ args }: ScriptCall): Generator<Array<string | Buffer>> {
  yield args.slice(0, -1);
  yield [...args, "surplus"];
  for (const [at, arg] of args.entries()) {
    const others: Array<string | Buffer> = ["", "x", "-1"];
    if (typeof arg === "string") others.push(arg.slice(0, -1), `${arg}x`);
    else others.push(arg.subarray(0, -1));
    for (const other of others) yield args.with(at, other);
    const items = unpackList(arg) ?? [];
    for (const list of spoiledLists(items)) yield args.with(at, packList(list));
  }
}

describe("a call that fails has changed nothing, whatever is wrong with its arguments:", () => {
  for (const name of WRITING) {
    test(name, async () => {
      const redis = await connectRedis(spare.address, runtime.log);
      const own = calls.filter((call) => nameOf(call) === name);
      expect(own.length).toBeGreaterThan(0);
      let refused = 0;
      for (const call of own.slice(-3)) refused += await callSpoiled(redis, call);
      // A trim takes names of groups alone, which may be any text.
      if (name !== "trim-log") expect(refused).toBeGreaterThan(0);
      redis.destroy();
    }, 300_000);
  }
});

/** @returns how many calls were refused */
async function callSpoiled(redis: Redis, call: ScriptCall): Promise<number> {
  let refused = 0;
  // What stands elsewhere may expire.
  await redis.flushAll();
  await restore(redis, call.before);
  const before = await contents(redis, call.keys);
  for (const args of spoiled(call)) {
    await restore(redis, call.before);
    const size = await redis.dbSize();
    const error = await redis.evalSha(call.sha, { keys: call.keys, arguments: args }).then(
      () => null,
      (reason: Error) => reason,
    );
    if (!error) continue;
    refused += 1;
    const reported = `${error.message}: ${args.map((arg) => String(arg).slice(0, 80)).join(" | ")}`;
    expect([reported, await contents(redis, call.keys)]).toEqual([reported, before]);
    expect([reported, await redis.dbSize()]).toEqual([reported, size]);
  }
  return refused;
}

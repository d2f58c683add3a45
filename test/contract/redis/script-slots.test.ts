/** Calls of scripts to a master of a cluster whose slot is on its way to another one. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient } from "redis";
import type { Redis } from "#core/platform/redis/client.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import {
  contents,
  recordCalls,
  restore,
  type ScriptCall,
  scriptsByDigest,
} from "#test/support/scripts/script-calls.ts";
import { tourOfTheStore } from "#test/support/scripts/store-tour.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";

const scripts = scriptsByDigest();
/** As Redis or the client refuse what cannot be done now: none of it is done. */
const REFUSED = /^(ASK|MOVED|TRYAGAIN) /;

interface Master {
  readonly id: string;
  readonly from: number;
  readonly to: number;
  readonly client: Redis;
}

let cluster: TestCluster;
let masters: Master[];
let calls: readonly ScriptCall[];

beforeAll(async () => {
  const runtime = await openTestRuntime(testSetup());
  const recording = recordCalls(runtime.redis);
  await tourOfTheStore(runtime, recording.redis);
  // One server alone takes in a message of one event in one step: on a cluster its keys have no slot in common.
  calls = recording.calls.filter((call) => scripts.has(call.sha) && nameOf(call) !== "take-event");
  await runtime.end();
  cluster = await startTestCluster();
  const [first = ""] = cluster.urls.split(",");
  const asked = await connected(first);
  const slots = (await asked.sendCommand(["CLUSTER", "SLOTS"])) as unknown as SlotRange[];
  masters = await Promise.all(
    slots.map(async ([from, to, [ip, port, id]]) => {
      const client = await connected(`redis://${ip}:${port}`);
      return { from: Number(from), to: Number(to), id: String(id), client };
    }),
  );
  asked.destroy();
}, 300_000);
afterAll(async () => {
  for (const { client } of masters) client.destroy();
  await cluster.stop();
});

type SlotRange = [unknown, unknown, [unknown, unknown, unknown]];

async function connected(url: string): Promise<Redis> {
  const client = createClient({ url });
  client.on("error", () => {});
  await client.connect();
  return client as unknown as Redis;
}

interface Outcome {
  readonly error: string | null;
  readonly before: object;
  readonly after: object;
}

/** Makes a call while its slot moves. @param gone a key that has moved already */
async function callWhileMoving(call: ScriptCall, gone: string | null): Promise<Outcome> {
  const [first] = masters as [Master];
  const [key = ""] = call.keys;
  const slot = Number(await first.client.sendCommand(["CLUSTER", "KEYSLOT", key]));
  const source = masters.find(({ from, to }) => from <= slot && slot <= to) ?? first;
  const target = masters.find((one) => one !== source) ?? first;
  const setSlot = (...state: string[]) =>
    source.client.sendCommand(["CLUSTER", "SETSLOT", String(slot), ...state]);
  await restore(source.client, call.before);
  if (gone !== null) await source.client.del(gone);
  const before = await contents(source.client, call.keys);
  await setSlot("MIGRATING", target.id);
  const { source: text = "" } = scripts.get(call.sha) ?? {};
  const error = await source.client.eval(text, { keys: call.keys, arguments: call.args }).then(
    () => null,
    (reason: Error) => reason.message,
  );
  await setSlot("STABLE");
  const outcome = { error, before, after: await contents(source.client, call.keys) };
  await source.client.del(call.keys);
  return outcome;
}

const nameOf = ({ sha }: ScriptCall) => scripts.get(sha)?.name ?? "";
const standing = ({ before }: ScriptCall) => [...before].filter(([, dump]) => dump !== null);

test("a call of which one key has moved is refused before it changes anything", async () => {
  for (const call of calls) {
    if (call.keys.length === 1) continue;
    for (const [key] of standing(call)) {
      const { error, before, after } = await callWhileMoving(call, key);
      const reported = `${nameOf(call)} without ${key}`;
      expect([reported, REFUSED.test(error ?? "") ? "refused" : error]).toEqual([
        reported,
        "refused",
      ]);
      expect([reported, after]).toEqual([reported, before]);
    }
  }
}, 300_000);

test("a call whose keys are all there yet is carried out to its end, also where it empties some of them", async () => {
  const whole = calls.filter((call) => standing(call).length === call.before.size);
  const done = new Set<string>();
  for (const call of whole) {
    const { error } = await callWhileMoving(call, null);
    expect([nameOf(call), error]).toEqual([nameOf(call), null]);
    done.add(nameOf(call));
  }
  const emptying = [
    "expire-parked",
    "redrive",
    "settle-retry",
    "settle-work",
    "take-work",
    "unpark",
  ];
  expect(["commit", ...emptying].filter((name) => !done.has(name))).toEqual([]);
}, 300_000);

/**
 * A script that meets its slot between two masters does all of its work or none. Before every kind of call each kind of key
 * is moved alone, and all but it; where the call is refused nothing may have changed, and the call that follows succeeds.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { run } from "#core/platform/redis/client.ts";
import { companyTag, webhookKeys } from "#core/platform/redis/keys.ts";
import { partitionCount } from "#core/platform/redis/partitions.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import { type Decision, recordDecisions } from "#core/webhooks/store/deliveries/deliveries.ts";
import { finishDeliveries } from "#core/webhooks/store/deliveries/finish-deliveries.ts";
import { takeLeases } from "#core/webhooks/store/deliveries/leases.ts";
import { type Everything, readAll, writeAll } from "#test/support/data/everything.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";
import { beginHour, leaseTerms } from "#test/support/product/webhooks.ts";
import {
  openScriptRuntime,
  partitionOf,
  type ScriptCall,
  type ScriptName,
  SOURCES,
  scriptNamed,
  useAllScripts,
} from "#test/support/scripts/webhook-scripts.ts";
import { startTestCluster, type TestCluster } from "#test/support/servers/redis-cluster.ts";

/** What a slot that is being moved answers; it is tried again. */
const REFUSAL = /^TRYAGAIN/;

let cluster: TestCluster;
let runtime: TestRuntime;
let tag: string;
/** Calls that were made while a slot was between two masters, by script. */
const met = new Map<ScriptName, { done: number; refused: number }>();
/** What has gone wrong. */
const faults: string[] = [];

beforeAll(async () => {
  cluster = await startTestCluster();
  const store = { address: "/", stop: cluster.stop };
  runtime = await openScriptRuntime({ REDIS_CLUSTER_URLS: cluster.urls }, store);
  tag = companyTag(partitionOf(runtime));
  await beginHour(runtime);
  await addBystanders();
  await useAllScripts(runtime, async (name, call) => {
    // What remembers eventIds belongs to another partition.
    if (met.has(name) || !call.keys[0]?.startsWith(tag)) return;
    const own = keys();
    met.set(name, { done: 0, refused: 0 });
    // All first attempts are under way by then.
    if (name === "finish") await addFirsts();
    for (const key of kinds(await cluster.keysOf(tag), call)) {
      for (const isAlone of [true, false]) await meet(name, call, key, isAlone);
    }
    if (name === "finish")
      await runtime.redis.del([own.firstRing, ...endpointIds().map(own.queue)]);
  });
}, 300_000);

afterAll(() => runtime.end());

const keys = () => webhookKeys(partitionOf(runtime));
const endpointIds = () => [...runtime.live.configuration().endpoints.keys()];

/** So that keys which every call names are there: one that is missing has every call refused. */
async function addBystanders(): Promise<void> {
  const { redis } = runtime;
  const own = keys();
  const far = { score: Number.MAX_SAFE_INTEGER / 4, value: "nobody" };
  await redis.zAdd(own.retryRing, far);
  await redis.zAdd(own.leases, { ...far, value: "nobody nothing 1" });
  await redis.zAdd(own.failing, far);
  await redis.zAdd(own.pauses, far);
  await redis.hSet(own.inFlight, "nobody", 1);
  await redis.sAdd(own.warned, "nobody");
  await redis.sAdd(own.replays, "nobody");
  await redis.hSet(own.attemptCounts, "logged", 0);
  const hashes = [own.alerted, own.lastFailures, own.concurrencies, own.rates];
  for (const hash of hashes) await redis.hSet(hash, "nobody", 0);
  for (const log of [own.attemptLog, own.alerts]) await redis.xAdd(log, "*", { nobody: "1" });
  for (const id of endpointIds()) {
    await redis.zAdd(own.retries(id), far);
    await redis.zAdd(own.failed(id), far);
    await redis.hSet(own.attempts(id, hourOf(runtime.live.now())), "nobody", 0);
  }
}

async function addFirsts(): Promise<void> {
  const own = keys();
  await runtime.redis.zAdd(own.firstRing, { score: 0, value: "nobody" });
  for (const id of endpointIds()) await runtime.redis.rPush(own.queue(id), "nobody");
}

/** One key of every kind that is there, of those that the call names where it names one. */
function kinds(present: readonly string[], call: ScriptCall): string[] {
  const kindOf = (key: string) => key.replace(/^[^}]*\}:(d[^:]*|[^:]+)(:first|:retry)?.*$/, "$1$2");
  const named = new Set(call.keys);
  const sorted = present.toSorted(
    (one, other) => Number(named.has(other)) - Number(named.has(one)),
  );
  return [...Map.groupBy(sorted, kindOf).values()].flatMap(([first]) => first ?? []);
}

async function meet(
  name: ScriptName,
  call: ScriptCall,
  key: string,
  isAlone: boolean,
): Promise<void> {
  const { redis } = runtime;
  const all = await cluster.keysOf(tag);
  const before = await readAll(redis, all);
  const gone = isAlone ? [key] : all.filter((one) => one !== key);
  let refusal: string | null = null;
  await cluster.whileMoving(tag, gone, async () => {
    await run(redis, scriptNamed(name), call.keys, call.arguments).catch((error: Error) => {
      refusal = error.message;
    });
  });
  const present = await cluster.keysOf(tag);
  const after = await readAll(redis, present);
  note(name, `${isAlone ? "" : "all but "}${key}`, refusal, isSame(before, after));
  if (!isSame(before, after)) await writeAll(redis, before, present);
}

function isSame(one: Everything, other: Everything): boolean {
  return Bun.deepEquals(one.values, other.values);
}

function note(name: ScriptName, gone: string, refusal: string | null, isUnchanged: boolean): void {
  const counts = met.get(name);
  if (!counts) return;
  if (refusal === null) counts.done += 1;
  else counts.refused += 1;
  if (refusal === null) return;
  if (!REFUSAL.test(refusal)) faults.push(`${name}, ${gone} moved: ${refusal}`);
  if (!isUnchanged) faults.push(`${name}, ${gone} moved: half of it was done`);
}

test("every webhook script runs into a slot that is being migrated", () => {
  const missing = Object.keys(SOURCES).filter((name) => !met.has(name as ScriptName));
  expect(missing).toEqual(["remember"]);
  // It has one key, which is always somewhere.
  const { refused: never } = met.get("renew") ?? { refused: -1 };
  const others = [...met].filter(([name]) => name !== "renew");
  expect([never, ...others.filter(([, { refused }]) => refused === 0)]).toEqual([0]);
  // Some are done there: all that they name is still where it was, and stays so to their end.
  const done = [...met].filter((one) => one[1].done > 0).map(([name]) => name);
  expect(done).toEqual(expect.arrayContaining(["lease", "finish", "alert", "clear-failing"]));
});

test("a call refused there has changed nothing and can be retried", () => {
  expect(faults).toEqual([]);
});

test("a partition whose slot is being moved holds up no other", async () => {
  const { redis, live } = runtime;
  const own = partitionOf(runtime);
  const other = (own + 1) % partitionCount("k");
  const decisions = [own, other].map((shipmentId): Decision => {
    const text = { key: "fact", courierStatus: "In transito", place: null, status: "IN_TRANSIT" };
    const fact = { ...text, occurredAtMs: 0, receivedAtMs: 0, detail: 0 } as Decision["fact"];
    const verdict = { endpointId: "ep", trigger: "every_event", verdict: "send" } as const;
    const ids = { shipmentId, channelId: 1, eventId: "evt_beside", entryId: "1-0" };
    return { ...ids, fact, verdicts: [verdict] };
  });
  await recordDecisions(redis, decisions, live.now());
  const shares = [own, other].map((partition) => ({
    partition,
    wanted: 10,
    wantedFailing: 10,
    wantedSilent: 0,
  }));
  const limits = { leaseMs: 60_000, perEndpoint: 10, perFailingEndpoint: 10 };
  const terms = leaseTerms({ ...limits, retries: "none" });
  await cluster.whileMoving(tag, [keys().turns, keys().firstRing], async () => {
    const { slots, failures } = await takeLeases(redis, shares, terms, live.now());
    expect(slots.map(({ partition }) => partition)).toEqual([other]);
    expect([...failures.keys()]).toEqual([own]);
    const wait = { state: "waiting", nextAttemptAtMs: 1, reason: null, attempt: null } as const;
    const [slot] = slots;
    if (!slot) throw new Error("nothing was handed out");
    const refused = { of: { ...slot, partition: own }, ...wait };
    const left = await finishDeliveries(redis, [refused, { of: slot, ...wait }], live.now());
    expect([...left.keys()]).toEqual([refused]);
  });
  const again = await takeLeases(redis, shares, terms, live.now());
  expect(again.slots.map(({ partition }) => partition)).toContain(own);
});

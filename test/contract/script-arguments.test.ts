/**
 * A script that is given malformed arguments fails before it has changed anything. Each real call is spoilt in every way
 * below before it is made: where Redis answers with an error the store must be as it was.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { binary, type Redis, run, script } from "#core/redis/client.ts";
import { type Decision, drainLanes, recordDecisions } from "#core/redis/deliveries.ts";
import { clearFailing, raiseAlerts } from "#core/redis/endpoints.ts";
import { rememberEvents } from "#core/redis/event-log.ts";
import type { Finished } from "#core/redis/finish-deliveries.ts";
import { companyPartition, webhookKeys } from "#core/redis/keys.ts";
import { renewLeases } from "#core/redis/leases.ts";
import { packList } from "#core/redis/packed-list.ts";
import { replayDeliveries, runningReplays, startReplay, stepReplay } from "#core/redis/replays.ts";
import alertSource from "#core/redis/scripts/alert.lua" with { type: "text" };
import clearFailingSource from "#core/redis/scripts/clear-failing.lua" with { type: "text" };
import decideSource from "#core/redis/scripts/decide.lua" with { type: "text" };
import drainSource from "#core/redis/scripts/drain.lua" with { type: "text" };
import finishSource from "#core/redis/scripts/finish.lua" with { type: "text" };
import leaseSource from "#core/redis/scripts/lease.lua" with { type: "text" };
import reclaimSource from "#core/redis/scripts/reclaim.lua" with { type: "text" };
import rememberSource from "#core/redis/scripts/remember.lua" with { type: "text" };
import renewSource from "#core/redis/scripts/renew.lua" with { type: "text" };
import replaySource from "#core/redis/scripts/replay.lua" with { type: "text" };
import { seenLayout, seenPlace } from "#core/redis/seen.ts";
import { eventually } from "#test/support/eventually.ts";
import type { TestRuntime } from "#test/support/runtime.ts";
import {
  deliveriesOf,
  endpointOf,
  leaseRound,
  newShipment,
  openWebhookRuntime,
  recordResults,
} from "#test/support/webhooks.ts";

const SOURCES = {
  alert: alertSource,
  "clear-failing": clearFailingSource,
  decide: decideSource,
  drain: drainSource,
  finish: finishSource,
  lease: leaseSource,
  reclaim: reclaimSource,
  remember: rememberSource,
  renew: renewSource,
  replay: replaySource,
};
type Name = keyof typeof SOURCES;

/** Refusals by script. */
const refused = new Map<Name, number>();
/** Refusals that have left something behind. */
const broken: string[] = [];

let runtime: TestRuntime;

interface Call {
  readonly keys: string[];
  readonly arguments: Array<string | Buffer>;
}

beforeAll(async () => {
  const webhooks = ["first", "second"].map((code) => ({ code, url: "https://localhost:1/" }));
  runtime = await openWebhookRuntime(webhooks.map((one) => ({ ...one, trigger: "every_event" })));
  await useAll({ ...runtime, redis: spoiling(runtime.redis) });
}, 120_000);

afterAll(() => runtime.end());

/** The same client, which spoils every call of a script of ours before it makes it. */
function spoiling(redis: Redis): Redis {
  const names = new Map(
    Object.entries(SOURCES).map(([name, source]) => [script(source).sha, name as Name]),
  );
  const evalSha = async (sha: string, call: Call) => {
    const name = names.get(sha);
    if (name) await spoil(redis, name, call);
    return redis.evalSha(sha, call);
  };
  return new Proxy(redis, {
    get(target, member) {
      if (member === "evalSha") return evalSha;
      const value = Reflect.get(target, member);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function spoil(redis: Redis, name: Name, call: Call): Promise<void> {
  const before = await readAll(redis);
  for (const [how, spoilt] of spoilings(call)) {
    const outcome = await run(redis, script(SOURCES[name]), spoilt.keys, spoilt.arguments).then(
      () => "done",
      () => "refused",
    );
    const after = await readAll(redis);
    if (outcome === "refused") {
      refused.set(name, (refused.get(name) ?? 0) + 1);
      if (!Bun.deepEquals(before.values, after.values)) broken.push(`${name}: ${how}`);
    }
    if (Bun.deepEquals(before.values, after.values)) continue;
    await writeAll(redis, before);
  }
}

const GARBAGE = ["garbage", ""] as const;

/** Each argument and each item of a packed one replaced or left out, and the first and last key left out. */
function spoilings(call: Call): [string, Call][] {
  const { keys, arguments: args } = call;
  const all: [string, Call][] = [
    ["the last key is missing", { ...call, keys: keys.slice(0, -1) }],
    ["a key too many", { ...call, keys: [...keys, keys.at(-1) ?? ""] }],
    ["an argument too many", { ...call, arguments: [...args, "1"] }],
    ["no argument", { ...call, arguments: [] }],
  ];
  args.forEach((arg, at) => {
    const replaced = (how: string, value: string | Buffer): [string, Call] => [
      `argument ${at + 1} ${how}`,
      { ...call, arguments: args.with(at, value) },
    ];
    all.push([`argument ${at + 1} is missing`, { ...call, arguments: args.toSpliced(at, 1) }]);
    for (const value of GARBAGE) all.push(replaced(`is "${value}"`, value));
    if (typeof arg === "string") return;
    const items = unpackList(arg);
    all.push(replaced("is cut off", arg.subarray(0, arg.length / 2)));
    all.push(replaced("is a number", Buffer.from([1])));
    items.forEach((_, place) => {
      all.push(replaced(`lacks item ${place}`, packList(items.toSpliced(place, 1))));
      for (const value of ["garbage", 7.5]) {
        all.push(replaced(`item ${place} is ${value}`, packList(items.with(place, value))));
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

/** What stands in every key of the partitions, by key; and what brings it back. */
interface Everything {
  readonly values: ReadonlyMap<string, string>;
  readonly dumps: ReadonlyMap<string, { readonly dump: Buffer; readonly ttlMs: number }>;
}

/** The same content is always the same text, however it is packed. */
const READ_ALL = `local all, read = {}, {
  string = { 'GET' }, list = { 'LRANGE', 0, -1 }, zset = { 'ZRANGE', 0, -1, 'WITHSCORES' },
  set = { 'SMEMBERS' }, hash = { 'HGETALL' }, stream = { 'XRANGE', '-', '+' },
}
for at, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  local found = redis.call(read[kind][1], key, unpack(read[kind], 2))
  if kind == 'hash' then
    local pairs = {}
    for place = 1, #found, 2 do pairs[#pairs + 1] = found[place] .. '=' .. found[place + 1] end
    found = pairs
  end
  if kind == 'hash' or kind == 'set' then table.sort(found) end
  all[at] = cmsgpack.pack(found)
end
return all`;

async function readAll(redis: Redis): Promise<Everything> {
  const keys = (await redis.keys("{[ek]*")).toSorted();
  const bytes = binary(redis);
  const [found, dumps, ttls] = await Promise.all([
    bytes.eval(READ_ALL, { keys }) as unknown as Buffer[],
    Promise.all(keys.map((key) => bytes.dump(key) as unknown as Buffer)),
    Promise.all(keys.map((key) => redis.pTTL(key))),
  ]);
  return {
    values: new Map(keys.map((key, at) => [key, found[at]?.toString("base64") ?? ""])),
    dumps: new Map(
      keys.map((key, at) => [key, { dump: dumps[at] ?? Buffer.of(), ttlMs: ttls[at] ?? 0 }]),
    ),
  };
}

async function writeAll(redis: Redis, { dumps }: Everything): Promise<void> {
  const present = await redis.keys("{[ek]*");
  if (present.length > 0) await redis.del(present);
  const restored = [...dumps].map(([key, { dump, ttlMs }]) =>
    redis.restore(key, Math.max(0, ttlMs), dump),
  );
  await Promise.all(restored);
}

const main = () => endpointOf(runtime, "first");

function partition(): number {
  const { channels } = runtime.live.configuration();
  return companyPartition(channels.get(main().channelId)?.companyId ?? 0);
}

let changes = 0;

/** Two changes for both endpoints. */
async function queue(using: TestRuntime, shipmentId: number): Promise<void> {
  const decisions = [1, 2].map((): Decision => {
    changes += 1;
    const text = { key: `fact-${changes}`, courierStatus: "In transito", place: null };
    const fact = { ...text, occurredAtMs: 0, receivedAtMs: 0, status: "IN_TRANSIT", detail: 0 };
    const ids = ["first", "second"].map((code) => endpointOf(runtime, code).id);
    return {
      ...{ shipmentId, channelId: main().channelId },
      ...{ eventId: `evt_${changes}`, entryId: `${changes}-0`, fact: fact as Decision["fact"] },
      verdicts: ids.map((endpointId) => ({ endpointId, trigger: "every_event", verdict: "send" })),
    };
  });
  await recordDecisions(using.redis, decisions, using.live.now());
}

function lease(using: TestRuntime, leaseMs = 60_000) {
  const share = { partition: partition(), wanted: 10, wantedFailing: 10 };
  const limits = { leaseMs, perEndpoint: 10, perFailingEndpoint: 10, retries: true };
  return leaseRound(using, [share], limits);
}

/** Every script at least once, with more than one thing to do. */
async function useAll(using: TestRuntime): Promise<void> {
  const { redis, live } = using;
  const nowMs = live.now();
  await queue(using, await newShipment(runtime));
  const leased = await lease(using);
  expect(leased).toHaveLength(4);
  await renewLeases(redis, leased, 60_000);
  const sent = { httpStatus: 500, durationMs: 7, error: "http_500", responseSnippet: null };
  const results = leased.map(
    (of, at): Finished => ({
      ...{ of, attempt: { generation: 1, attempt: 1, atMs: nowMs, ...sent } },
      ...(at % 2 === 0
        ? { state: "waiting", nextAttemptAtMs: nowMs, reason: null }
        : { state: "failed", nextAttemptAtMs: null, reason: "gave up" }),
    }),
  );
  await recordResults(using, results);
  const failed = (await deliveriesOf(runtime, main())).filter(({ state }) => state === "failed");
  const others = (await deliveriesOf(runtime, endpointOf(runtime, "second"))).filter(
    ({ state }) => state === "failed",
  );
  const ids = [...failed, ...others].map(({ deliveryId }) => deliveryId);
  expect(await replayDeliveries(redis, ids, nowMs)).toHaveLength(2);

  // What is under way when its lease ends is put back.
  await lease(using, 1);
  await eventually(async () => (await lease(using)).length === 4, "the leases have ended");
  const { leases, failing } = webhookKeys(partition());
  await redis.del(leases);

  await queue(using, await newShipment(runtime));
  await drainLanes(redis, partition(), [main().id], "switched off");
  const window = { endpointId: main().id, fromMs: 0, toMs: nowMs + 1_000, startedAtMs: nowMs };
  await startReplay(redis, partition(), { ...window, mode: "latest_per_shipment" });
  const [replay] = await runningReplays(redis, partition());
  if (!replay) throw new Error("no replay");
  await stepReplay(redis, replay, 50, 0, live.now());

  const [one, other] = await redis.zRangeWithScores(failing, 0, -1);
  if (!one || !other) throw new Error("no endpoint is failing");
  const about = (row: { value: string; score: number }) => {
    return { partition: partition(), endpointId: row.value, sinceMs: row.score };
  };
  const verdicts = [
    { ...about(one), kind: "warning" as const },
    { ...about(other), kind: "disabled" as const },
  ];
  expect(await raiseAlerts(redis, verdicts, nowMs)).toBe(2);
  await clearFailing(redis, live.configuration(), one.value);

  const layout = await seenLayout(redis, nowMs, 1_000);
  const place = seenPlace("GLS_ITA", "event-1");
  await rememberEvents(redis, layout, [place, { ...place, member: "1" }]);
}

describe("malformed arguments", () => {
  test.each(Object.keys(SOURCES) as Name[])("%s.lua refuses them", (name) => {
    expect(refused.get(name) ?? 0).toBeGreaterThan(3);
  });

  test("what is refused has changed nothing", () => {
    expect(broken).toEqual([]);
  });
});

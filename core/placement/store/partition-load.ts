/**
 * What each partition takes: bytes of Redis' memory, estimated from random keys, and scripts run on it, as the processes count them.
 * Redis 7 knows neither by slot. One that has `CLUSTER SLOT-STATS` also tells the CPU time of a slot.
 */
import type { Log } from "#core/platform/process/log.ts";
import { isCluster, mastersOf, placeOf, type Redis } from "#core/platform/redis/client.ts";
import {
  attemptLogs,
  changeLogs,
  eventLogs,
  partitionCallsKey,
  partitionTags,
} from "#core/platform/redis/keys.ts";
import { type ClusterNode, hasSlot, readNodes } from "#core/platform/redis/nodes/cluster-nodes.ts";
import { giveBackCalls, takeCalls } from "#core/platform/redis/partition-calls.ts";
import { perPartitioning } from "#core/platform/redis/partitions.ts";
import { type Missing, orMissing } from "#core/platform/redis/unavailable-shard.ts";
import { limit } from "#core/platform/schema/limit.ts";

export interface PartitionLoad {
  readonly tag: string;
  /** About. */
  readonly bytes: number;
  /** Today and yesterday. */
  readonly calls: number;
  /** Of the slot, since its master started; null = the server does not tell. */
  readonly cpuMicroseconds: number | null;
  /** `host:port`; null = there is one server, or the slot has no master. */
  readonly master: string | null;
}

/** Null where the shard that has the figure is unavailable. */
export interface KnownLoad extends Omit<PartitionLoad, "bytes" | "calls"> {
  readonly bytes: number | null;
  readonly calls: number | null;
}

const DAY_MS = 86_400_000;
/** For the calls of yesterday. */
const CALLS_KEPT_SECONDS = (3 * DAY_MS) / 1_000;
const FLUSH_EVERY_MS = 10_000;

/** Random keys of a master that are measured. */
export const KEYS_SAMPLED = limit(
  4_000,
  "keys of a master that an estimate of its partitions reads",
  "the rest is taken to be like them",
);
/** Commands under way at once. */
const AT_ONCE = 200;
/** A larger key stands for itself and for no others; of the fields of a key so many are measured. */
const LARGE_KEY_BYTES = 1_000_000;
const FIELDS_SAMPLED = "5";

/** Adds what this process has called to the counts of the day, every 10 s. */
export function startCallCounts(redis: Redis, log: Log): () => Promise<void> {
  async function flush(): Promise<void> {
    const taken = takeCalls();
    const own = [...taken].filter(([tag]) => partitionTags().includes(tag));
    if (own.length === 0) return;
    const key = partitionCallsKey(Math.floor(Date.now() / DAY_MS));
    try {
      const pipeline = redis.multi();
      for (const [tag, count] of own) pipeline.hIncrBy(key, tag, count);
      await pipeline.expire(key, CALLS_KEPT_SECONDS).execAsPipeline();
    } catch (error) {
      giveBackCalls(taken);
      log.debug({ reason: (error as Error).message }, "calls of partitions are counted later");
    }
  }
  const timer = setInterval(() => void flush(), FLUSH_EVERY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await flush();
  };
}

/** By day and tag. */
export type Calls = ReadonlyMap<number, ReadonlyMap<string, number>>;

/** @returns calls of all processes: today's and yesterday's */
export async function readCalls(redis: Redis): Promise<Calls> {
  const today = Math.floor(Date.now() / DAY_MS);
  const days = [today - 1, today];
  const counts = await Promise.all(days.map((day) => redis.hGetAll(partitionCallsKey(day))));
  return new Map(
    days.map((day, at) => [
      day,
      new Map(Object.entries(counts[at] ?? {}).map(([tag, count]) => [tag, Number(count)])),
    ]),
  );
}

/** @throws when a master does not answer */
export async function readPartitionLoads(redis: Redis): Promise<PartitionLoad[]> {
  return (await readLoads(redis)).map(({ bytes, calls, ...load }) => {
    if (bytes === null || calls === null)
      throw new Error(`the load of ${load.tag} is unknown: its shard is unavailable`);
    return { ...load, bytes, calls };
  });
}

/** What the masters that answer report. */
export function readKnownLoads(redis: Redis): Promise<KnownLoad[]> {
  return readLoads(redis, new Set());
}

async function readLoads(redis: Redis, missing?: Missing): Promise<KnownLoad[]> {
  const measuring = mastersOf(redis).map((master) =>
    measureMaster(redis, sender(master)).catch(
      orMissing<Measured | null>(redis, missing, placeOf(master), null),
    ),
  );
  const callsKey = partitionCallsKey(Math.floor(Date.now() / DAY_MS));
  const [all, calls, owners] = await Promise.all([
    Promise.all(measuring),
    readCalls(redis).catch(orMissing<Calls | null>(redis, missing, callsKey, null)),
    ownersOf(redis),
  ]);
  const masters = all.filter((one) => one !== null);
  return partitionTags().map((tag) => {
    const owner = owners.get(tag);
    const own = masters.find(({ id }) => id === (owner?.node.id ?? null));
    return {
      tag,
      // A slot that moves is on two masters.
      bytes: own ? Math.round(sumOf(masters, ({ bytes }) => bytes.get(tag))) : null,
      calls: calls && sumOf([...calls.values()], (day) => day.get(tag)),
      cpuMicroseconds: own?.times.get(owner?.slot ?? -1) ?? null,
      master: owner?.node.place ?? null,
    };
  });
}

function sumOf<T>(list: readonly T[], countOf: (one: T) => number | undefined): number {
  return list.reduce((sum, one) => sum + (countOf(one) ?? 0), 0);
}

export type Send = (...command: string[]) => Promise<unknown>;

function sender(client: { readonly sendCommand: (command: string[]) => Promise<unknown> }): Send {
  return (...command) => client.sendCommand(command);
}

interface Owner {
  readonly slot: number;
  readonly node: ClusterNode;
}

/** Which master has each partition; nothing where there is one server. */
async function ownersOf(redis: Redis): Promise<Map<string, Owner>> {
  if (!isCluster(redis)) return new Map();
  const nodes = (await readNodes(redis)).filter(({ isMaster }) => isMaster);
  const owners = [...(await slotsOfTags(redis))].flatMap(([tag, slot]): [string, Owner][] => {
    const node = nodes.find((one) => hasSlot(one, slot));
    return node ? [[tag, { slot, node }]] : [];
  });
  return new Map(owners);
}

/** @throws when no master answers */
export async function slotsOfTags(redis: Redis): Promise<Map<string, number>> {
  const any = mastersOf(redis).find(({ isReady }) => isReady);
  if (!any) throw new Error("no master of the cluster is in reach");
  const slots = await Promise.all(
    partitionTags().map((tag) => any.sendCommand(["CLUSTER", "KEYSLOT", tag])),
  );
  return new Map(partitionTags().map((tag, at) => [tag, Number(slots[at])]));
}

/** Redis 8.2 and Valkey 8 know it. @returns CPU microseconds by slot; nothing where the server does not tell */
async function slotTimes(send: Send): Promise<Map<number, number>> {
  const reply = await send("CLUSTER", "SLOT-STATS", "SLOTSRANGE", "0", "16383").catch(() => []);
  return parseSlotStats(reply);
}

/** Each slot is `[slot, [name, value, …]]`, or a map instead of the inner list. */
export function parseSlotStats(reply: unknown): Map<number, number> {
  const times = new Map<number, number>();
  if (!Array.isArray(reply)) return times;
  for (const [slot, stats] of reply as [unknown, unknown][]) {
    const named = Array.isArray(stats)
      ? Object.fromEntries(chunkPairs(stats))
      : (stats as Record<string, unknown>);
    // Without `cluster-slot-stats-enabled yes` the server counts keys alone.
    const time = named["cpu-usec"];
    if (time !== undefined) times.set(Number(slot), Number(time));
  }
  return times;
}

function chunkPairs(list: readonly unknown[]): [string, unknown][] {
  return Array.from({ length: list.length / 2 }, (_, at) => [
    String(list[2 * at]),
    list[2 * at + 1],
  ]);
}

/** The logs are single keys that may be large: they are measured one by one. */
const logKeys = perPartitioning(() => new Set([...eventLogs(), ...changeLogs(), ...attemptLogs()]));

interface Measured {
  /** Null = one server. */
  readonly id: string | null;
  /** By tag, about. */
  readonly bytes: ReadonlyMap<string, number>;
  /** CPU microseconds by slot. */
  readonly times: ReadonlyMap<number, number>;
}

async function measureMaster(redis: Redis, send: Send): Promise<Measured> {
  const bytes = await measureBytes(send);
  if (!isCluster(redis)) return { id: null, bytes, times: new Map() };
  return { id: String(await send("CLUSTER", "MYID")), bytes, times: await slotTimes(send) };
}

/** @returns by tag, about: what the random keys stand for, raised to what the master says its data takes */
async function measureBytes(send: Send): Promise<Map<string, number>> {
  const keys = Number(await send("DBSIZE"));
  const sampled = await sampleKeys(send, keys);
  const bytes = new Map<string, number>();
  const add = (key: string, size: number) => {
    const tag = tagOf(key);
    bytes.set(tag, (bytes.get(tag) ?? 0) + size);
  };
  const each = sampled.length === 0 ? 0 : keys / sampled.length;
  for (const { key, size } of sampled) {
    if (!logKeys().has(key) && size < LARGE_KEY_BYTES) add(key, size * each);
  }
  const large = new Map(
    sampled.filter(({ size }) => size >= LARGE_KEY_BYTES).map(({ key, size }) => [key, size]),
  );
  const logs = [...logKeys()];
  const sizes = await Promise.all(logs.map((key) => sizeOf(send, key)));
  for (const [at, key] of logs.entries()) large.set(key, sizes[at] ?? 0);
  for (const [key, size] of large) add(key, size);
  const sum = [...bytes.values()].reduce((total, size) => total + size, 0);
  const dataset = Number(
    /used_memory_dataset:(\d+)/.exec(String(await send("INFO", "memory")))?.[1],
  );
  const factor = sum > 0 && dataset > sum ? dataset / sum : 1;
  return new Map([...bytes].map(([tag, size]) => [tag, size * factor]));
}

interface SampledKey {
  readonly key: string;
  readonly size: number;
}

async function sampleKeys(send: Send, keys: number): Promise<SampledKey[]> {
  const sampled: SampledKey[] = [];
  const wanted = Math.min(KEYS_SAMPLED, 2 * keys);
  for (let done = 0; done < wanted; done += AT_ONCE) {
    const length = Math.min(AT_ONCE, wanted - done);
    const names = await Promise.all(Array.from({ length }, () => send("RANDOMKEY")));
    const found = names.filter((name) => name !== null).map(String);
    const sizes = await Promise.all(found.map((key) => sizeOf(send, key)));
    sampled.push(...found.map((key, at) => ({ key, size: sizes[at] ?? 0 })));
  }
  return sampled;
}

/** 0 for a key that is not there, or has moved. */
export async function sizeOf(send: Send, key: string): Promise<number> {
  const size = await send("MEMORY", "USAGE", key, "SAMPLES", FIELDS_SAMPLED).catch(() => 0);
  return Number(size ?? 0);
}

function tagOf(key: string): string {
  return key.slice(0, key.indexOf("}") + 1);
}

/**
 * What each partition takes: bytes of Redis' memory, estimated from random keys, and scripts run on it, as the processes count them.
 * Redis 7 knows neither by slot. One that has `CLUSTER SLOT-STATS` also tells the CPU time of a slot.
 */
import type { Log } from "#core/platform/process/log.ts";
import { isCluster, mastersOf, type Redis } from "#core/platform/redis/client.ts";
import {
  ATTEMPT_LOGS,
  CHANGE_LOGS,
  EVENT_LOGS,
  PARTITION_TAGS,
  partitionCallsKey,
} from "#core/platform/redis/keys.ts";
import { hasSlot, readNodes } from "#core/platform/redis/nodes/cluster-nodes.ts";
import { giveBackCalls, takeCalls } from "#core/platform/redis/partition-calls.ts";
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
    const own = [...taken].filter(([tag]) => PARTITION_TAGS.includes(tag));
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

/** @returns calls of all processes by day and tag: today's and yesterday's */
export async function readCalls(redis: Redis): Promise<Map<number, Map<string, number>>> {
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
  const masters = mastersOf(redis).map((master) => sender(master));
  const [bytes, calls, places] = await Promise.all([
    Promise.all(masters.map(measureMaster)),
    readCalls(redis),
    readPlaces(redis),
  ]);
  return PARTITION_TAGS.map((tag) => ({
    tag,
    bytes: Math.round(bytes.reduce((sum, one) => sum + (one.get(tag) ?? 0), 0)),
    calls: [...calls.values()].reduce((sum, day) => sum + (day.get(tag) ?? 0), 0),
    cpuMicroseconds: places.cpu.get(tag) ?? null,
    master: places.masters.get(tag) ?? null,
  }));
}

export type Send = (...command: string[]) => Promise<unknown>;

function sender(client: { readonly sendCommand: (command: string[]) => Promise<unknown> }): Send {
  return (...command) => client.sendCommand(command);
}

/** Where the partitions are, and the CPU time of their slots where the servers tell it. */
async function readPlaces(redis: Redis) {
  const masters = new Map<string, string>();
  const cpu = new Map<string, number>();
  if (!isCluster(redis)) return { masters, cpu };
  const nodes = (await readNodes(redis)).filter(({ isMaster }) => isMaster);
  const slots = await slotsOfTags(redis);
  const times = await Promise.all(mastersOf(redis).map((master) => slotTimes(sender(master))));
  for (const [tag, slot] of slots) {
    const owner = nodes.find((node) => hasSlot(node, slot));
    if (owner) masters.set(tag, owner.place);
    const time = times.find((one) => one.has(slot))?.get(slot);
    if (time !== undefined) cpu.set(tag, time);
  }
  return { masters, cpu };
}

/** @throws when no master answers */
export async function slotsOfTags(redis: Redis): Promise<Map<string, number>> {
  const [any] = mastersOf(redis);
  if (!any) throw new Error("no master of the cluster is in reach");
  const slots = await Promise.all(
    PARTITION_TAGS.map((tag) => any.sendCommand(["CLUSTER", "KEYSLOT", tag])),
  );
  return new Map(PARTITION_TAGS.map((tag, at) => [tag, Number(slots[at])]));
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
const LOGS = new Set([...EVENT_LOGS, ...CHANGE_LOGS, ...ATTEMPT_LOGS]);

/** @returns bytes by tag, about: what the random keys stand for, raised to what the master says its data takes */
async function measureMaster(send: Send): Promise<Map<string, number>> {
  const keys = Number(await send("DBSIZE"));
  const sampled = await sampleKeys(send, keys);
  const bytes = new Map<string, number>();
  const add = (key: string, size: number) => {
    const tag = tagOf(key);
    bytes.set(tag, (bytes.get(tag) ?? 0) + size);
  };
  const each = sampled.length === 0 ? 0 : keys / sampled.length;
  for (const { key, size } of sampled) {
    if (!LOGS.has(key) && size < LARGE_KEY_BYTES) add(key, size * each);
  }
  const large = new Map(
    sampled.filter(({ size }) => size >= LARGE_KEY_BYTES).map(({ key, size }) => [key, size]),
  );
  const logs = [...LOGS];
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

/** Hands entries to the handler of a consumer, whichever shards are unavailable, and tells what failed and what was left. */
import type { Redis } from "#core/platform/redis/client.ts";
import type { Outage } from "#core/platform/redis/outage.ts";
import { probeWrites } from "#core/platform/redis/probe.ts";
import { describeFailure, isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { isShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import type { LogItem } from "./log-entry.ts";
import type { Failure } from "./retries.ts";

/** An error caused by an unavailable store is not counted: the batch is kept. */
export type Handler = (entries: readonly LogItem[]) => Promise<readonly Failure[]>;

export interface HandlingOptions {
  readonly redis: Redis;
  readonly handler: Handler;
  readonly outage: Outage;
  readonly isStopping: () => boolean;
  /** Called whenever a step begins, so that a stuck one is noticed. */
  readonly onStep: () => void;
}

/** Partitions of which something was left undone, and why: they are unavailable themselves. */
export type Left = ReadonlyMap<string, unknown>;

interface Handled {
  readonly failures: readonly Failure[];
  readonly left: Left;
}

const NONE_LEFT: Left = new Map();

/** Where a shard is unavailable, the partitions of a batch are handled apart from each other. */
export async function handle(
  options: HandlingOptions,
  entries: readonly LogItem[],
): Promise<Handled> {
  try {
    return { failures: await handleInSteps(options, entries), left: NONE_LEFT };
  } catch (error) {
    if (!isShardUnavailable(error, options.redis) || options.isStopping()) throw error;
    const groups = [...Map.groupBy(entries, ({ key }) => key)];
    // Of a single partition the whole has been tried just now.
    const handleGroup = groups.length === 1 ? handleOneByOne : handlePartition;
    const parts = await Promise.all(groups.map(([key, own]) => handleGroup(options, key, own)));
    return {
      failures: parts.flatMap(({ failures }) => failures),
      left: new Map(parts.flatMap(({ left }) => [...left])),
    };
  }
}

/** If the handler throws, each entry is tried alone, so that one poisonous entry does not hold up the others. */
async function handleInSteps(
  options: HandlingOptions,
  entries: readonly LogItem[],
): Promise<readonly Failure[]> {
  try {
    return await handleUntilAvailable(options, entries);
  } catch (error) {
    if (isStoreUnavailable(error, options.redis)) throw error;
    const [only] = entries;
    if (entries.length === 1 && only) return [{ entry: only, reason: String(error) }];
    const failures: Failure[] = [];
    for (const entry of entries) failures.push(...(await handleInSteps(options, [entry])));
    return failures;
  }
}

async function handleUntilAvailable(
  { redis, handler, outage, isStopping, onStep }: HandlingOptions,
  entries: readonly LogItem[],
): Promise<readonly Failure[]> {
  for (;;) {
    try {
      return await handler(entries);
    } catch (error) {
      if (!isStoreUnavailable(error, redis) || isStopping() || isShardUnavailable(error, redis))
        throw error;
      await Bun.sleep(outage.failed(error));
      onStep();
    }
  }
}

async function handlePartition(
  options: HandlingOptions,
  key: string,
  entries: readonly LogItem[],
): Promise<Handled> {
  try {
    return { failures: await handleInSteps(options, entries), left: NONE_LEFT };
  } catch (error) {
    if (!isShardUnavailable(error, options.redis)) throw error;
    return handleOneByOne(options, key, entries);
  }
}

/** An unavailable partition is left. In one that is there, what needs another one waits for its own next try and holds up nothing. */
async function handleOneByOne(
  options: HandlingOptions,
  key: string,
  entries: readonly LogItem[],
): Promise<Handled> {
  try {
    await probeWrites(options.redis, [key]);
  } catch (error) {
    return { failures: [], left: new Map([[key, error]]) };
  }
  const failures: Failure[] = [];
  for (const entry of entries) failures.push(...(await handleAlone(options, entry)));
  return { failures, left: NONE_LEFT };
}

async function handleAlone(options: HandlingOptions, entry: LogItem): Promise<readonly Failure[]> {
  options.onStep();
  try {
    return await handleInSteps(options, [entry]);
  } catch (error) {
    if (!isShardUnavailable(error, options.redis)) throw error;
    return [{ entry, reason: describeFailure(error), waits: true }];
  }
}

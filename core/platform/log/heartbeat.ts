/**
 * Heartbeats of the consumers of a group: a key with an expiry for each. Whoever finds one expired claims what its consumer
 * holds. `XAUTOCLAIM` knows idle times only, and would steal from a slow consumer or wait long for a dead one.
 */

import { startTicking } from "#core/platform/process/tick.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { unlessShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import dropSource from "./drop-consumer.lua" with { type: "text" };
import type { LogEntry } from "./log-entry.ts";
import { ENTRIES_LIMIT, entriesOf } from "./log-reader.ts";
import type { GroupName, LogName } from "./streams.ts";

const dropScript = script(dropSource);

const HEARTBEAT_EXPIRY_MS = 3_000;
const HEARTBEAT_EVERY_MS = 1_000;

export interface Heartbeat {
  /** Resolves when the first beat is in the store, or has failed. */
  readonly started: Promise<void>;
  readonly stop: () => Promise<void>;
}

/** @param isStuck while it is true there is no beat: another process may do better */
export function startHeartbeat(
  redis: Redis,
  group: GroupName,
  consumer: string,
  isStuck: () => boolean,
): Heartbeat {
  const key = heartbeatKey(group, consumer);
  const started = beat(redis, key).catch(() => {});
  const beating = startTicking(
    HEARTBEAT_EVERY_MS,
    async () => {
      // Whoever waits for an answer that does not come misses no beat.
      if (!isStuck()) void beat(redis, key).catch(() => {});
    },
    () => {},
  );
  return {
    started,
    async stop() {
      await beating.stop();
      await redis.del(key).catch(() => {});
    },
  };
}

/** Extends an existing key, which Redis allows even when its memory is full. */
async function beat(redis: Redis, key: string): Promise<void> {
  const isThere = await redis.pExpire(key, HEARTBEAT_EXPIRY_MS);
  if (isThere === 0) await redis.set(key, "1", { PX: HEARTBEAT_EXPIRY_MS });
}

/**
 * Processes what dead consumers of the group hold. Their names go once they hold nothing. On a cluster, unavailable partitions are left
 * for later, and so are consumers whose heartbeat is: they may be alive.
 * @param keys partitions of the log to look at
 */
export async function takeOver(
  redis: Redis,
  keys: readonly string[],
  source: LogName,
  group: GroupName,
  consumer: string,
  process: (entries: readonly LogEntry[]) => Promise<void>,
): Promise<void> {
  const dead = (
    await Promise.all(keys.map((key) => deadConsumers(redis, key, group, consumer)))
  ).flat();
  for (const one of dead) {
    await takeOverOne(redis, one, source, group, consumer, process).catch(
      unlessShardUnavailable(redis),
    );
  }
}

async function takeOverOne(
  redis: Redis,
  { key, name }: Dead,
  source: LogName,
  group: GroupName,
  consumer: string,
  process: (entries: readonly LogEntry[]) => Promise<void>,
): Promise<void> {
  for (;;) {
    const range = [key, group, "-", "+", ENTRIES_LIMIT] as const;
    const held = await redis.xPendingRange(...range, { consumer: name });
    if (held.length === 0) break;
    const ids = held.map(({ id }) => String(id));
    const claimed = await redis.xClaim(key, group, consumer, 0, ids);
    await process(entriesOf(source, key, claimed));
  }
  await run(redis, dropScript, [key], [group, name]);
}

interface Dead {
  readonly key: string;
  readonly name: string;
}

async function deadConsumers(
  redis: Redis,
  key: string,
  group: GroupName,
  own: string,
): Promise<Dead[]> {
  const ignore = unlessShardUnavailable(redis);
  const dead: Dead[] = [];
  for (const one of (await redis.xInfoConsumers(key, group).catch(ignore)) ?? []) {
    const name = String(one.name);
    if (name === own) continue;
    const beats = await redis.exists(heartbeatKey(group, name)).catch(ignore);
    if (beats === 0) dead.push({ key, name });
  }
  return dead;
}

function heartbeatKey(group: GroupName, consumer: string): string {
  return `alive:${group}:${consumer}`;
}

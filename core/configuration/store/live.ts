/** What every process must follow at once: the configuration in force and the service clock. */

import type { Redis } from "#core/platform/redis/client.ts";
import { SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import { isShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { type Configuration, loadConfiguration } from "./configuration.ts";
import { rememberEntities } from "./known-entities.ts";

export interface Live {
  /** The configuration as of the last `refresh`. */
  readonly configuration: () => Configuration;
  /** The service clock, UTC milliseconds: the real one, moved forward by `TEST_CLOCK`. */
  readonly now: () => number;
  /**
   * One small read; loads the configuration again only when its version has changed. What an unavailable shard holds of it counts as it was
   * last read, for up to `UNREAD_LIMIT_MS`; changes on other shards take effect.
   */
  readonly refresh: () => Promise<Configuration>;
  /** Where the test clock is on: reads it before the time is used. A production process spends no round trip on it. */
  readonly followTestClock: () => Promise<void>;
}

/** A process that cannot reach a shard which others can reach misses changes: for at most this long, what was revoked still works there. */
export const UNREAD_LIMIT_MS = limit(
  3_600_000,
  "configuration that is counted as it was read last, since its shard is unavailable",
  "503",
);
/** Interval between loads while part of a newer configuration is unavailable. */
const LOAD_AGAIN_MS = 1_000;

/** @param testClock whether the shared offset of `POST /panel/api/clock` counts */
export async function createLive(
  redis: Redis,
  testClock: boolean,
  publicUrl = "",
  keptMs = UNREAD_LIMIT_MS,
): Promise<Live> {
  const entities = rememberEntities(redis);
  let configuration = await loadConfiguration(redis, publicUrl, entities.read);
  /** Why some of it could not be loaded; null = it is whole. */
  let shardFailure: Error | null = null;
  let loadAgainAtMs = 0;
  let offsetMs = 0;
  let currentAtMs = performance.now();
  let loading: Promise<Configuration> | null = null;

  async function reload(): Promise<Configuration> {
    loading ??= load().finally(() => {
      loading = null;
    });
    return loading;
  }

  /** What was taken from memory may be out of date: the version stays as it was, so that all of it is loaded again. */
  async function load(): Promise<Configuration> {
    entities.takeFailure();
    const loaded = await loadConfiguration(redis, publicUrl, entities.read);
    shardFailure = entities.takeFailure();
    loadAgainAtMs = performance.now() + LOAD_AGAIN_MS;
    configuration = shardFailure ? { ...loaded, version: configuration.version } : loaded;
    return configuration;
  }

  async function refresh(): Promise<Configuration> {
    try {
      const [version, offset] = await redis.hmGet(SYSTEM_KEY, ["version", "clockOffsetMs"]);
      if (testClock) offsetMs = Number(offset ?? 0);
      const isOld = Number(version ?? 0) !== configuration.version;
      if (shardFailure ? performance.now() >= loadAgainAtMs : isOld) await reload();
      if (shardFailure) throw shardFailure;
      currentAtMs = performance.now();
    } catch (error) {
      const isKept = performance.now() < currentAtMs + keptMs;
      if (!isKept || !isShardUnavailable(error, redis)) throw error;
    }
    return configuration;
  }

  await refresh();
  return {
    configuration: () => configuration,
    now: () => Date.now() + offsetMs,
    refresh,
    async followTestClock() {
      if (testClock) await refresh();
    },
  };
}

/** Moves the test clock of all processes forward. @returns the offset from the real clock, milliseconds. */
export function advanceClock(redis: Redis, seconds: number): Promise<number> {
  return redis.hIncrBy(SYSTEM_KEY, "clockOffsetMs", seconds * 1000);
}

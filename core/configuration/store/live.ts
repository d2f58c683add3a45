/** What every process must follow at once: the configuration in force and the service clock. */

import type { Redis } from "#core/platform/redis/client.ts";
import { SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import { isPartAway } from "#core/platform/redis/part-away.ts";
import { type Configuration, loadConfiguration } from "./configuration.ts";

export interface Live {
  /** The configuration as of the last `refresh`. */
  readonly configuration: () => Configuration;
  /** The service clock, UTC milliseconds: the real one, moved forward by `TEST_CLOCK`. */
  readonly now: () => number;
  /**
   * One small read; loads the configuration again only when its version has changed. While the part of a cluster is away that holds the
   * version, nobody can change anything, and the configuration as it was last read counts for up to `UNREAD_LIMIT_MS`.
   */
  readonly refresh: () => Promise<Configuration>;
  /** Where the test clock is on: reads it before the time is used. A production process spends no round trip on it. */
  readonly followTestClock: () => Promise<void>;
}

/** A process that alone is cut off from that part misses changes: what is revoked meanwhile works there for so long at most. */
export const UNREAD_LIMIT_MS = 3_600_000;

/** @param testClock whether the shared offset of `POST /panel/api/clock` counts */
export async function createLive(
  redis: Redis,
  testClock: boolean,
  publicUrl = "",
  keptMs = UNREAD_LIMIT_MS,
): Promise<Live> {
  let configuration = await loadConfiguration(redis, publicUrl);
  let offsetMs = 0;
  let currentAtMs = performance.now();
  let loading: Promise<Configuration> | null = null;

  async function reload(): Promise<Configuration> {
    loading ??= loadConfiguration(redis, publicUrl).finally(() => {
      loading = null;
    });
    configuration = await loading;
    return configuration;
  }

  async function refresh(): Promise<Configuration> {
    try {
      const [version, offset] = await redis.hmGet(SYSTEM_KEY, ["version", "clockOffsetMs"]);
      if (testClock) offsetMs = Number(offset ?? 0);
      if (Number(version ?? 0) !== configuration.version) await reload();
      currentAtMs = performance.now();
    } catch (error) {
      const isKept = performance.now() < currentAtMs + keptMs;
      if (!isKept || !isPartAway(error, redis)) throw error;
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

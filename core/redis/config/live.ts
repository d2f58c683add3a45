/** What every process must follow at once: the configuration in force and the service clock. */

import type { Redis } from "#core/redis/client/client.ts";
import { SYSTEM_KEY } from "#core/redis/client/keys.ts";
import { type Configuration, loadConfiguration } from "./configuration.ts";

export interface Live {
  /** The configuration as of the last `refresh`. */
  readonly configuration: () => Configuration;
  /** The service clock, UTC milliseconds: the real one, moved forward by `TEST_CLOCK`. */
  readonly now: () => number;
  /** One small read; loads the configuration again only when its version has changed. */
  readonly refresh: () => Promise<Configuration>;
  /** Where the test clock is on: reads it before the time is used. A production process spends no round trip on it. */
  readonly followTestClock: () => Promise<void>;
}

/** @param testClock whether the shared offset of `POST /panel/api/clock` counts */
export async function createLive(redis: Redis, testClock: boolean, publicUrl = ""): Promise<Live> {
  let configuration = await loadConfiguration(redis, publicUrl);
  let offsetMs = 0;
  let loading: Promise<Configuration> | null = null;

  async function reload(): Promise<Configuration> {
    loading ??= loadConfiguration(redis, publicUrl).finally(() => {
      loading = null;
    });
    configuration = await loading;
    return configuration;
  }

  async function refresh(): Promise<Configuration> {
    const [version, offset] = await redis.hmGet(SYSTEM_KEY, ["version", "clockOffsetMs"]);
    if (testClock) offsetMs = Number(offset ?? 0);
    return Number(version ?? 0) === configuration.version ? configuration : reload();
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

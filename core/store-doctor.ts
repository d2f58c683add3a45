/** Examines the settings of the stores: what they promise, and what Waybill relies on. */
import type { Redis } from "#core/redis/client/client.ts";

export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly found: string;
  readonly wanted: string;
  /** What to do where it is not ok; empty where it is. */
  readonly advice: string;
}

/** Difference between our clock and that of Redis, from which on leases and expiries are off. */
const CLOCK_LIMIT_MS = 2_000;
const LEAST_VERSION = 7;
const UNKNOWN = "not readable";

interface Wanted {
  readonly check: string;
  readonly setting: string;
  readonly wanted: string;
  readonly isOk: (value: string) => boolean;
  readonly advice: string;
}

const SETTINGS: readonly Wanted[] = [
  {
    ...{ check: "Redis keeps what memory has no room for", setting: "maxmemory-policy" },
    ...{ wanted: "noeviction", isOk: (value) => value === "noeviction" },
    advice: "Set maxmemory-policy noeviction: any other policy deletes events that were accepted.",
  },
  {
    ...{ check: "Redis writes an append-only file", setting: "appendonly" },
    ...{ wanted: "yes", isOk: (value) => value === "yes" },
    advice: "Set appendonly yes: without it a crash loses everything since the last snapshot.",
  },
  {
    ...{ check: "Redis syncs each write to the disk", setting: "appendfsync" },
    ...{ wanted: "always", isOk: (value) => value === "always" },
    advice: "Set appendfsync always: everysec may lose two seconds of what was accepted.",
  },
  {
    ...{ check: "Redis keeps small sets of numbers packed", setting: "set-max-intset-entries" },
    ...{ wanted: "512 or more", isOk: (value) => Number(value) >= 512 },
    advice:
      "Set set-max-intset-entries 512: below it the memory of event ids takes eight times more.",
  },
];

/** @param clickhouse whether the analytics answer; null = not to be asked from here */
export async function examineStores(
  redis: Redis,
  clickhouse: (() => Promise<boolean>) | null,
): Promise<Finding[]> {
  const [settings, version, clock, answers] = await Promise.all([
    Promise.all(SETTINGS.map((one) => examineSetting(redis, one))),
    examineVersion(redis),
    examineClock(redis),
    clickhouse?.() ?? null,
  ]);
  const ofRedis = [version, ...settings, clock];
  if (answers === null) return ofRedis;
  return [
    ...ofRedis,
    finding("ClickHouse answers", answers, answers ? "yes" : "no", "yes", {
      advice: "Check CLICKHOUSE_URL and the log of the analytics; changes wait meanwhile.",
    }),
  ];
}

async function examineSetting(
  redis: Redis,
  { check, setting, wanted, isOk, advice }: Wanted,
): Promise<Finding> {
  const found = await redis.configGet(setting).then(
    (values) => values[setting] ?? UNKNOWN,
    () => UNKNOWN,
  );
  const hidden = `The server does not show ${setting}: check it where the server is configured.`;
  const shown = found === UNKNOWN ? hidden : advice;
  return finding(check, isOk(found), `${setting} ${found}`, wanted, { advice: shown });
}

async function examineVersion(redis: Redis): Promise<Finding> {
  const info = await redis.info("server").catch(() => "");
  // Valkey also reports the version of Redis that it is compatible with.
  const versionOf = (server: string) =>
    new RegExp(`^${server}_version:(\\S+)`, "m").exec(info)?.[1];
  const valkey = versionOf("valkey");
  const redisVersion = versionOf("redis") ?? UNKNOWN;
  const isOk = valkey !== undefined || Number.parseInt(redisVersion, 10) >= LEAST_VERSION;
  const version = valkey === undefined ? redisVersion : `Valkey ${valkey}`;
  return finding(
    "Redis is recent enough",
    isOk,
    version,
    `${LEAST_VERSION}.0 or later, or Valkey`,
    {
      advice: "Upgrade Redis: scripts use what 7.0 has brought.",
    },
  );
}

async function examineClock(redis: Redis): Promise<Finding> {
  const beforeMs = Date.now();
  const [seconds = "0", micros = "0"] = (await redis.time().catch(() => [])) as string[];
  const middleMs = (beforeMs + Date.now()) / 2;
  const differenceMs = Math.round(Number(seconds) * 1_000 + Number(micros) / 1_000 - middleMs);
  return finding(
    "The clocks agree",
    Math.abs(differenceMs) <= CLOCK_LIMIT_MS,
    `${differenceMs} ms`,
    `at most ${CLOCK_LIMIT_MS} ms`,
    { advice: "Let NTP set the clocks of this machine and of Redis." },
  );
}

function finding(
  check: string,
  ok: boolean,
  found: string,
  wanted: string,
  { advice }: { readonly advice: string },
): Finding {
  return { check, ok, found, wanted, advice: ok ? "" : advice };
}

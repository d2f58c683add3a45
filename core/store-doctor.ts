/** Examines the settings of the stores: what they promise, and what Waybill relies on. */
import type { Redis } from "#core/redis/client/client.ts";

export interface Finding {
  /** Names the check where its words are in another language. */
  readonly code: string;
  readonly check: string;
  readonly ok: boolean;
  readonly found: string;
  readonly wanted: string;
  /** What to do where it is not ok; empty where it is. */
  readonly advice: string;
}

/** What a ClickHouse tells of itself. */
export interface ClickhouseFacts {
  readonly version: string;
  /** Its clock less ours. */
  readonly aheadMs: number;
  /** `insert_deduplicate`, as our user has it. */
  readonly deduplicates: string;
  /** Tables of the archive that would take a repeated insert a second time. */
  readonly repeatingTables: readonly string[];
  /** The user of the SQL door; null = the engine in the process, which has one user. */
  readonly reader: ReaderFacts | null;
  /** Our tables on a cluster; null = there is none, "hidden" = our user may not see them. */
  readonly replicas: readonly TableReplicas[] | "hidden" | null;
}

export interface ReaderFacts {
  /** `CLICKHOUSE_READ_URL` names it. */
  readonly isSet: boolean;
  /** After "the user …"; null = it can only read. */
  readonly fault: string | null;
}

export interface TableReplicas {
  readonly table: string;
  /** 0 = it is not replicated. */
  readonly total: number;
  /** Connected to Keeper. */
  readonly active: number;
  /** The one that was asked takes no inserts. */
  readonly readonly: boolean;
}

/** Difference between our clock and that of a store, from which on leases and expiries are off. */
const CLOCK_LIMIT_MS = 2_000;
const LEAST_VERSION = 7;
/** Of ClickHouse, year and month. */
const LEAST_CLICKHOUSE = [25, 8] as const;
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
    ...{ check: "Redis never keeps half a write", setting: "aof-load-truncated" },
    ...{ wanted: "no", isOk: (value) => value === "no" },
    advice:
      "Set aof-load-truncated no, and remove what a crash left unfinished before each start (docs/operations.md): otherwise half a write may come back later.",
  },
  {
    ...{ check: "Redis keeps small sets of numbers packed", setting: "set-max-intset-entries" },
    ...{ wanted: "512 or more", isOk: (value) => Number(value) >= 512 },
    advice:
      "Set set-max-intset-entries 512: below it the memory of event ids takes eight times more.",
  },
];

/** @param clickhouse what it tells, null if it does not answer; null = not to be asked from here */
export async function examineStores(
  redis: Redis,
  clickhouse: (() => Promise<ClickhouseFacts | null>) | null,
): Promise<Finding[]> {
  const [settings, version, clock, facts] = await Promise.all([
    Promise.all(SETTINGS.map((one) => examineSetting(redis, one))),
    examineVersion(redis),
    examineClock(redis),
    clickhouse?.() ?? null,
  ]);
  const ofRedis = [version, ...settings, clock];
  return clickhouse === null ? ofRedis : [...ofRedis, ...examineClickhouse(facts)];
}

function examineClickhouse(facts: ClickhouseFacts | null): Finding[] {
  const answers = finding("clickhouse", {
    ...{ check: "ClickHouse answers", ok: facts !== null, found: facts ? "yes" : "no" },
    wanted: "yes",
    advice: "Check CLICKHOUSE_URL and the log of the analytics; changes wait meanwhile.",
  });
  if (facts === null) return [answers];
  const { version, aheadMs, deduplicates, repeatingTables } = facts;
  const [year = 0, month = 0] = version.split(".").map(Number);
  const [leastYear, leastMonth] = LEAST_CLICKHOUSE;
  const repeats = [
    ...(deduplicates === "0" ? ["insert_deduplicate 0"] : []),
    ...repeatingTables.map((table) => `no window: ${table}`),
  ];
  return [
    answers,
    finding("clickhouse-version", {
      ...{ check: "ClickHouse is recent enough", found: version },
      ok: year > leastYear || (year === leastYear && month >= leastMonth),
      wanted: `${LEAST_CLICKHOUSE.join(".")} or later`,
      advice: "Upgrade ClickHouse: Waybill is tested with no older one.",
    }),
    finding("clickhouse-clock", {
      ...{ check: "The clock of ClickHouse agrees", ok: Math.abs(aheadMs) <= CLOCK_LIMIT_MS },
      ...{ found: `${aheadMs} ms`, wanted: `at most ${CLOCK_LIMIT_MS} ms` },
      advice:
        "Let NTP set the clocks of this machine and of ClickHouse: figures of the last days are off.",
    }),
    finding("clickhouse-deduplication", {
      check: "ClickHouse takes a repeated insert into the archive once",
      ...{ ok: repeats.length === 0, found: repeats.join(", ") || "yes", wanted: "yes" },
      advice:
        "Set insert_deduplicate 1 for our user, and non_replicated_deduplication_window 1000 for the tables of the archive: without them a retry shows shipments twice.",
    }),
    ...(facts.reader === null ? [] : [examineReader(facts.reader)]),
    ...(facts.replicas === null ? [] : examineReplicas(facts.replicas)),
  ];
}

function examineReader({ isSet, fault }: ReaderFacts): Finding {
  const right = isSet ? "yes" : "CLICKHOUSE_READ_URL is not set: statements are refused";
  return finding("clickhouse-reader", {
    check: "Statements of the SQL editor can only read",
    ...{ ok: fault === null, found: fault === null ? right : `the user ${fault}`, wanted: "yes" },
    advice:
      "Create the user of analytics/read-only-user.sql and name it in CLICKHOUSE_READ_URL: statements are refused until then.",
  });
}

/** `insert_quorum = 'auto'` wants more than half of a table's replicas. */
function examineReplicas(replicas: readonly TableReplicas[] | "hidden"): Finding[] {
  const isHidden = replicas === "hidden";
  const tables = isHidden ? [] : replicas;
  const alone = tables.filter(({ total }) => total === 0).map(({ table }) => table);
  const short = tables.filter(
    ({ total, active, readonly }) => total > 0 && (readonly || active <= total / 2),
  );
  const states = short.map(
    ({ table, total, active, readonly }) =>
      `${table}: ${active} of ${total}${readonly ? ", read-only" : ""}`,
  );
  return [
    finding("clickhouse-replication", {
      check: "Every table of the ClickHouse cluster has replicas",
      ok: !isHidden && alone.length === 0,
      found: isHidden ? UNKNOWN : alone.map((table) => `none: ${table}`).join(", ") || "yes",
      wanted: "yes",
      advice: isHidden
        ? "Grant our user SELECT on system.replicas."
        : "Make these tables again as replicated ones (ATTACH TABLE … AS REPLICATED): they were made before CLICKHOUSE_CLUSTER was set, and are lost with their server.",
    }),
    finding("clickhouse-quorum", {
      check: "ClickHouse can acknowledge inserts by most replicas",
      ok: !isHidden && short.length === 0,
      found: isHidden ? UNKNOWN : states.join("; ") || "yes",
      wanted: "more than half of each table's replicas",
      advice: isHidden
        ? "Grant our user SELECT on system.replicas."
        : "Bring back the replicas that are away and their connection to Keeper: changes wait in Redis meanwhile.",
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
  const ok = isOk(found);
  return finding(setting, { check, ok, found: `${setting} ${found}`, wanted, advice: shown });
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
  return finding("redis-version", {
    ...{ check: "Redis is recent enough", ok: isOk, found: version },
    wanted: `${LEAST_VERSION}.0 or later, or Valkey`,
    advice: "Upgrade Redis: scripts use what 7.0 has brought.",
  });
}

async function examineClock(redis: Redis): Promise<Finding> {
  const beforeMs = Date.now();
  const [seconds = "0", micros = "0"] = (await redis.time().catch(() => [])) as string[];
  const middleMs = (beforeMs + Date.now()) / 2;
  const differenceMs = Math.round(Number(seconds) * 1_000 + Number(micros) / 1_000 - middleMs);
  return finding("redis-clock", {
    ...{ check: "The clocks agree", ok: Math.abs(differenceMs) <= CLOCK_LIMIT_MS },
    ...{ found: `${differenceMs} ms`, wanted: `at most ${CLOCK_LIMIT_MS} ms` },
    advice: "Let NTP set the clocks of this machine and of Redis.",
  });
}

function finding(code: string, found: Omit<Finding, "code">): Finding {
  return { code, ...found, advice: found.ok ? "" : found.advice };
}

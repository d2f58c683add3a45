/** Examines the settings of the stores: what they promise, and what Waybill relies on. */
import type { Redis } from "#core/platform/redis/client.ts";
import { CLOCK_LIMIT_MS, type Finding, finding } from "./finding.ts";
import { examineRedis } from "./redis-doctor.ts";

export type { Finding } from "./finding.ts";

/** What a ClickHouse tells of itself. */
export interface ClickhouseFacts {
  readonly version: string;
  /** Its clock less ours. */
  readonly aheadMs: number;
  /** `insert_deduplicate`, as our user has it. */
  readonly deduplicates: string;
  /** Tables of the archive that would take a repeated insert a second time. */
  readonly repeatingTables: readonly string[];
  /** The user of SQL access; null = the engine in the process, which has one user. */
  readonly reader: ReaderFacts | null;
  /** Our tables on a cluster; null = there is none, "hidden" = our user may not see them. */
  readonly replicas: readonly TableReplicas[] | "hidden" | null;
  /** Where the replicas of our tables meet, asked of all servers of a cluster; null and "hidden" as above. */
  readonly paths: readonly TablePaths[] | "hidden" | null;
}

export interface TablePaths {
  readonly table: string;
  /** In Keeper. */
  readonly paths: readonly string[];
  /** Servers that answered and have the table. */
  readonly replicas: number;
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

/** Of ClickHouse, year and month. */
export const LEAST_CLICKHOUSE = [25, 8] as const;
const UNKNOWN = "not readable";

/** @param clickhouse what it tells, null if it does not answer; null = not to be asked from here */
export async function examineStores(
  redis: Redis,
  clickhouse: (() => Promise<ClickhouseFacts | null>) | null,
): Promise<Finding[]> {
  const [ofRedis, facts] = await Promise.all([examineRedis(redis), clickhouse?.() ?? null]);
  return clickhouse === null ? ofRedis : [...ofRedis, ...examineClickhouse(facts)];
}

function examineClickhouse(facts: ClickhouseFacts | null): Finding[] {
  const answers = finding("clickhouse", {
    check: "ClickHouse answers",
    ok: facts !== null,
    found: facts ? "yes" : "no",
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
      check: "ClickHouse is recent enough",
      found: version,
      ok: year > leastYear || (year === leastYear && month >= leastMonth),
      wanted: `${LEAST_CLICKHOUSE.join(".")} or later`,
      advice: "Upgrade ClickHouse: Waybill uses settings that older versions lack.",
    }),
    finding("clickhouse-clock", {
      check: "The clock of ClickHouse agrees",
      ok: Math.abs(aheadMs) <= CLOCK_LIMIT_MS,
      found: `${aheadMs} ms`,
      wanted: `at most ${CLOCK_LIMIT_MS} ms`,
      advice:
        "Let NTP set the clocks of this machine and of ClickHouse: figures of the last days are off.",
    }),
    finding("clickhouse-deduplication", {
      check: "ClickHouse takes a repeated insert into the archive once",
      ok: repeats.length === 0,
      found: repeats.join(", ") || "yes",
      wanted: "yes",
      advice:
        "Set insert_deduplicate 1 for our user, and non_replicated_deduplication_window 1000 for the tables of the archive: without them a retry shows shipments twice.",
    }),
    ...(facts.reader === null ? [] : [examineReader(facts.reader)]),
    ...(facts.replicas === null ? [] : examineReplicas(facts.replicas)),
    ...(facts.paths === null ? [] : [examinePaths(facts.paths)]),
  ];
}

/** In the path of a table that an earlier version made: whoever makes it again without this path makes another table. */
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

/** Replicas share their rows by their path in Keeper alone. */
export function examinePaths(tables: readonly TablePaths[] | "hidden"): Finding {
  const isHidden = tables === "hidden";
  const named = isHidden ? [] : tables.filter(({ paths }) => paths.some((path) => UUID.test(path)));
  const byUuid = named.map(({ table }) => table).join(", ");
  const split = isHidden ? [] : tables.filter(({ paths }) => paths.length > 1);
  return finding("clickhouse-paths", {
    check: "The replicas of a table share one path in Keeper",
    ok: !isHidden && split.length === 0,
    found: isHidden
      ? UNKNOWN
      : split.map(({ table, paths }) => `${table}: ${paths.join(", ")}`).join("; ") ||
        (byUuid === "" ? "yes" : `yes; by a UUID, from an earlier version: ${byUuid}`),
    wanted: "one path for each table, on every server",
    advice: isHidden
      ? "Name the cluster as system.clusters does in CLICKHOUSE_CLUSTER, and grant our user REMOTE and SELECT on system.replicas."
      : "Drop the table on the server whose path differs, where it has no rows of its own, and start the analytics: it is made again with the path of the others, and fetches their rows.",
  });
}

function examineReader({ isSet, fault }: ReaderFacts): Finding {
  const right = isSet ? "yes" : "CLICKHOUSE_READ_URL is not set: statements are refused";
  return finding("clickhouse-reader", {
    check: "Statements of the SQL editor can only read",
    ok: fault === null,
    found: fault === null ? right : `the user ${fault}`,
    wanted: "yes",
    advice:
      "Create the user of analytics/sql/read-only-user.sql and name it in CLICKHOUSE_READ_URL: statements are refused until then.",
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

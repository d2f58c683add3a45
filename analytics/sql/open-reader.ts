/**
 * The connection for statements of the data team. On a server it uses the user of `read-only-user.sql`, which is checked
 * before the first statement: a user with more permissions keeps SQL access closed.
 */
import type { ClickHouseClient, ClickHouseSettings } from "@clickhouse/client";
import { clickhouseErrorType, keepClickhouse, openBare } from "#analytics/clickhouse/clickhouse.ts";
import type { ReaderFacts } from "#core/doctor/store-doctor.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Catalogue, Reach } from "./check-statement.ts";

const RESULT_ROWS = limit(1_000_000, "rows of the result of SQL access", "422");
const RESULT_BYTES = limit(256 * 1024 * 1024, "the result of SQL access", "422");
/** Several run side by side, on the machine of the product. */
const MEMORY_BYTES = limit(
  512 * 1024 * 1024,
  "memory of a statement of SQL access in the embedded engine",
  "422",
);
export const SECONDS = limit(30, "time of a statement of SQL access", "422");
const THREADS = 2;

/**
 * The embedded engine has one user, so its connection is limited. A server's user gets the same limits from its profile.
 */
const LIMITS: ClickHouseSettings = {
  output_format_pretty_color: 0,
  max_result_rows: String(RESULT_ROWS),
  max_result_bytes: String(RESULT_BYTES),
  result_overflow_mode: "throw",
  max_memory_usage: String(MEMORY_BYTES),
  max_execution_time: SECONDS,
  max_threads: THREADS,
  output_format_json_quote_64bit_integers: 0,
  do_not_merge_across_partitions_select_final: 1,
  // The tree that is checked is the one that is executed.
  enable_analyzer: 1,
  allow_introspection_functions: 0,
  // No statement can change a setting then.
  readonly: "1",
};

/** Tables and views that may be queried. */
export const ASKABLE: readonly string[] = [
  ...["deliveries", "events", "event_outcomes", "attempts"],
  ...["lanes", "courier_performance", "event_quality", "sla", "on_time", "endpoint_health"],
];

const NO_CATALOGUE: Catalogue = { tables: new Set(), functions: new Set() };

/** What drivers and BI tools ask for by themselves: which tables there are, and with whom they speak. */
const CLIENT_CATALOGUE: Catalogue = {
  tables: new Set([
    ...["system.databases", "system.tables", "system.columns", "system.settings"],
    ...["system.functions", "system.data_type_families"],
  ]),
  functions: new Set([
    ...["version", "timezone", "servertimezone", "currentdatabase", "database", "currentuser"],
  ]),
};

const quoted = (text: string) => `'${text.replaceAll("'", "\\'")}'`;
const NAMES = ASKABLE.map(quoted).join(", ");
const OUR_ROWS = {
  "system.databases": "name = currentDatabase()",
  "system.tables": `database = currentDatabase() AND name IN (${NAMES})`,
  "system.columns": `database = currentDatabase() AND table IN (${NAMES})`,
};

/** The embedded engine's one user sees every table: the catalogue is cut to ours, whichever way it is read. */
const OUR_CATALOGUE: Readonly<Record<string, string>> = {
  additional_table_filters: `{${Object.entries(OUR_ROWS)
    .map(([table, filter]) => `${quoted(table)}: ${quoted(filter)}`)
    .join(", ")}}`,
};

/** Limits that a server's user must have in its profile; being read-only, it cannot raise them. */
const REQUIRED_LIMITS = [
  ...["max_execution_time", "max_memory_usage", "max_result_rows", "max_result_bytes"],
];

/** Statements that the user must be refused. They write and read nothing even if one is allowed. */
const FORBIDDEN: readonly { readonly may: string; readonly query: string }[] = [
  { may: "create tables", query: "CREATE TEMPORARY TABLE waybill_probe (a UInt8) ENGINE = Memory" },
  { may: "read system tables", query: "SELECT 1 FROM system.processes LIMIT 0" },
  {
    may: "use url()",
    query: "SELECT 1 FROM url('http://127.0.0.1:1/', 'LineAsString', 'a String') LIMIT 0",
  },
  {
    may: "use file()",
    query: "SELECT 1 FROM file('waybill-probe', 'LineAsString', 'a String') LIMIT 0",
  },
];

const REMEDY =
  "Create the user of analytics/sql/read-only-user.sql and name it in CLICKHOUSE_READ_URL (docs/analytics.md).";

export interface Reader {
  readonly client: ClickHouseClient;
  readonly reach: Reach;
}

export interface KeptReader {
  /** @throws {Problem} 503 SQL_DOOR_SHUT if there is no read-only user; otherwise any error of connecting */
  readonly reader: () => Promise<Reader>;
  readonly forget: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** @param isForClients of the embedded engine alone: programs that speak ClickHouse's own interface, and read its catalogue */
export function keepReader(config: Config, isForClients: boolean): KeptReader {
  const store = keepClickhouse(() => openReader(config, isForClients));
  const catalogue = isForClients ? CLIENT_CATALOGUE : NO_CATALOGUE;
  const known = new WeakMap<ClickHouseClient, Reach>();
  return {
    async reader() {
      const client = await store.client();
      const reach = known.get(client) ?? (await readReach(client, catalogue));
      known.set(client, reach);
      return { client, reach };
    },
    forget: store.forget,
    close: store.close,
  };
}

/** For the settings doctor: null = the embedded engine, which has one user. */
export async function examineReader(config: Config): Promise<ReaderFacts | null> {
  if (config.clickhouseUrl === null) return null;
  if (config.clickhouseReadUrl === null) return { isSet: false, fault: null };
  const client = await openBare({ ...config, clickhouseUrl: config.clickhouseReadUrl }, {});
  try {
    return { isSet: true, fault: await faultOfUser(client) };
  } catch (error) {
    return { isSet: true, fault: `is not let in (${clickhouseErrorType(error) ?? "no answer"})` };
  } finally {
    await client.close();
  }
}

async function openReader(config: Config, isForClients: boolean): Promise<ClickHouseClient> {
  if (config.clickhouseUrl === null) {
    const settings: ClickHouseSettings = { ...LIMITS, ...(isForClients && OUR_CATALOGUE) };
    return openBare(config, settings);
  }
  if (config.clickhouseReadUrl === null) throw shut("CLICKHOUSE_READ_URL is not set");
  const client = await openBare({ ...config, clickhouseUrl: config.clickhouseReadUrl }, {});
  try {
    const fault = await faultOfUser(client);
    if (fault !== null) throw shut(`the user of CLICKHOUSE_READ_URL ${fault}`);
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** @returns the excess permission, after "the user …"; null = the user is read-only */
async function faultOfUser(client: ClickHouseClient): Promise<string | null> {
  const names = ["readonly", ...REQUIRED_LIMITS].map((name) => `'${name}'`).join(", ");
  const query = `SELECT name, value FROM system.settings WHERE name IN (${names})`;
  const rows = await rowsOf<{ name: string; value: string }>(client, query);
  const settings = new Map(rows.map(({ name, value }) => [name, value]));
  if (settings.get("readonly") !== "1") return "is not read-only (readonly = 1)";
  const unlimited = REQUIRED_LIMITS.find((name) => !(Number(settings.get(name)) > 0));
  if (unlimited !== undefined) return `has no limit ${unlimited}`;
  for (const { may, query: forbidden } of FORBIDDEN) {
    if (!(await isRefused(client, forbidden))) return `may ${may}`;
  }
  return null;
}

async function isRefused(client: ClickHouseClient, query: string): Promise<boolean> {
  try {
    await client.command({ query });
    return false;
  } catch (error) {
    const type = clickhouseErrorType(error);
    if (type === null) throw error;
    return ["ACCESS_DENIED", "READONLY"].includes(type);
  }
}

/** One row, so that the user's limit on rows does not matter. */
async function readReach(client: ClickHouseClient, catalogue: Catalogue): Promise<Reach> {
  const [found] = await rowsOf<{ database: string; functions: string[] }>(
    client,
    `SELECT currentDatabase() AS database, groupArray(lower(name)) AS functions
     FROM system.functions`,
  );
  return {
    database: found?.database ?? "",
    tables: new Set(ASKABLE),
    catalogue,
    engineFunctions: new Set(found?.functions ?? []),
  };
}

async function rowsOf<T>(client: ClickHouseClient, query: string): Promise<T[]> {
  return (await client.query({ query, format: "JSONEachRow" })).json<T>();
}

function shut(reason: string): Problem {
  return new Problem(503, "SQL_DOOR_SHUT", `SQL access stays closed: ${reason}. ${REMEDY}`);
}

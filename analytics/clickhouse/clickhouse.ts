/** The ClickHouse of this installation: a server by URL, or the embedded engine, a child process over a folder of its own. */
import {
  type ClickHouseClient,
  ClickHouseError,
  type ClickHouseSettings,
  createClient,
} from "@clickhouse/client";
import type { Config } from "#core/platform/environment/config.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { useEngine } from "./embedded-engine.ts";
import { engineConnection } from "./engine-connection.ts";
import {
  QUORUM_LIMIT_MS,
  READ_LIMIT_SECONDS,
  REQUEST_LIMIT_MS,
  SCHEMA_STATEMENT_LIMIT_SECONDS,
  SURVEY_LIMIT_SECONDS,
} from "./time-limits.ts";

/** A survey reads whole tables for an operator, who may wait. */
export type Use = "write" | "read" | "survey";

/** A question that needs more than this is a wrong question; writing is bounded by the size of a batch. */
const READ_MEMORY_BYTES = limit(512 * 1024 * 1024, "memory of a benchmark question", "503");
const CONNECTIONS = { write: 1, read: 8, survey: 4 } as const;

/** Half a million rows of the archive that count no more may be named in a statement. */
export const STATEMENT_BYTES = limit(16 * 1024 * 1024, "a search's statement to ClickHouse", "503");

const READ: ClickHouseSettings = {
  max_query_size: String(STATEMENT_BYTES),
  max_memory_usage: String(READ_MEMORY_BYTES),
  max_execution_time: READ_LIMIT_SECONDS,
  output_format_json_quote_64bit_integers: 0,
  // All rows of a shipment lie in one partition; a partition of one part needs no merging then.
  do_not_merge_across_partitions_select_final: 1,
};

const SETTINGS: Readonly<Record<Use, ClickHouseSettings>> = {
  // What does not fit a column is refused, never bent into it.
  write: {
    input_format_null_as_default: 0,
    input_format_skip_unknown_fields: 0,
    async_insert: 0,
    max_query_size: String(STATEMENT_BYTES),
    // Rows go to the partition of their ship date, which merchants may set to any day.
    max_partitions_per_insert_block: "0",
    // Deleted rows no longer count, and each replica deletes them by itself: waiting for all of them (2, the default) would wait for
    // one that is down.
    lightweight_deletes_sync: "1",
  },
  read: READ,
  survey: { ...READ, max_execution_time: SURVEY_LIMIT_SECONDS },
};

/** The client's types know fewer values than the servers. */
const CLUSTER: Readonly<Record<string, string>> = {
  // Rows are acknowledged upstream once inserted: most replicas must have them, or one that is lost takes them along.
  insert_quorum: "auto",
  insert_quorum_timeout: String(QUORUM_LIMIT_MS),
  // A server that is down runs the statements of the schema when it is back. A version that waits for it all the same goes on after a while.
  distributed_ddl_output_mode: "null_status_on_timeout_only_active",
  distributed_ddl_task_timeout: String(SCHEMA_STATEMENT_LIMIT_SECONDS),
  // A database of the engine Replicated gives all replicas of a table one path by itself, and refuses another (2: it ignores it).
  database_replicated_allow_replicated_engine_arguments: "2",
};

/** @returns a client, which asks nothing before its first statement */
export function openClickhouse(config: Config, use: Use): Promise<ClickHouseClient> {
  return openBare(config, settingsOf(config, use), REQUEST_LIMIT_MS[use], CONNECTIONS[use]);
}

export function settingsOf(
  { clickhouseCluster }: Pick<Config, "clickhouseCluster">,
  use: Use,
): ClickHouseSettings {
  const isOnCluster = use === "write" && clickhouseCluster !== null;
  return { ...SETTINGS[use], ...(isOnCluster && CLUSTER) };
}

/** A client of its own with these settings, for reading. */
export async function openBare(
  config: Config,
  settings: ClickHouseSettings,
  requestLimitMs = 60_000,
  connections = 2,
): Promise<ClickHouseClient> {
  const connection =
    config.clickhouseUrl === null
      ? { connection: engineConnection(useEngine(config.dataDir), requestLimitMs) }
      : { url: config.clickhouseUrl, request_timeout: requestLimitMs };
  return createClient({
    ...connection,
    application: "waybill",
    max_open_connections: connections,
    clickhouse_settings: settings,
    log: { level: 127 },
  });
}

/** ClickHouse's name of its own error, such as `UNKNOWN_TABLE`; null when it never answered. */
export function clickhouseErrorType(error: unknown): string | null {
  return error instanceof ClickHouseError ? (error.type ?? null) : null;
}

/** A connection that is made when it is first needed and again after a failure. */
export interface KeptClickhouse {
  /** @throws what `open` throws; the next call after a while tries again */
  readonly client: () => Promise<ClickHouseClient>;
  /** What `open` prepared is gone: the next call opens again. */
  readonly forget: () => Promise<void>;
  readonly close: () => Promise<void>;
}

const REOPEN_WAIT_MS = 1_000;

export function keepClickhouse(open: () => Promise<ClickHouseClient>): KeptClickhouse {
  let opened: Promise<ClickHouseClient> | null = null;
  let closed = false;

  function client(): Promise<ClickHouseClient> {
    if (closed) return Promise.reject(new Error("the ClickHouse connection is closed"));
    opened ??= open().catch((error) => {
      setTimeout(() => {
        opened = null;
      }, REOPEN_WAIT_MS).unref();
      throw error;
    });
    return opened;
  }

  async function forget(): Promise<void> {
    const known = opened;
    opened = null;
    await known?.then((it) => it.close()).catch(() => {});
  }

  return {
    client,
    forget,
    async close() {
      closed = true;
      await forget();
    },
  };
}

/** The ClickHouse of this installation: a server by URL, or the engine in this process over a folder of its own. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type ClickHouseClient, type ClickHouseSettings, createClient } from "@clickhouse/client";
import type { Config } from "#core/platform/environment/config.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  QUORUM_LIMIT_MS,
  READ_LIMIT_SECONDS,
  REQUEST_LIMIT_MS,
  SCHEMA_STATEMENT_LIMIT_SECONDS,
  SURVEY_LIMIT_SECONDS,
} from "./time-limits.ts";

type Connection = NonNullable<NonNullable<Parameters<typeof createClient>[0]>["connection"]>;

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

/**
 * Embedded folders that this process has opened for writing. One process may have a folder: a reader that took it first
 * would keep the writer of another process out for as long as it lives.
 */
const writtenHere = new Set<string>();

/**
 * One connection is one queue in the embedded engine, so writing and reading have one each.
 * @throws when the embedded folder cannot be opened; a server is first asked with the first statement
 */
export async function openClickhouse(config: Config, use: Use): Promise<ClickHouseClient> {
  if (use !== "write" || config.clickhouseUrl !== null) {
    return openBare(config, settingsOf(config, use), REQUEST_LIMIT_MS[use], CONNECTIONS[use]);
  }
  const writer = await openEmbedded(embeddedFolder(config), SETTINGS.write);
  writtenHere.add(embeddedFolder(config));
  return writer;
}

export function settingsOf(
  { clickhouseCluster }: Pick<Config, "clickhouseCluster">,
  use: Use,
): ClickHouseSettings {
  const isOnCluster = use === "write" && clickhouseCluster !== null;
  return { ...SETTINGS[use], ...(isOnCluster && CLUSTER) };
}

/** A connection of its own with these settings, for reading. @throws as `openClickhouse` */
export async function openBare(
  config: Config,
  settings: ClickHouseSettings,
  requestLimitMs = 60_000,
  connections = 2,
): Promise<ClickHouseClient> {
  if (config.clickhouseUrl === null) return openBesideWriter(embeddedFolder(config), settings);
  return createClient({
    url: config.clickhouseUrl,
    application: "waybill",
    request_timeout: requestLimitMs,
    max_open_connections: connections,
    clickhouse_settings: settings,
    log: { level: 127 },
  });
}

/** The embedded folder is another process' to read. */
class NotWrittenHere extends Error {}

function embeddedFolder({ dataDir }: Config): string {
  return join(dataDir, "clickhouse");
}

async function openBesideWriter(
  path: string,
  settings: ClickHouseSettings,
): Promise<ClickHouseClient> {
  if (writtenHere.has(path)) return openEmbedded(path, settings);
  throw new NotWrittenHere(
    `the embedded ClickHouse folder ${path} is read by the process of the analytics role only ` +
      "(set CLICKHOUSE_URL to share a server)",
  );
}

/**
 * The engine is a library of 566 MB: it is loaded only by the process that opens the folder. It keeps settings for the connection.
 * The client would send a `SET` for each of them before every statement, and the engine reads all that follows for each.
 */
async function openEmbedded(path: string, settings: ClickHouseSettings): Promise<ClickHouseClient> {
  await mkdir(path, { recursive: true });
  const { createChdbConnection } = await import("chdb/connection").catch(() => {
    throw new Error("no image and no binary contains the embedded ClickHouse: set CLICKHOUSE_URL");
  });
  try {
    // The engine is typed by its own copy of the same interface, with a private member that sets the two apart.
    const connection = createChdbConnection({ path }) as unknown as Connection;
    const client = createClient({ connection });
    const assigned = Object.entries(settings).map(([name, value]) => `${name} = '${value}'`);
    if (assigned.length > 0) await client.command({ query: `SET ${assigned.join(", ")}` });
    return client;
  } catch (error) {
    throw new Error(
      `the embedded ClickHouse folder ${path} is open in another process or cannot be written ` +
        `(only one process may open it; set CLICKHOUSE_URL to share a server): ${(error as Error).message}`,
    );
  }
}

/**
 * ClickHouse's name of its own error, such as `UNKNOWN_TABLE`; null when it never answered. Asked by shape: the embedded
 * engine throws the error class of its own copy of the client.
 */
export function clickhouseErrorType(error: unknown): string | null {
  const type = error instanceof Error && "code" in error && "type" in error ? error.type : null;
  return typeof type === "string" ? type : null;
}

/** A connection that is made when it is first needed and again after a failure. */
export interface KeptClickhouse {
  /** @throws what `open` throws; the next call after a while tries again */
  readonly client: () => Promise<ClickHouseClient>;
  /** What `open` prepared is gone: the next call opens again. */
  readonly forget: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** The embedded engine complains on standard error each time, so a locked folder is not tried more often. */
const REOPEN_WAIT_MS = 1_000;

export function keepClickhouse(open: () => Promise<ClickHouseClient>): KeptClickhouse {
  let opened: Promise<ClickHouseClient> | null = null;
  let closed = false;

  function client(): Promise<ClickHouseClient> {
    if (closed) return Promise.reject(new Error("the ClickHouse connection is closed"));
    opened ??= open().catch((error) => {
      const waitMs = error instanceof NotWrittenHere ? 0 : REOPEN_WAIT_MS;
      setTimeout(() => {
        opened = null;
      }, waitMs).unref();
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

/**
 * Tables and views, one per file, created in this order; repeating it changes nothing. It is done where the version that the database
 * names is lower than ours. On a cluster each statement goes to all servers, through Keeper: one that is down runs it when it is back, and
 * one that has lost its tables gets them with the next start of the analytics.
 */
import type { ClickHouseClient } from "@clickhouse/client";
import archivedIndex from "#analytics/schema/archived-index.sql" with { type: "text" };
import archivedIndexRanges from "#analytics/schema/archived-index-ranges.sql" with { type: "text" };
import archivedIndexRows from "#analytics/schema/archived-index-rows.sql" with { type: "text" };
import archivedShipments from "#analytics/schema/archived-shipments.sql" with { type: "text" };
import attempts from "#analytics/schema/attempts.sql" with { type: "text" };
import auditLog from "#analytics/schema/audit-log.sql" with { type: "text" };
import { COMMENT_STATEMENTS } from "#analytics/schema/comments.ts";
import deliveries from "#analytics/schema/deliveries.sql" with { type: "text" };
import deliveriesEvidence from "#analytics/schema/deliveries-evidence.sql" with { type: "text" };
import deliveriesPromise from "#analytics/schema/deliveries-promise.sql" with { type: "text" };
import eventOutcomes from "#analytics/schema/event-outcomes.sql" with { type: "text" };
import events from "#analytics/schema/events.sql" with { type: "text" };
import eventsEstimate from "#analytics/schema/events-estimate.sql" with { type: "text" };
import eventsMessage from "#analytics/schema/events-message.sql" with { type: "text" };
import courierPerformance from "#analytics/views/courier-performance.sql" with { type: "text" };
import endpointHealth from "#analytics/views/endpoint-health.sql" with { type: "text" };
import eventQuality from "#analytics/views/event-quality.sql" with { type: "text" };
import lanes from "#analytics/views/lanes.sql" with { type: "text" };
import onTime from "#analytics/views/on-time.sql" with { type: "text" };
import sla from "#analytics/views/sla.sql" with { type: "text" };
import type { Config } from "#core/platform/environment/config.ts";
import { clickhouseErrorType } from "./clickhouse.ts";
import { joining, onCluster } from "./on-cluster.ts";
import { isCurrent, readSchema, type Schema } from "./read-schema.ts";

/** By their names. */
const STATEMENTS = {
  deliveries,
  events,
  event_outcomes: eventOutcomes,
  attempts,
  audit_log: auditLog,
  archived_shipments: archivedShipments,
  archived_index: archivedIndex,
};
export const TABLES = Object.values(STATEMENTS);
export const TABLE_NAMES = Object.keys(STATEMENTS);
/** What fills a table whenever rows are inserted into another. */
export const FEEDS = [archivedIndexRows];
/** Columns and indices that are added to tables that may exist already. */
export const COLUMNS = [
  deliveriesEvidence,
  deliveriesPromise,
  eventsMessage,
  eventsEstimate,
  archivedIndexRanges,
];
export const VIEWS = [lanes, courierPerformance, eventQuality, sla, onTime, endpointHealth];

/**
 * Raised with every change of a statement below (`test/contract/analytics/analytics-schema.test.ts` compares them). A process of an earlier version
 * leaves the schema of a later one as it is.
 */
export const SCHEMA_VERSION = 3;
/** The last statement: a schema that was interrupted has no version. It is a view, so that a backup of the database has it too. */
export const VERSION_VIEW = "waybill_schema";
const versionView = `CREATE OR REPLACE VIEW ${VERSION_VIEW} AS SELECT ${SCHEMA_VERSION} AS version`;

/**
 * An insert is on disk before it is confirmed, since Redis then forgets what was inserted. A merged part needs no fsync: ClickHouse keeps
 * the parts that it replaces for another eight minutes (`old_parts_lifetime`).
 */
const DURABLE = "fsync_after_insert = 1, fsync_part_directory = 1";
const SETTINGS = TABLE_NAMES.map((table) => `ALTER TABLE ${table} MODIFY SETTING ${DURABLE}`);

/** After the tables, whichever way those are made. */
const REST = [...FEEDS, ...COLUMNS, ...SETTINGS, ...VIEWS, ...COMMENT_STATEMENTS];

/** What a database of `SCHEMA_VERSION` is made by, without the view that names it. */
export const SCHEMA = [...TABLES, ...REST];

/** What grows without end is kept for so long; deliveries stay, one row of about 40 bytes each. */
export type SchemaOptions = Pick<
  Config,
  "eventRetentionMonths" | "attemptRetentionDays" | "auditRetentionMonths" | "clickhouseCluster"
>;

/** Other processes change nothing meanwhile. */
export type InTurn = (work: () => Promise<void>) => Promise<void>;

const VIEW_NAMES = [...FEEDS, ...VIEWS].flatMap(
  (sql) => /^CREATE .*\bVIEW (?:IF NOT EXISTS )?(\w+)/m.exec(sql)?.[1] ?? [],
);
/** A server that lacks any of them is not complete. */
const LIKE = { names: [...TABLE_NAMES, ...VIEW_NAMES], versionView: VERSION_VIEW };
/** A server of the cluster that has lost its tables, or still lacks its database, cannot run a statement. The others go on. */
const INCOMPLETE_SERVER: ReadonlySet<string | null> = new Set([
  ...["UNKNOWN_TABLE", "UNKNOWN_DATABASE", "REPLICA_ALREADY_EXISTS"],
  ...["METADATA_MISMATCH", "INCOMPATIBLE_COLUMNS"],
]);

/**
 * @param onFault called with what another server of the cluster could not do
 * @throws what this server could not do
 */
export async function applySchema(
  clickhouse: ClickHouseClient,
  options: SchemaOptions,
  inTurn: InTurn = (work) => work(),
  onFault: (reason: string) => void = () => {},
): Promise<void> {
  const cluster = options.clickhouseCluster;
  const read = () => readSchema(clickhouse, cluster, LIKE);
  const isDone = (schema: Schema) =>
    isCurrent(schema, SCHEMA_VERSION) && retentions(schema, options).length === 0;
  if (isDone(await read())) return;
  const run = (sql: string) => runStatement(clickhouse, sql, cluster);
  await inTurn(async () => {
    const before = await read();
    const faults: unknown[] = [];
    async function runAll(statements: readonly string[]): Promise<void> {
      for (const sql of statements) {
        const fault = await run(sql);
        if (fault) faults.push(fault);
      }
    }
    const isOld = !isCurrent(before, SCHEMA_VERSION);
    if (isOld) await runAll(statementsFor(before, cluster));
    const after = isOld ? await read() : before;
    if (after.missing.length > 0) throw faults[0] ?? new Error(`no table ${after.missing}`);
    await runAll([...retentions(after, options), ...(isOld ? [versionView] : [])]);
    for (const fault of faults) onFault((fault as Error).message);
  });
}

/** A table that some servers of the cluster have and others lack is made as those have it, and in no other way. */
function statementsFor({ known }: Schema, cluster: string | null): string[] {
  const joined = new Map<string, string>();
  for (const table of cluster === null ? [] : known) {
    const sql = joining(table, cluster as string);
    if (sql !== null) joined.set(table.name, sql);
  }
  const tables = Object.entries(STATEMENTS).map(([name, sql]) => joined.get(name) ?? sql);
  return [...tables, ...REST];
}

/** @returns why a server of the cluster could not run it @throws any other error */
async function runStatement(
  clickhouse: ClickHouseClient,
  sql: string,
  cluster: string | null,
): Promise<unknown> {
  if (cluster === null) {
    await clickhouse.command({ query: sql });
    return null;
  }
  // An error of a server that answers late would otherwise come after the status line.
  const clickhouse_settings = { wait_end_of_query: 1 } as const;
  const query = onCluster(sql, cluster);
  const fault = await clickhouse.command({ query, clickhouse_settings }).then(
    () => null,
    (error: unknown) => error,
  );
  if (fault !== null && !INCOMPLETE_SERVER.has(clickhouseErrorType(fault))) throw fault;
  return fault;
}

/** Only a new retention is sent to ClickHouse, which then scans all rows. */
function retentions(
  { statements }: Schema,
  { eventRetentionMonths, attemptRetentionDays, auditRetentionMonths }: SchemaOptions,
): string[] {
  const months = `toIntervalMonth(${eventRetentionMonths})`;
  const ends = {
    events: `toDateTime(received_at) + ${months}`,
    event_outcomes: `hour + ${months}`,
    attempts: `toDateTime(at) + toIntervalDay(${attemptRetentionDays})`,
    audit_log: `toDateTime(written) + toIntervalMonth(${auditRetentionMonths})`,
  };
  return Object.entries(ends)
    .filter(([table, ttl]) => !statements.get(table)?.includes(`TTL ${ttl}`))
    .map(([table, ttl]) => `ALTER TABLE ${table} MODIFY TTL ${ttl}`);
}

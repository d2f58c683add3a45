/** Tables and views, one per file, created in this order; repeating it changes nothing. */
import type { ClickHouseClient } from "@clickhouse/client";
import type { Config } from "#core/config.ts";
import { onCluster } from "./on-cluster.ts";
import archivedIndex from "./schema/archived-index.sql" with { type: "text" };
import archivedIndexRanges from "./schema/archived-index-ranges.sql" with { type: "text" };
import archivedIndexRows from "./schema/archived-index-rows.sql" with { type: "text" };
import archivedShipments from "./schema/archived-shipments.sql" with { type: "text" };
import attempts from "./schema/attempts.sql" with { type: "text" };
import auditLog from "./schema/audit-log.sql" with { type: "text" };
import deliveries from "./schema/deliveries.sql" with { type: "text" };
import deliveriesEvidence from "./schema/deliveries-evidence.sql" with { type: "text" };
import eventOutcomes from "./schema/event-outcomes.sql" with { type: "text" };
import events from "./schema/events.sql" with { type: "text" };
import eventsMessage from "./schema/events-message.sql" with { type: "text" };
import courierPerformance from "./views/courier-performance.sql" with { type: "text" };
import endpointHealth from "./views/endpoint-health.sql" with { type: "text" };
import eventQuality from "./views/event-quality.sql" with { type: "text" };
import lanes from "./views/lanes.sql" with { type: "text" };
import sla from "./views/sla.sql" with { type: "text" };

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
export const COLUMNS = [deliveriesEvidence, eventsMessage, archivedIndexRanges];
export const VIEWS = [lanes, courierPerformance, eventQuality, sla, endpointHealth];

/**
 * An insert is on disk before it is confirmed, since Redis then forgets what was inserted. A merged part needs no fsync: ClickHouse keeps
 * the parts that it replaces for another eight minutes (`old_parts_lifetime`).
 */
const DURABLE = "fsync_after_insert = 1, fsync_part_directory = 1";

/** What grows without end is kept for so long; deliveries stay, one row of some 40 bytes each. */
export type SchemaOptions = Pick<
  Config,
  "eventRetentionMonths" | "attemptRetentionDays" | "auditRetentionMonths" | "clickhouseCluster"
>;

export async function applySchema(
  clickhouse: ClickHouseClient,
  {
    eventRetentionMonths,
    attemptRetentionDays,
    auditRetentionMonths,
    clickhouseCluster,
  }: SchemaOptions,
): Promise<void> {
  const run = (sql: string) => clickhouse.command({ query: onCluster(sql, clickhouseCluster) });
  for (const sql of [...TABLES, ...FEEDS, ...COLUMNS]) await run(sql);
  const made = await readStatements(clickhouse);
  for (const table of TABLE_NAMES) {
    if (made.get(table)?.includes(DURABLE)) continue;
    await run(`ALTER TABLE ${table} MODIFY SETTING ${DURABLE}`);
  }
  const months = `toIntervalMonth(${eventRetentionMonths})`;
  const ends = {
    events: `toDateTime(received_at) + ${months}`,
    event_outcomes: `hour + ${months}`,
    attempts: `toDateTime(at) + toIntervalDay(${attemptRetentionDays})`,
    audit_log: `toDateTime(written) + toIntervalMonth(${auditRetentionMonths})`,
  };
  for (const [table, ttl] of Object.entries(ends)) {
    // Only a new retention is sent to ClickHouse, which then scans all rows.
    if (made.get(table)?.includes(`TTL ${ttl}`)) continue;
    await run(`ALTER TABLE ${table} MODIFY TTL ${ttl}`);
  }
  for (const sql of VIEWS) await run(sql);
}

/** @returns by the names of our tables, what would make them as they are, as ClickHouse writes it */
async function readStatements(clickhouse: ClickHouseClient): Promise<Map<string, string>> {
  const answer = await clickhouse.query({
    query: `SELECT name, create_table_query AS statement FROM system.tables
            WHERE database = currentDatabase() AND name IN {names:Array(String)}`,
    query_params: { names: TABLE_NAMES },
    format: "JSONEachRow",
  });
  const tables = await answer.json<{ name: string; statement: string }>();
  return new Map(tables.map(({ name, statement }) => [name, statement]));
}

/** Tables and views, one per file, created in this order; repeating it changes nothing. */
import type { ClickHouseClient } from "@clickhouse/client";
import type { Config } from "#core/config.ts";
import { onCluster } from "./on-cluster.ts";
import archivedIndex from "./schema/archived-index.sql" with { type: "text" };
import archivedIndexRanges from "./schema/archived-index-ranges.sql" with { type: "text" };
import archivedIndexRows from "./schema/archived-index-rows.sql" with { type: "text" };
import archivedShipments from "./schema/archived-shipments.sql" with { type: "text" };
import attempts from "./schema/attempts.sql" with { type: "text" };
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

export const TABLES = [
  deliveries,
  events,
  eventOutcomes,
  attempts,
  archivedShipments,
  archivedIndex,
];
/** What fills a table whenever rows are inserted into another. */
export const FEEDS = [archivedIndexRows];
/** Columns and indices that are added to tables that may exist already. */
export const COLUMNS = [deliveriesEvidence, eventsMessage, archivedIndexRanges];
export const VIEWS = [lanes, courierPerformance, eventQuality, sla, endpointHealth];

/** What grows without end is kept for so long; deliveries stay, one row of some 40 bytes each. */
export type SchemaOptions = Pick<
  Config,
  "eventRetentionMonths" | "attemptRetentionDays" | "clickhouseCluster"
>;

export async function applySchema(
  clickhouse: ClickHouseClient,
  { eventRetentionMonths, attemptRetentionDays, clickhouseCluster }: SchemaOptions,
): Promise<void> {
  const run = (sql: string) => clickhouse.command({ query: onCluster(sql, clickhouseCluster) });
  for (const sql of [...TABLES, ...FEEDS, ...COLUMNS]) await run(sql);
  const months = `toIntervalMonth(${eventRetentionMonths})`;
  const ends = {
    events: `toDateTime(received_at) + ${months}`,
    event_outcomes: `hour + ${months}`,
    attempts: `toDateTime(at) + toIntervalDay(${attemptRetentionDays})`,
  };
  for (const [table, ttl] of Object.entries(ends)) {
    // Only a new retention is sent to ClickHouse, which then scans all rows.
    if (await hasTtl(clickhouse, table, ttl)) continue;
    await run(`ALTER TABLE ${table} MODIFY TTL ${ttl}`);
  }
  for (const sql of VIEWS) await run(sql);
}

/** @param ttl as ClickHouse writes it */
async function hasTtl(clickhouse: ClickHouseClient, table: string, ttl: string): Promise<boolean> {
  const answer = await clickhouse.query({
    query: `SELECT create_table_query AS text FROM system.tables
            WHERE database = currentDatabase() AND name = {table:String}`,
    query_params: { table },
    format: "JSONEachRow",
  });
  const [found] = await answer.json<{ text: string }>();
  return found?.text.includes(`TTL ${ttl}`) ?? false;
}

/** Tables and views, one per file, created in this order; repeating it changes nothing. */
import type { ClickHouseClient } from "@clickhouse/client";
import deliveries from "./schema/deliveries.sql" with { type: "text" };
import eventOutcomes from "./schema/event-outcomes.sql" with { type: "text" };
import events from "./schema/events.sql" with { type: "text" };
import courierPerformance from "./views/courier-performance.sql" with { type: "text" };
import eventQuality from "./views/event-quality.sql" with { type: "text" };
import lanes from "./views/lanes.sql" with { type: "text" };
import sla from "./views/sla.sql" with { type: "text" };

const TABLES = [deliveries, events, eventOutcomes];
const VIEWS = [lanes, courierPerformance, eventQuality, sla];

/** Raw events are kept for so long; deliveries stay, one row of some 40 bytes each. */
const KEPT_BY = { events: "toDateTime(received_at)", event_outcomes: "hour" } as const;

/** @param retentionMonths how long raw events are kept after they were received */
export async function applySchema(
  clickhouse: ClickHouseClient,
  retentionMonths: number,
): Promise<void> {
  for (const query of TABLES) await clickhouse.command({ query });
  for (const table of ["events", "event_outcomes"] as const) {
    await keepFor(clickhouse, table, retentionMonths);
  }
  for (const query of VIEWS) await clickhouse.command({ query });
}

/** Only a retention that is new is told to ClickHouse: it looks through all rows then. */
async function keepFor(
  clickhouse: ClickHouseClient,
  table: keyof typeof KEPT_BY,
  months: number,
): Promise<void> {
  const answer = await clickhouse.query({
    query: `SELECT create_table_query AS text FROM system.tables
            WHERE database = currentDatabase() AND name = {table:String}`,
    query_params: { table },
    format: "JSONEachRow",
  });
  const [found] = await answer.json<{ text: string }>();
  const ttl = `${KEPT_BY[table]} + toIntervalMonth(${months})`;
  if (found?.text.includes(`TTL ${ttl}`)) return;
  await clickhouse.command({ query: `ALTER TABLE ${table} MODIFY TTL ${ttl}` });
}

/** The tables, one per file, created in this order; repeating it changes nothing. */
import type { ClickHouseClient } from "@clickhouse/client";
import deliveries from "./schema/deliveries.sql" with { type: "text" };

const TABLES = [deliveries];

export async function applySchema(clickhouse: ClickHouseClient): Promise<void> {
  for (const query of TABLES) await clickhouse.command({ query });
}

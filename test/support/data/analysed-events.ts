/** What a product left in its ClickHouse. */
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { readConfig } from "#core/platform/environment/config.ts";

/**
 * Events, each counted once.
 * @param env of the product: its `CLICKHOUSE_URL`, or its `DATA_DIR` once it has ended
 */
export async function analysedEvents(env: Readonly<Record<string, string>>): Promise<number> {
  const clickhouse = await openClickhouse(readConfig(env), "write");
  const query = "SELECT toUInt32(count()) AS events FROM events FINAL";
  const answer = await clickhouse.query({ query, format: "JSONEachRow" });
  const [row] = await answer.json<{ events: number }>();
  await clickhouse.close();
  return row?.events ?? 0;
}

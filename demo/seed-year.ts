/** Writes the year before the demo into ClickHouse, once. */
import { openBare } from "#analytics/clickhouse/clickhouse.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { DEMO_CHANNELS } from "./demo-setup.ts";
import { planYear, YEAR_QUERY, YEAR_TABLE } from "./year.ts";

/** One insert of so many rows takes about 50 ms. */
const ROWS_PER_INSERT = 10_000;

/** @throws while ClickHouse is unavailable */
export async function seedYear({ config, secrets, live }: Runtime): Promise<void> {
  const { channelByCode } = live.configuration();
  const { mac } = secrets.vault;
  const owners = DEMO_CHANNELS.map(({ code }) => channelByCode.get(code)).map((channel) => ({
    company: mac(`company ${channel?.companyId}`),
    channel: mac(`channel ${channel?.id}`),
  }));
  // All years of ship dates go in with one insert.
  const client = await openBare(config, { max_partitions_per_insert_block: "0" });
  try {
    const found = await client.query({ query: YEAR_QUERY, format: "JSONEachRow" });
    const [known] = await found.json<{ readonly rows: number | string }>();
    if (Number(known?.rows) > 0) return;
    const rows = planYear(owners, Math.random, live.now());
    for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
      const values = rows.slice(from, from + ROWS_PER_INSERT).map((row) => JSON.stringify(row));
      await client.command({
        query: `INSERT INTO ${YEAR_TABLE.name} (${YEAR_TABLE.columns}) FORMAT JSONCompactEachRow\n${values.join("\n")}`,
      });
    }
  } finally {
    await client.close();
  }
}

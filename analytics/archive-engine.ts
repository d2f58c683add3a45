/** What the ClickHouse of the archive can do, by its settings: a statement with one that it does not know is refused. */
import type { ClickHouseClient } from "@clickhouse/client";

interface Engine {
  /** A statement reads all its parts at one moment; else rows may be inserted between the halves of a union. */
  readonly readsOneMoment: boolean;
  /** Settings of statements that read in order. */
  readonly blockByBlock: string;
}

const ONE_MOMENT = "enable_shared_storage_snapshot_in_query";
/**
 * Of every part a block at a time, and only when the merge needs it: else each part reads as many rows as the page ends at, and
 * most of them stand far from the page. Which granules can be skipped is told at once, and not block by block.
 */
const BLOCK_BY_BLOCK: Readonly<Record<string, number>> = {
  max_threads: 1,
  read_in_order_use_buffering: 0,
  max_block_size: 2_048,
  use_skip_indexes_on_data_read: 0,
};

const engines = new WeakMap<ClickHouseClient, Engine>();

export async function engineOf(clickhouse: ClickHouseClient): Promise<Engine> {
  const known = engines.get(clickhouse) ?? (await readEngine(clickhouse));
  engines.set(clickhouse, known);
  return known;
}

async function readEngine(clickhouse: ClickHouseClient): Promise<Engine> {
  const names = [ONE_MOMENT, ...Object.keys(BLOCK_BY_BLOCK)].map((name) => `'${name}'`);
  const answer = await clickhouse.query({
    query: `SELECT name, value FROM system.settings WHERE name IN (${names})`,
    format: "JSONEachRow",
  });
  const rows = await answer.json<{ name: string; value: string }>();
  const values = new Map(rows.map(({ name, value }) => [name, value]));
  const settings = Object.entries(BLOCK_BY_BLOCK).filter(([name]) => values.has(name));
  return {
    readsOneMoment: values.get(ONE_MOMENT) === "1",
    blockByBlock: `SETTINGS ${settings.map(([name, value]) => `${name} = ${value}`).join(", ")}`,
  };
}

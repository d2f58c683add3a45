/** What the archive's ClickHouse can do, as its settings tell: it refuses a statement with a setting that it does not know. */
import type { ClickHouseClient } from "@clickhouse/client";

interface Engine {
  /** Both halves of a union see the rows of one moment; otherwise rows may be inserted between reading one and the other. */
  readonly readsOneMoment: boolean;
  /** The SETTINGS clause of statements that read in order. */
  readonly blockByBlock: string;
}

export const ONE_MOMENT = "enable_shared_storage_snapshot_in_query";
/**
 * Reads each part one block at a time, and only when the merge needs it: otherwise as many rows are read from each part as come
 * before the end of the page, and most of them are far from it. Which granules can be skipped is determined once, beforehand, and
 * not for each block. The columns are narrow and most rows match: nothing is gained by reading some of them first.
 */
const BLOCK_BY_BLOCK: Readonly<Record<string, number>> = {
  max_threads: 1,
  read_in_order_use_buffering: 0,
  max_block_size: 2_048,
  use_skip_indexes_on_data_read: 0,
  optimize_move_to_prewhere: 0,
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

/**
 * Whether the index of archived shipments (`schema/archived-index.sql`) holds all of them, and what fills it where an installation
 * has archived shipments without it. Until then search reads `archived_shipments`.
 */
import type { ClickHouseClient } from "@clickhouse/client";
import { clickhouseErrorType } from "#analytics/clickhouse/clickhouse.ts";
import { FILL_LIMIT_SECONDS } from "#analytics/clickhouse/time-limits.ts";
import indexRows from "#analytics/schema/archived-index-rows.sql" with { type: "text" };

export const INDEX_TABLE = "archived_index";
/** No channel has this number. */
const COMPLETE = "channel = 0";
/** In the order of the view, whatever others a table has that was made before. */
const COLUMNS = [
  ...["channel", "kind", "value", "id", "company", "batch", "updated", "shipped", "status"],
  ...["order_reference", "custom1", "custom2", "custom3"],
];
/** A process that was paused adds nothing to an index that another one has filled. */
const INCOMPLETE = `(SELECT count() FROM ${INDEX_TABLE} WHERE ${COMPLETE}) = 0`;
const SELECT_ROWS = indexRows.slice(indexRows.indexOf("\nSELECT"));
/** Shipments that one statement adds, within a few seconds. */
const FILLED_TOGETHER = 250_000;
/** The server ends a statement before the client gives up on it. What was filled before a crash is filled again, and is no duplicate. */
const FILL_SETTINGS = `SETTINGS insert_deduplicate = 0, max_execution_time = ${FILL_LIMIT_SECONDS}`;
/**
 * A server runs one statement of this id at a time, so emptying the index first ends what a process that crashed or lost its
 * connection has left running: its rows would stand twice. The embedded engine lets the emptying wait for it instead.
 */
const QUERY_ID = "waybill-archived-index";

/** Clients whose index was found complete: it stays so. */
const complete = new WeakSet<ClickHouseClient>();

export async function isIndexComplete(clickhouse: ClickHouseClient): Promise<boolean> {
  if (complete.has(clickhouse)) return true;
  const query = `SELECT count() AS found FROM ${INDEX_TABLE} WHERE ${COMPLETE}`;
  try {
    const answer = await clickhouse.query({ query, format: "JSONEachRow" });
    const [row] = await answer.json<{ found: number | string }>();
    if (Number(row?.found) > 0) complete.add(clickhouse);
  } catch (error) {
    // The process that applies the schema may be an older one still.
    if (clickhouseErrorType(error) !== "UNKNOWN_TABLE") throw error;
  }
  return complete.has(clickhouse);
}

/**
 * Fills the index unless it is complete. A crash is repaired by filling it again from the start.
 * @param assertHeld of the archiver's lock: nothing may be archived meanwhile
 * @param together rows of `archived_shipments` for each statement
 * @returns whether it was filled now
 */
export async function completeIndex(
  clickhouse: ClickHouseClient,
  assertHeld: () => Promise<void>,
  together = FILLED_TOGETHER,
): Promise<boolean> {
  if (await isIndexComplete(clickhouse)) return false;
  await clickhouse.command({
    query: `TRUNCATE TABLE ${INDEX_TABLE} SETTINGS replace_running_query = 1`,
    query_id: QUERY_ID,
  });
  const answer = await clickhouse.query({
    query: "SELECT DISTINCT toYear(archived_on) AS year FROM archived_shipments ORDER BY year",
    format: "JSONEachRow",
  });
  for (const { year } of await answer.json<{ year: number }>()) {
    await fillYear(clickhouse, year, assertHeld, together);
  }
  await assertHeld();
  await clickhouse.command({
    query: `INSERT INTO ${INDEX_TABLE} (channel) ${FILL_SETTINGS} VALUES (0)`,
  });
  return true;
}

/** In the order of `archived_shipments`. */
type Place = Readonly<Record<"channel" | "id", number | string>>;

function upTo({ channel, id }: Place): string {
  return `(channel < ${channel} OR channel = ${channel} AND id <= ${id})`;
}

async function fillYear(
  clickhouse: ClickHouseClient,
  year: number,
  assertHeld: () => Promise<void>,
  together: number,
): Promise<void> {
  let filled = "false";
  for (;;) {
    const rest = `toYear(archived_on) = ${year} AND NOT ${filled}`;
    await assertHeld();
    const answer = await clickhouse.query({
      query: `SELECT channel, id FROM archived_shipments WHERE ${rest}
              ORDER BY channel, id LIMIT 1 OFFSET ${together - 1}`,
      format: "JSONEachRow",
    });
    const [last] = await answer.json<Place>();
    filled = last ? upTo(last) : "true";
    await clickhouse.command({
      query: `INSERT INTO ${INDEX_TABLE} (${COLUMNS}) ${FILL_SETTINGS}
              ${SELECT_ROWS} WHERE ${rest} AND ${filled} AND ${INCOMPLETE}`,
      query_id: QUERY_ID,
    });
    if (!last) return;
  }
}

/** Inserts rows that count once however often they are written, and finds those that ClickHouse refuses by bisection. */
import type { ClickHouseClient } from "@clickhouse/client";
import { clickhouseErrorType } from "#analytics/clickhouse/clickhouse.ts";
import type { Failure, LogItem } from "#core/platform/log/consumer.ts";
import { benchmarkRows } from "#core/platform/process/metrics.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Row, Table } from "./rows.ts";

/** One insert of 10,000 rows takes about 50 ms; more gains nothing. */
const ROWS_PER_INSERT = limit(10_000, "rows of one insert", "the next insert");

/** A row and the log entry that brought it. */
export interface Pending {
  readonly entry: LogItem;
  readonly row: Row;
}

/** @returns entries with a row that ClickHouse refuses @throws while it is unavailable */
export async function insertRows(
  client: ClickHouseClient,
  table: Table,
  pending: readonly Pending[],
): Promise<Failure[]> {
  const failures: Failure[] = [];
  for (let from = 0; from < pending.length; from += ROWS_PER_INSERT) {
    const batch = pending.slice(from, from + ROWS_PER_INSERT);
    failures.push(...(await insertBatch(client, table, batch)));
  }
  return failures;
}

/** A row that is well is written although another row of its entry is not, and again when that is tried again. */
export function oncePerEntry(failures: readonly Failure[]): readonly Failure[] {
  return [...new Map(failures.map((failure) => [failure.entry, failure])).values()];
}

/**
 * Every try has a deduplication token of its own. A table without replication records the token before the rows: killed in between, it
 * takes an insert with the same token for a duplicate, and the rows are lost. Without a token ClickHouse derives one from the rows, and no
 * setting that all supported versions know prevents that. A row that is written twice counts once (`ReplacingMergeTree`).
 */
async function insertBatch(
  client: ClickHouseClient,
  table: Table,
  batch: readonly Pending[],
): Promise<readonly Failure[]> {
  try {
    const rows = batch.map(({ row }) => JSON.stringify(row)).join("\n");
    await client.command({
      query: `INSERT INTO ${table.name} (${table.columns})
              SETTINGS insert_deduplication_token = '${crypto.randomUUID()}'
              FORMAT JSONCompactEachRow\n${rows}`,
    });
    benchmarkRows.inc(batch.length);
    return [];
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const [only] = batch;
    if (batch.length === 1 && only) return [{ entry: only.entry, reason: error.message }];
    const middle = Math.ceil(batch.length / 2);
    const first = await insertBatch(client, table, batch.slice(0, middle));
    return [...first, ...(await insertBatch(client, table, batch.slice(middle)))];
  }
}

/** Faults of a row itself. Whatever is not on this list is the store's trouble and waits for its end. */
const REFUSALS: ReadonlySet<string> = new Set([
  "ARGUMENT_OUT_OF_BOUND",
  "CANNOT_CONVERT_TYPE",
  "CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN",
  "CANNOT_PARSE_BOOL",
  "CANNOT_PARSE_DATE",
  "CANNOT_PARSE_DATETIME",
  "CANNOT_PARSE_ESCAPE_SEQUENCE",
  "CANNOT_PARSE_INPUT_ASSERTION_FAILED",
  "CANNOT_PARSE_NUMBER",
  "CANNOT_PARSE_QUOTED_STRING",
  "CANNOT_PARSE_TEXT",
  "INCORRECT_DATA",
  "TOO_LARGE_STRING_SIZE",
  "TYPE_MISMATCH",
  "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE",
  "VIOLATED_CONSTRAINT",
]);

export function isRefusal(error: unknown): error is Error {
  return REFUSALS.has(clickhouseErrorType(error) ?? "");
}

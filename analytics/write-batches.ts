/**
 * Writes the change log's facts and deliveries to ClickHouse, in batches that are cut once and named by their stream ids.
 *
 * | what happens                     | what follows                                                                |
 * |----------------------------------|-----------------------------------------------------------------------------|
 * | inserted                         | the entries are acknowledged                                                |
 * | ClickHouse away, busy or full    | `Unavailable`: the same batch under the same name, for ever                 |
 * | inserted, but the answer is lost | the same name again: ClickHouse knows it and inserts nothing                |
 * | redelivered in another cut       | the same rows again: per shipment and fact the highest version counts       |
 * | a row is refused                 | halves are inserted until the row stands alone; its entry fails by itself   |
 */
import { createHash } from "node:crypto";
import type { ClickHouseClient } from "@clickhouse/client";
import { benchmarkRows } from "#core/metrics.ts";
import { decodeChangeEntry } from "#core/redis/change-log.ts";
import { type Entry, type Failure, type Handler, Unavailable } from "#core/redis/consumer.ts";
import { clickhouseErrorType } from "./clickhouse.ts";
import { type DeliveryRow, deliveryRow, type EventTableRow, eventTableRow } from "./rows.ts";

/** One insert of 10,000 rows takes some 70 ms and stalls the event loop up to 22 ms; more gains nothing. */
const ROWS_PER_INSERT = 10_000;

export interface BenchmarkDeps {
  /** @throws while ClickHouse is away */
  readonly clickhouse: () => Promise<ClickHouseClient>;
  /** The tables are gone: the next `clickhouse()` makes them again. */
  readonly forget: () => Promise<void>;
  /** Keyed hash of 16 characters, so that ClickHouse tells channels apart without knowing them. */
  readonly mac: (text: string) => string;
}

interface Pending {
  readonly entry: Entry;
  readonly row: DeliveryRow | EventTableRow;
}

/** What one read of the log brings to each table. */
interface Batches {
  readonly deliveries: Pending[];
  readonly events: Pending[];
}

export function benchmarkHandler({ clickhouse, forget, mac }: BenchmarkDeps): Handler {
  return async (entries) => {
    const { batches, failures } = rowsOf(entries, mac);
    if (batches.deliveries.length + batches.events.length === 0) return failures;
    try {
      const client = await clickhouse();
      for (const table of ["deliveries", "events"] as const) {
        const pending = batches[table];
        for (let from = 0; from < pending.length; from += ROWS_PER_INSERT) {
          const batch = pending.slice(from, from + ROWS_PER_INSERT);
          failures.push(...(await insertBatch(client, table, batch)));
        }
      }
    } catch (error) {
      if (clickhouseErrorType(error) === "UNKNOWN_TABLE") await forget();
      throw new Unavailable(`ClickHouse: ${(error as Error).message}`);
    }
    return oncePerEntry(failures);
  };
}

/** A delivery whose row is well is written although another row of its entry is not, and again when that is tried again. */
function oncePerEntry(failures: readonly Failure[]): readonly Failure[] {
  return [...new Map(failures.map((failure) => [failure.entry, failure])).values()];
}

function rowsOf(entries: readonly Entry[], mac: BenchmarkDeps["mac"]) {
  const batches: Batches = { deliveries: [], events: [] };
  const failures: Failure[] = [];
  for (const entry of entries) {
    try {
      const decoded = decodeChangeEntry(entry.fields);
      if (decoded.type === "created") continue;
      const { shipmentId, change } = decoded;
      const owner = {
        shipment_id: shipmentId,
        company: mac(`company ${change.companyId}`),
        channel: mac(`channel ${change.channelId}`),
      };
      const events = (change.events ?? []).map((event) => eventTableRow(owner, event));
      const delivery = change.lane && deliveryRow(owner, change.lane);
      batches.events.push(...events.map((row) => ({ entry, row })));
      if (delivery) batches.deliveries.push({ entry, row: delivery });
    } catch (error) {
      failures.push({ entry, reason: String(error) });
    }
  }
  return { batches, failures };
}

async function insertBatch(
  client: ClickHouseClient,
  table: keyof Batches,
  batch: readonly Pending[],
): Promise<readonly Failure[]> {
  try {
    await client.insert({
      table,
      values: batch.map(({ row }) => row),
      format: "JSONEachRow",
      clickhouse_settings: { insert_deduplication_token: batchName(batch) },
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

/** First and last stream id, and a digest of all, so that another cut between the same two has another name. */
function batchName(batch: readonly Pending[]): string {
  const names = batch.map(({ entry: { key, id } }) => `${key} ${id}`);
  const digest = createHash("sha256").update(names.join("\n")).digest("base64url");
  return `${names[0]} - ${names.at(-1)} ${digest}`;
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

function isRefusal(error: unknown): error is Error {
  return REFUSALS.has(clickhouseErrorType(error) ?? "");
}

/**
 * Writes the change log's lane rows to ClickHouse, in batches that are cut once and named by their stream ids.
 *
 * | what happens                     | what follows                                                                |
 * |----------------------------------|-----------------------------------------------------------------------------|
 * | inserted                         | the entries are acknowledged                                                |
 * | ClickHouse away, busy or full    | `Unavailable`: the same batch under the same name, for ever                 |
 * | inserted, but the answer is lost | the same name again: ClickHouse knows it and inserts nothing                |
 * | redelivered in another cut       | the same rows again: per shipment the highest version counts, in any order  |
 * | a row is refused                 | halves are inserted until the row stands alone; its entry fails by itself   |
 */
import { createHash } from "node:crypto";
import type { ClickHouseClient } from "@clickhouse/client";
import { areaOfCap, type LaneRow, weightBand } from "#core/domain/lane.ts";
import { benchmarkRows } from "#core/metrics.ts";
import { type Change, decodeChangeEntry } from "#core/redis/change-log.ts";
import { type Entry, type Failure, type Handler, Unavailable } from "#core/redis/consumer.ts";
import { clickhouseErrorType } from "./clickhouse.ts";

/** One insert of 10,000 rows takes some 70 ms and stalls the event loop up to 22 ms; more gains nothing. */
const ROWS_PER_INSERT = 10_000;
const TABLE = "deliveries";

/** A row of `schema/deliveries.sql`. */
export interface DeliveryRow {
  readonly shipment_id: number;
  readonly company: string;
  readonly channel: string;
  readonly courier: string;
  readonly dest_cap: string;
  readonly origin_cap: string;
  readonly origin_area: string;
  readonly weight_kg: number | null;
  readonly weight_band: string;
  readonly ship_date: string;
  readonly delivered_on: string;
  readonly lead_days: number;
  readonly transit_days: number | null;
  readonly attempts: number;
  readonly exceptions: number;
  readonly is_return: boolean;
  readonly version: number;
  readonly removed: 0 | 1;
}

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
  readonly row: DeliveryRow;
}

export function benchmarkHandler({ clickhouse, forget, mac }: BenchmarkDeps): Handler {
  return async (entries) => {
    const { pending, failures } = rowsOf(entries, mac);
    if (pending.length === 0) return failures;
    try {
      const client = await clickhouse();
      for (let from = 0; from < pending.length; from += ROWS_PER_INSERT) {
        failures.push(...(await insertBatch(client, pending.slice(from, from + ROWS_PER_INSERT))));
      }
    } catch (error) {
      if (clickhouseErrorType(error) === "UNKNOWN_TABLE") await forget();
      throw new Unavailable(`ClickHouse: ${(error as Error).message}`);
    }
    return failures;
  };
}

function rowsOf(entries: readonly Entry[], mac: BenchmarkDeps["mac"]) {
  const pending: Pending[] = [];
  const failures: Failure[] = [];
  for (const entry of entries) {
    try {
      const decoded = decodeChangeEntry(entry.fields);
      if (decoded.type === "created" || !decoded.change.lane) continue;
      const { shipmentId, change } = decoded;
      const row = deliveryRow(shipmentId, change, decoded.change.lane, mac);
      checkNumbers(row);
      pending.push({ entry, row });
    } catch (error) {
      failures.push({ entry, reason: String(error) });
    }
  }
  return { pending, failures };
}

function deliveryRow(
  shipmentId: number,
  { companyId, channelId }: Change,
  lane: LaneRow,
  mac: BenchmarkDeps["mac"],
): DeliveryRow {
  const { originCap, weightKg } = lane;
  return {
    shipment_id: shipmentId,
    company: mac(`company ${companyId}`),
    channel: mac(`channel ${channelId}`),
    courier: lane.courier,
    dest_cap: lane.destCap,
    origin_cap: originCap ?? "",
    origin_area: (originCap !== null && areaOfCap(originCap)) || "",
    weight_kg: weightKg,
    weight_band: weightKg === null ? "" : weightBand(weightKg),
    ship_date: lane.shipDate,
    delivered_on: lane.deliveredOn,
    lead_days: lane.leadDays,
    transit_days: lane.transitDays,
    attempts: lane.attempts,
    exceptions: lane.exceptions,
    is_return: lane.isReturn,
    version: lane.version,
    removed: lane.removed ? 1 : 0,
  };
}

const WHOLE_NUMBERS = ["shipment_id", "lead_days", "attempts", "exceptions", "version"] as const;

/** ClickHouse reads null as 0 and bends a number that does not fit, so these are checked before. */
function checkNumbers(row: DeliveryRow): void {
  for (const name of WHOLE_NUMBERS) {
    if (!Number.isSafeInteger(row[name]) || row[name] < 0) throw new Error(`${name} is no number`);
  }
}

async function insertBatch(
  client: ClickHouseClient,
  batch: readonly Pending[],
): Promise<readonly Failure[]> {
  try {
    await client.insert({
      table: TABLE,
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
    const first = await insertBatch(client, batch.slice(0, middle));
    return [...first, ...(await insertBatch(client, batch.slice(middle)))];
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

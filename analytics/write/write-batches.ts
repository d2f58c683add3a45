/**
 * Writes the change log's facts and deliveries to ClickHouse, in batches that are retried until they are written.
 *
 * | what happens                     | what follows                                                                |
 * |----------------------------------|-----------------------------------------------------------------------------|
 * | inserted                         | the entries are acknowledged                                                |
 * | ClickHouse away, busy or full    | `Unavailable`: the same batch again, for ever                               |
 * | inserted, but the answer is lost | the same rows again: per shipment and fact the highest version counts       |
 * | redelivered in another cut       | the same rows again, likewise                                               |
 * | a row is refused                 | halves are inserted until the row stands alone; its entry fails by itself   |
 */
import type { ClickHouseClient } from "@clickhouse/client";
import { clickhouseErrorType } from "#analytics/clickhouse/clickhouse.ts";
import type { Failure, Handler, LogItem } from "#core/platform/log/consumer.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { isTestCourier } from "#core/shipments/rules/test-parcel.ts";
import { ownerOfChange, rowsOf } from "#core/shipments/store/change-log.ts";
import { insertRows, oncePerEntry, type Pending } from "./insert-rows.ts";
import { DELIVERIES, deliveredShipmentRow, EVENTS, eventTableRow } from "./rows.ts";

export interface BenchmarkDeps {
  /** @throws while ClickHouse is unavailable */
  readonly clickhouse: () => Promise<ClickHouseClient>;
  /** The tables are gone: the next `clickhouse()` makes them again. */
  readonly forget: () => Promise<void>;
  /** Keyed hash of 16 characters, so that ClickHouse tells channels apart without knowing them. */
  readonly mac: (text: string) => string;
  /** Deliveries were written. */
  readonly delivered?: () => void;
}

/** What one read of the log brings to each table. */
interface Batches {
  readonly deliveries: Pending[];
  readonly events: Pending[];
}

export function benchmarkHandler({ clickhouse, forget, mac, delivered }: BenchmarkDeps): Handler {
  return async (entries) => {
    const { batches, failures } = batchesOf(entries, mac);
    if (batches.deliveries.length + batches.events.length === 0) return failures;
    try {
      const client = await clickhouse();
      failures.push(...(await insertRows(client, DELIVERIES, batches.deliveries)));
      failures.push(...(await insertRows(client, EVENTS, batches.events)));
      if (batches.deliveries.length > 0) delivered?.();
    } catch (error) {
      if (clickhouseErrorType(error) === "UNKNOWN_TABLE") await forget();
      throw new Unavailable(`ClickHouse: ${(error as Error).message}`, "clickhouse");
    }
    return oncePerEntry(failures);
  };
}

function batchesOf(entries: readonly LogItem[], mac: BenchmarkDeps["mac"]) {
  const batches: Batches = { deliveries: [], events: [] };
  const failures: Failure[] = [];
  for (const entry of entries) {
    try {
      const { s: shipmentId, created, change = "" } = entry.fields;
      if (created !== undefined) continue;
      const { companyId, channelId } = ownerOfChange(change);
      const { lane, events: facts = [] } = rowsOf(change);
      // Test mode is no evidence of anything.
      if ([lane, ...facts].some((row) => row && isTestCourier(row.courier))) continue;
      const owner = {
        shipmentId: Number(shipmentId),
        company: mac(`company ${companyId}`),
        channel: mac(`channel ${channelId}`),
      };
      const events = facts.map((event) => ({ entry, row: eventTableRow(owner, event) }));
      const delivery = lane && deliveredShipmentRow(owner, lane);
      batches.events.push(...events);
      if (delivery) batches.deliveries.push({ entry, row: delivery });
    } catch (error) {
      failures.push({ entry, reason: String(error) });
    }
  }
  return { batches, failures };
}

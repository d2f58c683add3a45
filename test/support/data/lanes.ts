/** Change log entries that carry lane rows, and random deliveries for the benchmark tests. */

import type { LaneRow } from "#core/benchmarks/rules/lane.ts";
import type { LogItem } from "#core/platform/log/consumer.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys } from "#core/platform/redis/keys.ts";
import { daysBetween } from "#core/platform/time/rome-time.ts";
import { encodeChange } from "#core/shipments/store/change-log.ts";
import { daysAgo } from "#test/support/data/days.ts";

const DAY_MS = 86_400_000;

export interface DeliveredShipment extends LaneRow {
  readonly shipmentId: number;
}

/** Without a ship date it was shipped `leadDays` before the delivery, two where they are not given either. */
export function deliveredShipment(values: Partial<DeliveredShipment>): DeliveredShipment {
  const { deliveredOn = "2026-09-03", leadDays = 2 } = values;
  const shipDate = values.shipDate ?? daysBefore(deliveredOn, leadDays);
  return {
    shipmentId: 1,
    courier: "GLS_ITA",
    destCap: "20121",
    originCap: null,
    weightKg: null,
    shipDate,
    deliveredOn,
    leadDays: Math.max(0, daysBetween(shipDate, deliveredOn)),
    transitDays: null,
    attempts: 1,
    exceptions: 0,
    isReturn: false,
    version: 1,
    removed: false,
    ...values,
  };
}

function daysBefore(date: string, days: number): string {
  const ms = Date.parse(date) - days * DAY_MS;
  return Number.isNaN(ms) ? date : new Date(ms).toISOString().slice(0, 10);
}

export function deliveredShipments(
  count: number,
  values: (at: number) => Partial<DeliveredShipment>,
): DeliveredShipment[] {
  return Array.from({ length: count }, (_, at) =>
    deliveredShipment({ shipmentId: at + 1, ...values(at) }),
  );
}

let nextId = 1;

/** A change log entry with a new stream id. */
export function laneEntry({ shipmentId, ...lane }: DeliveredShipment): LogItem {
  nextId += 1;
  return { key: "{k1}:changes", id: `${nextId}-0`, fields: laneFields({ shipmentId, ...lane }) };
}

export function laneFields({ shipmentId, ...lane }: DeliveredShipment): Record<string, string> {
  const change = encodeChange({
    companyId: 1,
    channelId: 7,
    fact: {
      key: `fact-${shipmentId}`,
      occurredAtMs: 0,
      receivedAtMs: 0,
      courierStatus: "Consegnata",
      place: null,
      status: "DELIVERED",
      detail: 0,
    },
    changed: true,
    firstOccurrence: true,
    lane,
  });
  return { s: String(shipmentId), change };
}

/** Repeatable random numbers in [0, 1): mulberry32. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Deliveries of the last four months: 30 and 25 of two couriers to a CAP, and too few of a third one elsewhere. */
export async function addLaneHistory(redis: Redis, cap: string): Promise<void> {
  const shipDate = daysAgo(100);
  const rows = [
    // 20 of 30 after one day, 10 after three, over four months.
    ...deliveredShipments(30, (at) => ({
      shipmentId: 1 + at,
      destCap: cap,
      originCap: "20121",
      shipDate,
      deliveredOn: daysAgo(5 + 30 * (at % 4)),
      leadDays: at < 20 ? 1 : 3,
    })),
    ...deliveredShipments(25, (at) => ({
      shipmentId: 100 + at,
      destCap: cap,
      originCap: "20121",
      courier: "BRT_ITA",
      shipDate,
      deliveredOn: daysAgo(5 + 30 * (at % 3)),
      leadDays: 2 + (at % 5),
    })),
    ...deliveredShipments(9, (at) => ({
      shipmentId: 200 + at,
      destCap: "09124",
      courier: "SDA_ITA",
      shipDate: daysAgo(9),
      deliveredOn: daysAgo(4),
      leadDays: 5,
    })),
  ];
  for (const row of rows) {
    await redis.xAdd(companyKeys(0).changes, "*", laneFields(row));
  }
}

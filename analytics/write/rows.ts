/** Tables and their rows, as they are inserted: values in the order of the columns, so that no name goes with each. */

import { type AuditEntry, auditPlace } from "#core/accounts/store/audit-log.ts";
import type { AttemptRow } from "#core/benchmarks/rules/attempt-row.ts";
import type { EventRow } from "#core/benchmarks/rules/event-row.ts";
import { areaOfCap, type LaneRow, weightBand } from "#core/benchmarks/rules/lane.ts";

export interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

export type Row = ReadonlyArray<string | number | boolean | null>;

/** Whose row it is: company and channel as keyed hashes of 16 characters. */
export interface RowOwner {
  readonly shipmentId: number;
  readonly company: string;
  readonly channel: string;
}

const OWNER_COLUMNS = ["shipment_id", "company", "channel"];

/** `schema/deliveries.sql` */
export const DELIVERIES: Table = {
  name: "deliveries",
  columns: [
    ...OWNER_COLUMNS,
    ...["courier", "dest_cap", "origin_cap", "origin_area", "weight_kg", "weight_band"],
    ...["ship_date", "delivered_on", "lead_days", "transit_days", "attempts", "exceptions"],
    ...["is_return", "planned_on", "version", "removed"],
  ],
};

/** @throws for a number that ClickHouse would bend */
export function deliveredShipmentRow(
  { shipmentId, company, channel }: RowOwner,
  lane: LaneRow,
): Row {
  const { originCap, weightKg } = lane;
  const area = (originCap !== null && areaOfCap(originCap)) || "";
  const band = weightKg === null ? "" : weightBand(weightKg);
  return [
    count("shipment_id", shipmentId),
    company,
    channel,
    lane.courier,
    lane.destCap,
    originCap ?? "",
    area,
    weightKg,
    band,
    lane.shipDate,
    lane.deliveredOn,
    count("lead_days", lane.leadDays),
    lane.transitDays,
    count("attempts", lane.attempts),
    count("exceptions", lane.exceptions),
    lane.isReturn,
    promisedDay(lane.plannedOn),
    count("version", lane.version),
    lane.removed ? 1 : 0,
  ];
}

/** `schema/events.sql` */
export const EVENTS: Table = {
  name: "events",
  columns: [
    ...OWNER_COLUMNS,
    ...["fact_key", "courier", "code", "reason_code", "occurred_at", "received_at", "place"],
    ...["status", "status_detail", "terminal", "out_of_order", "is_return"],
    ...[
      "dest_cap",
      "origin_cap",
      "weight_kg",
      "ship_date",
      "estimated_on",
      "version",
      "message_id",
    ],
  ],
};

/** @throws for a number that ClickHouse would bend */
export function eventTableRow({ shipmentId, company, channel }: RowOwner, event: EventRow): Row {
  return [
    count("shipment_id", shipmentId),
    company,
    channel,
    event.key,
    event.courier,
    event.code,
    event.reasonCode ?? "",
    instant(event.occurredAtMs),
    instant(event.receivedAtMs),
    count("place", event.messageIndex),
    event.status ?? "",
    count("status_detail", event.detail),
    event.terminal,
    event.outOfOrder,
    event.isReturn,
    event.destCap ?? "",
    event.originCap ?? "",
    event.weightKg,
    event.shipDate,
    promisedDay(event.estimatedOn),
    count("version", event.version),
    event.messageId ?? "",
  ];
}

/** `schema/attempts.sql` */
export const ATTEMPTS: Table = {
  name: "attempts",
  columns: [
    ...["endpoint_id", "channel", "delivery_id", "event_id", "generation", "attempt"],
    ...["at", "http_status", "error", "latency_ms", "outcome"],
  ],
};

/** @param channel keyed hash @throws for a number that ClickHouse would bend */
export function attemptTableRow(channel: string, attempt: AttemptRow): Row {
  return [
    attempt.endpointId,
    channel,
    attempt.deliveryId,
    attempt.eventId,
    count("generation", attempt.generation),
    count("attempt", attempt.attempt),
    instant(attempt.atMs),
    count("http_status", attempt.httpStatus ?? 0),
    attempt.error ?? "",
    count("latency_ms", attempt.latencyMs),
    attempt.outcome,
  ];
}

/** `schema/audit-log.sql` */
export const AUDIT: Table = {
  name: "audit_log",
  columns: [
    ...["written", "sequence", "tenant", "at", "actor", "action", "target", "before", "after"],
  ],
};

export function auditTableRow(entry: AuditEntry): Row {
  const { id, tenant, atMs, actor, action, target, before, after } = entry;
  const { ms, sequence } = auditPlace(id);
  const values = [before, after].map((value) => JSON.stringify(value));
  return [instant(ms), sequence, tenant, instant(atMs), actor, action, target, ...values];
}

/** What a `Date32` can hold; another year promises nothing. */
function promisedDay(day: string | undefined): string | null {
  return day !== undefined && day >= "1900-01-01" && day <= "2299-12-31" ? day : null;
}

/** What a `DateTime64(3)` can hold; a courier's clock may say anything. */
const FIRST_MS = Date.UTC(1900, 0, 1);
const LAST_MS = Date.UTC(2299, 11, 31);

/** In JSON a whole number is read as it is stored in a `DateTime64(3)`: milliseconds since 1970. */
function instant(ms: number): number {
  if (!Number.isFinite(ms)) throw new Error("an instant is no number");
  return Math.trunc(Math.min(LAST_MS, Math.max(FIRST_MS, ms)));
}

/** ClickHouse reads null as 0 and bends a number that does not fit, so these are checked before. */
function count(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${name} is no number`);
  return value;
}

/** Rows of the tables, as they are inserted. */
import type { AttemptRow } from "#core/domain/attempt-row.ts";
import type { EventRow } from "#core/domain/event-row.ts";
import { areaOfCap, type LaneRow, weightBand } from "#core/domain/lane.ts";

/** Whose row it is: company and channel as keyed hashes of 16 characters. */
export interface RowOwner {
  readonly shipment_id: number;
  readonly company: string;
  readonly channel: string;
}

/** A row of `schema/deliveries.sql`. */
export interface DeliveryRow extends RowOwner {
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

/** @throws for a number that ClickHouse would bend */
export function deliveryRow(owner: RowOwner, lane: LaneRow): DeliveryRow {
  const { originCap, weightKg } = lane;
  const row = {
    ...owner,
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
    removed: lane.removed ? (1 as const) : (0 as const),
  };
  checkNumbers(row, ["shipment_id", "lead_days", "attempts", "exceptions", "version"]);
  return row;
}

/** A row of `schema/events.sql`. */
export interface EventTableRow extends RowOwner {
  readonly fact_key: string;
  readonly courier: string;
  readonly code: string;
  readonly reason_code: string;
  /** UTC, with milliseconds. */
  readonly occurred_at: string;
  readonly received_at: string;
  readonly place: number;
  readonly status: string;
  readonly status_detail: number;
  readonly terminal: boolean;
  readonly out_of_order: boolean;
  readonly is_return: boolean;
  readonly dest_cap: string;
  readonly origin_cap: string;
  readonly weight_kg: number | null;
  readonly ship_date: string;
  readonly version: number;
}

/** @throws for a number that ClickHouse would bend */
export function eventTableRow(owner: RowOwner, event: EventRow): EventTableRow {
  const row = {
    ...owner,
    fact_key: event.key,
    courier: event.courier,
    code: event.code,
    reason_code: event.reasonCode ?? "",
    occurred_at: dateTime(event.occurredAtMs),
    received_at: dateTime(event.receivedAtMs),
    place: event.place,
    status: event.status ?? "",
    status_detail: event.detail,
    terminal: event.terminal,
    out_of_order: event.outOfOrder,
    is_return: event.isReturn,
    dest_cap: event.destCap ?? "",
    origin_cap: event.originCap ?? "",
    weight_kg: event.weightKg,
    ship_date: event.shipDate,
    version: event.version,
  };
  checkNumbers(row, ["shipment_id", "place", "status_detail", "version"]);
  return row;
}

/** A row of `schema/attempts.sql`. */
export interface AttemptTableRow {
  readonly endpoint_id: string;
  readonly channel: string;
  readonly delivery_id: string;
  readonly event_id: string;
  readonly generation: number;
  readonly attempt: number;
  /** UTC, with milliseconds. */
  readonly at: string;
  readonly http_status: number;
  readonly error: string;
  readonly latency_ms: number;
  readonly outcome: string;
}

/** @param channel keyed hash @throws for a number that ClickHouse would bend */
export function attemptTableRow(channel: string, attempt: AttemptRow): AttemptTableRow {
  const row = {
    endpoint_id: attempt.endpointId,
    channel,
    delivery_id: attempt.deliveryId,
    event_id: attempt.eventId,
    generation: attempt.generation,
    attempt: attempt.attempt,
    at: dateTime(attempt.atMs),
    http_status: attempt.httpStatus ?? 0,
    error: attempt.error ?? "",
    latency_ms: attempt.latencyMs,
    outcome: attempt.outcome,
  };
  checkNumbers(row, ["generation", "attempt", "http_status", "latency_ms"]);
  return row;
}

/** What a `DateTime64(3)` can hold; a courier's clock may say anything. */
const FIRST_MS = Date.UTC(1900, 0, 1);
const LAST_MS = Date.UTC(2299, 11, 31);

function dateTime(ms: number): string {
  const text = new Date(Math.min(LAST_MS, Math.max(FIRST_MS, ms))).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 23)}`;
}

/** ClickHouse reads null as 0 and bends a number that does not fit, so these are checked before. */
function checkNumbers<Name extends string>(
  row: Readonly<Record<Name, number>>,
  names: readonly Name[],
): void {
  for (const name of names) {
    if (!Number.isSafeInteger(row[name]) || row[name] < 0) throw new Error(`${name} is no number`);
  }
}

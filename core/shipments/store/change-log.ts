/**
 * The change log: what happened to shipments, read by webhooks, benchmarks and whoever comes next. An entry holds the
 * changes of one commit call or the creations of one call: `s` ids of the shipments, `change` two lines for each, or
 * `created` one. Shipments that were registered again stand there like created ones.
 */
import type { EventRow } from "#core/benchmarks/rules/event-row.ts";
import type { LaneRow } from "#core/benchmarks/rules/lane.ts";
import type { Fields } from "#core/platform/log/log-entry.ts";
import type { StateChange } from "#core/shipments/rules/fold.ts";
import type { ShipmentMeta } from "#core/shipments/rules/shipment.ts";
import type { Status } from "#core/statuses/rules/status.ts";

/** The frozen fact a webhook carries as `data.event` (document 3), and what a trigger needs to know of it. */
export interface ChangeFact {
  readonly key: string;
  readonly occurredAtMs: number;
  readonly receivedAtMs: number;
  /** The sender's `status.description`. */
  readonly courierStatus: string;
  readonly place: string | null;
  /** Mapped; null while the code is not. */
  readonly status: Status | null;
  readonly detail: number;
  /** Of its sampled trace; absent = it is not traced. */
  readonly traceparent?: string;
}

/** What everybody needs to know. */
export interface ChangeSummary {
  readonly companyId: number;
  readonly channelId: number;
  readonly fact: ChangeFact;
  readonly changed: boolean;
  readonly firstOccurrence: boolean;
  /** The pair stays and only the analytics rows are rewritten: nobody is notified. */
  readonly isRewrite?: true;
}

/** What analytics alone needs: larger than the rest. */
export interface ChangeRows {
  readonly lane: LaneRow | null;
  /** The facts that the commit added or put right, on its last change; absent = none. */
  readonly events?: readonly EventRow[];
}

export interface Change extends ChangeSummary, ChangeRows {}

export type ChangeEntry =
  | { readonly type: "created"; readonly shipmentId: number; readonly meta: ShipmentMeta }
  | {
      readonly type: "changed" | "rewritten";
      readonly shipmentId: number;
      readonly change: ChangeSummary;
      readonly readRows: () => ChangeRows;
    };

/** What one fact did to a shipment, as the log tells it. */
export function describeChange({
  fact,
  changed,
  firstOccurrence,
}: Omit<StateChange, "before" | "after">) {
  const { key, event, occurredAtMs, receivedAtMs, mapping, traceparent } = fact;
  return {
    fact: {
      key,
      occurredAtMs,
      receivedAtMs,
      courierStatus: event.status.description,
      place: event.location?.name ?? null,
      status: mapping?.status ?? null,
      detail: mapping?.detail ?? 0,
      ...(traceparent !== undefined && { traceparent }),
    },
    changed,
    firstOccurrence,
  };
}

/** Two lines, the second for analytics, so that the other readers of the log leave it unread. */
export function encodeChange(change: Change): string {
  const { lane, events } = change;
  const rows = events === undefined ? [lane] : [lane, events.map(rowOfEvent)];
  return `${JSON.stringify(rowOfSummary(change))}\n${JSON.stringify(rows)}`;
}

/** The second line of a change that brings none. */
const NO_ROWS = "\n[null]";

/** Rows are positional: names would be half of what stands in the log, five times read. */
function rowOfSummary(change: ChangeSummary): readonly unknown[] {
  const { companyId, channelId, fact } = change;
  return [
    companyId,
    channelId,
    fact.key,
    fact.occurredAtMs,
    fact.receivedAtMs,
    fact.courierStatus,
    fact.place,
    fact.status,
    fact.detail,
    change.changed ? 1 : 0,
    change.firstOccurrence ? 1 : 0,
    change.isRewrite ? 1 : 0,
    ...(fact.traceparent === undefined ? [] : [fact.traceparent]),
  ];
}

// biome-ignore lint/suspicious/noExplicitAny: positional, see rowOfSummary
function summaryOfRow(row: any): ChangeSummary {
  return {
    companyId: row[0],
    channelId: row[1],
    fact: {
      key: row[2],
      occurredAtMs: row[3],
      receivedAtMs: row[4],
      courierStatus: row[5],
      place: row[6],
      status: row[7],
      detail: row[8],
      ...(row[12] !== undefined && { traceparent: row[12] }),
    },
    changed: row[9] === 1,
    firstOccurrence: row[10] === 1,
    ...(row[11] === 1 && { isRewrite: true }),
  };
}

function optionalLast(value: string | undefined): readonly string[] {
  return value === undefined ? [] : [value];
}

function rowOfEvent(event: EventRow): readonly unknown[] {
  return [
    event.key,
    event.courier,
    event.code,
    event.reasonCode,
    event.occurredAtMs,
    event.receivedAtMs,
    event.messageIndex,
    event.status,
    event.detail,
    event.terminal ? 1 : 0,
    event.outOfOrder ? 1 : 0,
    event.isReturn ? 1 : 0,
    event.destCap,
    event.originCap,
    event.weightKg,
    event.shipDate,
    event.version,
    ...(event.estimatedOn === undefined
      ? optionalLast(event.messageId)
      : [event.messageId ?? null, event.estimatedOn]),
  ];
}

// biome-ignore lint/suspicious/noExplicitAny: positional, see rowOfEvent
function eventOfRow(row: any): EventRow {
  return {
    key: row[0],
    courier: row[1],
    code: row[2],
    reasonCode: row[3],
    occurredAtMs: row[4],
    receivedAtMs: row[5],
    messageIndex: row[6],
    status: row[7],
    detail: row[8],
    terminal: row[9] === 1,
    outOfOrder: row[10] === 1,
    isReturn: row[11] === 1,
    destCap: row[12],
    originCap: row[13],
    weightKg: row[14],
    shipDate: row[15],
    version: row[16],
    ...(row[17] != null && { messageId: row[17] }),
    ...(row[18] !== undefined && { estimatedOn: row[18] }),
  };
}

/** A change by itself, as a handler is given it and a dead letter keeps it. */
export function splitChanges(fields: Fields): readonly Fields[] {
  const { s = "", created, change } = fields;
  if (created !== undefined) {
    const metas = created.split("\n");
    return s.split(" ").map((id, at) => ({ s: id, created: metas[at] ?? "" }));
  }
  if (change === undefined) return [fields];
  const changes: Fields[] = [];
  let from = 0;
  for (const id of s.split(" ")) {
    const middle = change.indexOf("\n", from);
    const end = change.indexOf("\n", middle + 1);
    const to = end === -1 ? change.length : end;
    changes.push({ s: id, change: change.slice(from, to) });
    from = to + 1;
  }
  return changes;
}

/** True without reading further for what most entries are. */
export function isChange({ change }: Fields): boolean {
  return change !== undefined;
}

/** @throws when the entry is not one of ours. */
export function decodeChangeEntry(fields: Fields): ChangeEntry {
  const { s, created, change } = fields;
  const shipmentId = Number(s);
  if (created !== undefined) return { type: "created", shipmentId, meta: JSON.parse(created) };
  if (change !== undefined) {
    const end = change.indexOf("\n");
    const summary = summaryOfRow(JSON.parse(change.slice(0, end)));
    const type = summary.isRewrite ? "rewritten" : "changed";
    return { type, shipmentId, change: summary, readRows: () => rowsOf(change) };
  }
  throw new Error("a change log entry is neither a creation nor a change");
}

export interface Owner {
  readonly companyId: number;
  readonly channelId: number;
}

/** Whose change it is, for a reader whom most do not concern: the rest stays unread. @throws when it is not one of ours */
export function ownerOfChange(change: string): Owner {
  const end = change.indexOf(",");
  const companyId = Number(change.slice(1, end));
  const channelId = Number(change.slice(end + 1, change.indexOf(",", end + 1)));
  if (change[0] === "[" && companyId > 0 && channelId > 0) return { companyId, channelId };
  throw new Error("a change names no owner");
}

/** What analytics alone needs. @throws when the change is not one of ours */
export function rowsOf(change: string): ChangeRows {
  if (change.endsWith(NO_ROWS)) return { lane: null };
  const [lane, events] = JSON.parse(change.slice(change.indexOf("\n") + 1));
  return { lane, ...(events && { events: events.map(eventOfRow) }) };
}

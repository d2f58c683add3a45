/**
 * The history of an archived shipment: ids and times of its events in lists of their own, since those of neighbours resemble each
 * other, and what a courier said in words or as personal texts.
 */
import { instantOf } from "#core/platform/time/rome-time.ts";
import {
  openText,
  type Parts,
  type Policy,
  personalValue,
  takenApart,
  wordOf,
} from "./archived-parts.ts";
import { isHistoryField, type Texts } from "./archived-texts.ts";

/** Of members that only some events have. */
const EVENT_POLICY: Policy = {
  open: new Set(["estimatedDeliveryDate"]),
  words: new Set(),
  known: new Set([
    ...["delivery", "estimatedDeliveryDate", "deliveredTo", "signedBy", "podUrl", "isReturn"],
    ...["attemptNumber", "reason", "code", "description"],
  ]),
};

/** A fact as the history holds it (`shipment-codec.ts`). */
type FactRow = readonly [
  eventId: string,
  occurredAt: string,
  receivedAtMs: number,
  messageIndex: number,
  ...rest: unknown[],
];
/** Indices in `rest`. */
const [CODE, DESCRIPTION, PLACE, OTHERS, OWN_NUMBER, OCCURRED] = [1, 2, 3, 6, 7, 10];
/** Members before `rest`. */
const FIXED = 4;
/** Country and postal code of the place, key and message. */
const OPEN = new Set([CODE, 4, 5, 9, 11]);

/** What a state may repeat. */
export interface Happened {
  readonly eventIds: readonly string[];
  /** UTC milliseconds. */
  readonly atMs: readonly number[];
  readonly receivedMs: readonly number[];
  readonly indices: readonly number[];
}

export interface HistoryParts {
  readonly eventIds: readonly string[];
  /** The first as its courier wrote it; the next in seconds after the one before, where their text follows from that. */
  readonly occurred: ReadonlyArray<string | number>;
  /** UTC milliseconds; from the second on after the one before. */
  readonly received: readonly number[];
  /** In their messages. */
  readonly indices: readonly number[];
  /** Fields and how many facts each of them holds. */
  readonly fields: ReadonlyArray<readonly [name: string, facts: number]>;
  readonly rows: readonly unknown[];
}

export function historyApart(
  parts: Parts,
  texts: Texts,
): HistoryParts & Happened & { readonly names: ReadonlySet<string> } {
  const fields: [string, number][] = [];
  const all: FactRow[] = [];
  for (const [name, own] of factRows(texts)) {
    fields.push([name, own.length]);
    all.push(...own);
  }
  const receivedMs = all.map(([, , atMs]) => atMs);
  const instants = all.map(([, occurredAt]) => instantOf(occurredAt));
  return {
    names: new Set(fields.map(([name]) => name)),
    eventIds: all.map(([id]) => id),
    occurred: seconds(all, instants),
    atMs: instants.map((atMs, at) => ownInstant(all[at]) ?? atMs),
    receivedMs,
    received: receivedMs.map((atMs, at) => atMs - (receivedMs[at - 1] ?? 0)),
    indices: all.map(([, , , index]) => index),
    fields,
    rows: all.map((row) => row.slice(FIXED).map((value, at) => cellApart(parts, value, at))),
  };
}

/** When facts came, UTC milliseconds. */
export function receivedTimes(texts: Texts): number[] {
  const times: number[] = [];
  for (const [, rows] of factRows(texts)) for (const [, , atMs] of rows) times.push(atMs);
  return times;
}

function* factRows(texts: Texts): Generator<[name: string, rows: readonly FactRow[]]> {
  for (const [name, stored] of texts) {
    if (isHistoryField(name)) yield [name, stored.value as readonly FactRow[]];
  }
}

/** Where a fact is sorted at another time than its text tells. */
function ownInstant(row: FactRow | undefined): number | undefined {
  const own = row?.[FIXED + OCCURRED];
  return Array.isArray(own) ? own[0] : undefined;
}

function cellApart(parts: Parts, value: unknown, at: number): unknown {
  if (at === OTHERS) return takenApart(parts, EVENT_POLICY, value);
  if (at === OWN_NUMBER) return value === null ? null : personalValue(parts, value);
  if (!Array.isArray(value)) return textApart(parts, value, at);
  return value.map((one) => textApart(parts, one, at));
}

function textApart(parts: Parts, text: unknown, at: number): unknown {
  if (typeof text !== "string") return text;
  if (OPEN.has(at)) return openText(text);
  return at === DESCRIPTION || at === PLACE ? wordOf(parts, text) : personalValue(parts, text);
}

/** @param parts joined again by `join`, row by row */
export function historyJoined(
  { eventIds, occurred, received, indices, fields, rows }: HistoryParts,
  join: (value: unknown) => unknown,
): Happened & { readonly texts: ReadonlyMap<string, string> } {
  const { times, instants } = written(occurred);
  const receivedMs: number[] = [];
  for (const after of received) receivedMs.push((receivedMs.at(-1) ?? 0) + after);
  const all = rows.map((row, at): FactRow => {
    const rest = join(row) as unknown[];
    return [eventIds[at] ?? "", times[at] ?? "", receivedMs[at] ?? 0, indices[at] ?? 0, ...rest];
  });
  const texts = new Map<string, string>();
  let next = 0;
  for (const [name, facts] of fields) {
    texts.set(name, JSON.stringify(all.slice(next, next + facts)).slice(1, -1));
    next += facts;
  }
  const atMs = instants.map((instant, at) => ownInstant(all[at]) ?? instant);
  return { texts, eventIds, receivedMs, indices, atMs };
}

/** Where the time zone stands in an ordinary time. */
const ZONE_AT = "2026-11-10T09:00:00".length;
const ZONE = /^(?:Z|([+-])(\d\d):(\d\d))$/;
const MINUTE_MS = 60_000;

/** @returns null for what is no time zone as it is mostly written */
function zoneMs(text: string): number | null {
  const zone = ZONE.exec(text);
  if (!zone) return null;
  const [, sign, hours, minutes] = zone;
  const ms = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * MINUTE_MS;
  return sign === "-" ? -ms : ms;
}

function textAt(atMs: number, zone: string, shiftMs: number): string {
  return `${new Date(atMs + shiftMs).toISOString().slice(0, ZONE_AT)}${zone}`;
}

/** @param instants of the facts' texts */
function seconds(facts: readonly FactRow[], instants: readonly number[]): (string | number)[] {
  const zone = (facts[0]?.[1] ?? "").slice(ZONE_AT);
  const shiftMs = zoneMs(zone);
  return facts.map(([, text], at) => {
    const atMs = instants[at] ?? 0;
    const after = (atMs - (instants[at - 1] ?? 0)) / 1_000;
    const isTold = at > 0 && shiftMs !== null && Number.isInteger(after);
    return isTold && textAt(atMs, zone, shiftMs) === text ? after : text;
  });
}

function written(occurred: ReadonlyArray<string | number>) {
  const zone = String(occurred[0] ?? "").slice(ZONE_AT);
  const shiftMs = zoneMs(zone) ?? 0;
  const instants: number[] = [];
  const times = occurred.map((one) => {
    const atMs = typeof one === "number" ? (instants.at(-1) ?? 0) + one * 1_000 : instantOf(one);
    instants.push(atMs);
    return typeof one === "number" ? textAt(atMs, zone, shiftMs) : one;
  });
  return { times, instants };
}

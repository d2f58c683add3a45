/**
 * The stored form of a shipment: positional lists instead of named members, what follows from elsewhere left out, then
 * deflate with a preset dictionary. A shipment of 8 events takes a third of its JSON text. While it is under way its state
 * and a short history stand there unpacked, since packing them would cost a third of every commit.
 *
 * The layout is a contract with what is stored already: members are only added at the end of a list, the dictionary is
 * never changed, and another layout has another first byte.
 */
import type { Fact, FactOrder, StoredEvent } from "#core/events/rules/fact.ts";
import { factKeyOf } from "#core/events/store/seen.ts";
import { createDeflater, createInflater } from "#core/platform/redis/deflate.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import type { PickupPoint, ShipmentState } from "#core/shipments/rules/fold.ts";
import type { ShipmentMeta, ShipmentRecord } from "#core/shipments/rules/shipment.ts";
import { STATUSES, type Status, type StatusPair } from "#core/statuses/rules/status.ts";
import { DICTIONARY } from "./codec-dictionary.ts";

const PACKED = 1;
const PLAIN = 2;
/** Small windows: what is packed has a few hundred bytes to a few thousand, and zlib's default allocates 256 KB for it. */
const SMALL = { dictionary: DICTIONARY, memLevel: 4, windowBits: 12 };
const deflate = createDeflater({ ...SMALL, level: 4 });
/** Takes half as long and gives a sixth more: for what is packed with an event, when the journey ends. */
const deflateFast = createDeflater({ ...SMALL, level: 1 });
const inflate = createInflater({ dictionary: DICTIONARY });
/** Characters up to which what is under way stands unpacked: ten facts. */
const PLAIN_LENGTH = 4_096;
/** Length of a fact key: 64 bits in base64url. */
const KEY_LENGTH = 11;

type Row = readonly unknown[];

function pack(text: string): Buffer {
  return deflateFast(text, PACKED);
}

/** A text takes no buffer of its own until it is sent. */
function plain(text: string): string {
  return `${String.fromCharCode(PLAIN)}${text}`;
}

/** @throws when the bytes are not ours. */
function unpack(bytes: Buffer): string {
  switch (bytes[0]) {
    case PACKED:
      return inflate(bytes, 1);
    case PLAIN:
      return bytes.toString("utf8", 1);
    default:
      throw new Error("a shipment is stored in a layout of another version");
  }
}

/** Members at the end of a list that are absent are left out. */
function trimmed(row: unknown[]): Row {
  let end = row.length;
  while (end > 0 && (row[end - 1] ?? null) === null) end -= 1;
  row.length = end;
  return row;
}

/** What mostly is zero is absent then. */
function unlessZero(number: number): number | null {
  return number === 0 ? null : number;
}

/** Meta and state stand in one field: both are read for every commit. */
export function encodeHot(meta: ShipmentMeta, state: ShipmentState): string | Buffer {
  const text = JSON.stringify([metaRow(meta), stateRow(state)]);
  return isUnderWay(state) && text.length <= PLAIN_LENGTH ? plain(text) : pack(text);
}

/** Courier events come, and none has ended the journey yet. */
export function isUnderWay({ mapped }: ShipmentState): boolean {
  return mapped !== null && !mapped.by.terminal;
}

export function decodeHot(bytes: Buffer): { meta: ShipmentMeta; state: ShipmentState } {
  return hotOf(JSON.parse(unpack(bytes)));
}

/** @param rows its text, parsed; what is returned shares lists with them */
export function hotOf(rows: unknown): { meta: ShipmentMeta; state: ShipmentState } {
  const [meta, state] = rows as [Row, Row];
  return { meta: metaOf(meta), state: stateOf(state) };
}

function metaRow(meta: ShipmentMeta): Row {
  return trimmed([
    meta.companyId,
    meta.channelId,
    meta.courier,
    meta.trackingNumber,
    meta.shipDate,
    Number(meta.isPlaceholder),
    meta.orderReference,
    meta.destCap,
    meta.originCap,
    meta.weightKg,
    meta.parcelNumbers,
    meta.isErased ? 1 : null,
    meta.formerReferences,
    meta.plannedOn,
  ]);
}

// biome-ignore lint/suspicious/noExplicitAny: positional, see metaRow
function metaOf(row: any): ShipmentMeta {
  return {
    companyId: row[0],
    channelId: row[1],
    courier: row[2],
    trackingNumber: row[3],
    shipDate: row[4],
    isPlaceholder: row[5] === 1,
    orderReference: row[6] ?? null,
    destCap: row[7] ?? null,
    originCap: row[8] ?? null,
    weightKg: row[9] ?? null,
    ...(row[10] && { parcelNumbers: row[10] }),
    ...(row[11] === 1 && { isErased: true }),
    ...(row[12] && { formerReferences: row[12] }),
    ...(row[13] && { plannedOn: row[13] }),
  };
}

/** The facts that said something stand in one list; most things were said by the same one or two. */
interface Orders {
  readonly keys: readonly string[];
  readonly saidBy: string[];
  readonly rows: Row[];
}

/** @returns the place of a fact in the list, where it is added if it is not there */
function placeOf({ keys, saidBy, rows }: Orders, by: FactOrder): number {
  const known = saidBy.indexOf(by.key);
  if (known !== -1) return known;
  const index = keys.indexOf(by.key);
  const row: unknown[] = [index === -1 ? by.key : index, by.occurredAtMs, by.receivedAtMs];
  if (by.messageIndex !== 0 || by.terminal) row.push(unlessZero(by.messageIndex));
  if (by.terminal) row.push(1);
  rows.push(row);
  return saidBy.push(by.key) - 1;
}

function stateRow(state: ShipmentState): Row {
  const { keys, last, mapped, estimate, proof, pickupPoint, actionUrl, parcels } = state;
  const orders: Orders = { keys, saidBy: [], rows: [] };
  const at = (by: FactOrder) => placeOf(orders, by);
  const mappedRow = (one: ShipmentState["mapped"]) => one && [at(one.by), ...pairRow(one.value)];
  const rows = [
    last && [at(last.by), last.value.place],
    mappedRow(mapped),
    estimate && [at(estimate.by), estimate.value.date, estimate.value.from, estimate.value.to],
    proof && [at(proof.by), proof.value.deliveredTo, proof.value.signedBy, proof.value.podUrl],
    pickupPoint && [at(pickupPoint.by), ...pointRow(pickupPoint.value)],
    actionUrl && [at(actionUrl.by), actionUrl.value],
  ].map((row) => row ?? 0);
  const parcelRows: Row[] = [];
  for (const number in parcels) parcelRows.push([number, mappedRow(parcels[number] ?? null) ?? 0]);
  const isPlain = keys.every((key) => key.length === KEY_LENGTH);
  return [
    pairRow(state.pair),
    isPlain ? keys.join("") : keys,
    state.pairs,
    orders.rows,
    [...rows, parcelRows],
    trimmed([
      state.isReturn ? 1 : null,
      unlessZero(state.attemptNumber),
      unlessZero(state.failedAttempts),
      unlessZero(state.exceptions),
      unlessZero(state.unmapped),
      state.departedAtMs,
      state.aliases.length === 0 ? null : state.aliases,
      unlessZero(state.dropped),
      isSameList(state.entered, state.pairs) ? null : state.entered,
    ]),
  ];
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, at) => text === other[at]);
}

function pointRow(point: PickupPoint): Row {
  const { id, name, address, postalCode, countryCode, availableUntil } = point;
  return [id, name, address, postalCode, countryCode, availableUntil];
}

/** Read index by index: patterns of lists cost twice as much, and every event needs a state. */
// biome-ignore lint/suspicious/noExplicitAny: positional, see stateRow
function stateOf(row: any): ShipmentState {
  const keys = keysOf(row[1]);
  const by: FactOrder[] = row[3].map((order: Row) => orderOf(keys, order));
  const [last, mapped, estimate, proof, point, actionUrl, parcels] = row[4];
  const rest = row[5];
  return {
    pair: pairOf(row[0]),
    last: said(by, last, () => ({ place: last[1] })),
    mapped: said(by, mapped, () => pairOf(mapped, 1)),
    keys,
    dropped: rest[7] ?? 0,
    pairs: row[2],
    estimate: said(by, estimate, () => ({ date: estimate[1], from: estimate[2], to: estimate[3] })),
    proof: said(by, proof, () => ({ deliveredTo: proof[1], signedBy: proof[2], podUrl: proof[3] })),
    pickupPoint: said(by, point, () => pointOf(point)),
    actionUrl: said(by, actionUrl, () => actionUrl[1]),
    aliases: rest[6] ?? [],
    attemptNumber: rest[1] ?? 0,
    failedAttempts: rest[2] ?? 0,
    exceptions: rest[3] ?? 0,
    unmapped: rest[4] ?? 0,
    isReturn: rest[0] === 1,
    departedAtMs: rest[5] ?? null,
    entered: rest[8] ?? row[2],
    parcels: parcels.length === 0 ? {} : parcelsOf(by, parcels),
  };
}

function said<T>(orders: readonly FactOrder[], row: readonly number[] | 0, value: () => T) {
  const by = row === 0 ? undefined : orders[row[0] ?? -1];
  return by === undefined ? null : { by, value: value() };
}

// biome-ignore lint/suspicious/noExplicitAny: positional, see placeOf
function orderOf(keys: readonly string[], row: any): FactOrder {
  return {
    occurredAtMs: row[1],
    terminal: row[4] === 1,
    receivedAtMs: row[2],
    messageIndex: row[3] ?? 0,
    key: typeof row[0] === "number" ? (keys[row[0]] ?? "") : row[0],
  };
}

// biome-ignore lint/suspicious/noExplicitAny: positional, see pointRow
function pointOf([, id, name, address, postalCode, countryCode, availableUntil]: any): PickupPoint {
  return { id, name, address, postalCode, countryCode, availableUntil };
}

function parcelsOf(
  orders: readonly FactOrder[],
  rows: ReadonlyArray<readonly [number: string, mapped: readonly number[]]>,
): ShipmentState["parcels"] {
  return Object.fromEntries(
    rows.flatMap(([number, row]) => {
      const mapped = said(orders, row, () => pairOf(row, 1));
      return mapped ? [[number, mapped] as const] : [];
    }),
  );
}

/** @param packed one text where all are of the usual length */
function keysOf(packed: string | string[]): string[] {
  if (typeof packed !== "string") return packed;
  const keys: string[] = [];
  for (let at = 0; at < packed.length; at += KEY_LENGTH) {
    keys.push(packed.slice(at, at + KEY_LENGTH));
  }
  return keys;
}

function pairRow({ status, detail }: StatusPair): Row {
  return [STATUSES.indexOf(status), detail];
}

/** @param at where it stands in the row */
function pairOf(row: readonly number[], at = 0): StatusPair {
  return { status: statusAt(row[at]), detail: row[at + 1] ?? 0 };
}

/** Statuses are stored by their index in the list: new ones go to its end. */
function statusAt(at: number | undefined): Status {
  const status = STATUSES[at ?? -1];
  if (status === undefined) throw new Error(`no status ${at}`);
  return status;
}

/**
 * Facts of a history as text: lists joined by commas, so that new ones are added to those that stand there without reading
 * them. Packed together, since the same words come again and again in them.
 */
export function factsText(meta: ShipmentMeta, facts: readonly Fact[]): string {
  const rows = facts.map((fact) => factRow(meta, fact));
  return JSON.stringify(rows).slice(1, -1);
}

/** @param underWay more facts are soon to come */
export function encodeFacts(text: string, underWay = false): string | Buffer {
  return underWay && text.length <= PLAIN_LENGTH ? plain(text) : pack(text);
}

export function decodeFactsText(bytes: Buffer): string {
  return unpack(bytes);
}

export function decodeFacts(meta: ShipmentMeta, bytes: Buffer): Fact[] {
  return JSON.parse(`[${unpack(bytes)}]`).map((row: unknown) => factOf(meta, row));
}

function factRow(meta: ShipmentMeta, fact: Fact): Row {
  const { eventId, occurredAt, status, trackingNumber = null, location, ...rest } = fact.event;
  const { name = null, countryCode = null, postalCode = null } = location ?? {};
  // A location without members is stored among the rest.
  const isEmpty = location && name === null && countryCode === null && postalCode === null;
  const others = isEmpty ? { ...rest, location } : rest;
  const { mapping } = fact;
  return trimmed([
    eventId,
    occurredAt,
    fact.receivedAtMs,
    fact.messageIndex,
    mapping && [STATUSES.indexOf(mapping.status), mapping.detail, Number(mapping.terminal)],
    status.code,
    status.description,
    name,
    countryCode,
    postalCode,
    hasMembers(others) ? others : null,
    trackingNumber === meta.trackingNumber ? null : [trackingNumber],
    fact.parked ? 1 : null,
    fact.key === factKeyOf(meta.courier, eventId) ? null : [fact.key],
    instantOf(occurredAt) === fact.occurredAtMs ? null : [fact.occurredAtMs],
    fact.messageId ?? null,
    fact.againMs ?? null,
  ]);
}

function hasMembers(object: object): boolean {
  for (const _ in object) return true;
  return false;
}

// biome-ignore lint/suspicious/noExplicitAny: positional, see factRow
function factOf(meta: ShipmentMeta, row: any): Fact {
  const [eventId, occurredAt, receivedAtMs, messageIndex, mapping, code, description, ...rest] =
    row;
  const [name, countryCode, postalCode, others, ownNumber, parked, ...late] = rest;
  const [key, occurredAtMs, messageId, againMs] = late;
  const trackingNumber = ownNumber ? ownNumber[0] : meta.trackingNumber;
  const location = {
    ...(name != null && { name }),
    ...(countryCode != null && { countryCode }),
    ...(postalCode != null && { postalCode }),
  };
  const event: StoredEvent = {
    eventId,
    ...(trackingNumber !== null && { trackingNumber }),
    occurredAt,
    status: { code, description },
    ...(Object.keys(location).length > 0 && { location }),
    ...others,
  };
  return {
    key: key ? key[0] : factKeyOf(meta.courier, eventId),
    event,
    occurredAtMs: occurredAtMs ? occurredAtMs[0] : instantOf(occurredAt),
    receivedAtMs,
    messageIndex,
    mapping: mapping ? { ...pairOf(mapping), terminal: mapping[2] === 1 } : null,
    ...(parked === 1 && { parked: true }),
    ...(messageId != null && { messageId }),
    ...(againMs != null && { againMs }),
  };
}

/** The cold part without what the meta tells already. */
export function encodeRecord(record: Omit<ShipmentRecord, "id">, meta: ShipmentMeta): Buffer {
  const derived = derivedFromMeta(meta) as Record<string, unknown>;
  const members = Object.entries(record).filter(
    ([name, value]) => !(name in derived) || derived[name] !== value,
  );
  const absent = Object.keys(derived).filter((name) => !(name in record));
  return deflate(JSON.stringify([Object.fromEntries(members), absent]), PACKED);
}

export function decodeRecord(bytes: Buffer, meta: ShipmentMeta): Omit<ShipmentRecord, "id"> {
  return recordOf(JSON.parse(unpack(bytes)), meta);
}

/** @param parsed its text, parsed; what is returned shares members with it */
export function recordOf(parsed: unknown, meta: ShipmentMeta): Omit<ShipmentRecord, "id"> {
  const [members, absent] = parsed as [Partial<ShipmentRecord>, string[]];
  const record: Record<string, unknown> = { ...derivedFromMeta(meta), ...members };
  for (const name of absent) delete record[name];
  return record as unknown as Omit<ShipmentRecord, "id">;
}

function derivedFromMeta(meta: ShipmentMeta) {
  const { companyId, channelId, courier, trackingNumber, shipDate, orderReference } = meta;
  return {
    companyId,
    channelId,
    courier,
    trackingNumber,
    shipDate,
    orderReference,
    isRealTrackingNumber: !meta.isPlaceholder,
  };
}

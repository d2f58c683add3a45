/**
 * The stored form of a shipment: positional lists instead of named members, what follows from elsewhere left out, then
 * deflate with a preset dictionary. A shipment of 8 events takes a third of its JSON text. While it is under way its state
 * and a short history stand there unpacked, since packing them would cost a third of every commit.
 *
 * The layout is a contract with what is stored already: members are only added at the end of a list, the dictionary is
 * never changed, and another layout has another first byte.
 */
import type { Fact, FactOrder, StoredEvent } from "#core/domain/fact.ts";
import type { ShipmentState } from "#core/domain/fold.ts";
import { instantOf } from "#core/domain/rome-time.ts";
import type { ShipmentMeta, ShipmentRecord } from "#core/domain/shipment.ts";
import { STATUSES, type Status, type StatusPair } from "#core/domain/status.ts";
import { DICTIONARY } from "./codec-dictionary.ts";
import { createDeflater, createInflater } from "./deflate.ts";
import { seenPlace } from "./seen.ts";

const PACKED = 1;
const PLAIN = 2;
/** Small windows: what is packed has a few hundred bytes to a few thousand, and zlib's default allocates 256 KB for it. */
const deflate = createDeflater({ dictionary: DICTIONARY, level: 4, memLevel: 4, windowBits: 12 });
const inflate = createInflater({ dictionary: DICTIONARY });
/** Characters up to which what is under way stands unpacked: ten facts. */
const PLAIN_LENGTH = 4_096;
/** Length of a fact key: 64 bits in base64url. */
const KEY_LENGTH = 11;

type Row = readonly unknown[];

function pack(text: string): Buffer {
  return deflate(text, PACKED);
}

/** A text takes no buffer of its own until it is sent. */
function plain(text: string): string {
  return `${String.fromCharCode(PLAIN)}${text}`;
}

/** @throws when the bytes are not ours. */
function unpack(bytes: Uint8Array): string {
  switch (bytes[0]) {
    case PACKED:
      return inflate(bytes, 1);
    case PLAIN:
      return Buffer.from(bytes.buffer, bytes.byteOffset + 1, bytes.length - 1).toString("utf8");
    default:
      throw new Error("a shipment is stored in a layout of another version");
  }
}

/** Members at the end of a list that are absent are left out. */
function trimmed(row: Row): Row {
  const end = row.findLastIndex((member) => member !== null && member !== undefined) + 1;
  return row.slice(0, end);
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

/** Carrier events come, and none has ended the journey yet. */
export function isUnderWay({ mapped }: ShipmentState): boolean {
  return mapped !== null && !mapped.by.terminal;
}

export function decodeHot(bytes: Uint8Array): { meta: ShipmentMeta; state: ShipmentState } {
  const [meta, state] = JSON.parse(unpack(bytes));
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
  ]);
}

// biome-ignore lint/suspicious/noExplicitAny: positional, see metaRow
function metaOf(row: any): ShipmentMeta {
  const [companyId, channelId, courier, trackingNumber, shipDate, placeholder, ...rest] = row;
  const [orderReference = null, destCap = null, originCap = null, weightKg = null] = rest;
  return {
    ...{ companyId, channelId, courier, trackingNumber, shipDate },
    isPlaceholder: placeholder === 1,
    ...{ orderReference, destCap, originCap, weightKg },
  };
}

type SaidRow = readonly [order: number, ...value: unknown[]] | 0;

/** The facts that said something stand in one list; most things were said by the same one or two. */
function stateRow(state: ShipmentState): Row {
  const orders: Row[] = [];
  const places = new Map<string, number>();
  const orderAt = (by: FactOrder): number => {
    const known = places.get(by.key);
    if (known !== undefined) return known;
    const at = state.keys.indexOf(by.key);
    const flags = [unlessZero(by.place), by.terminal ? 1 : null];
    orders.push(trimmed([at === -1 ? by.key : at, by.occurredAtMs, by.receivedAtMs, ...flags]));
    places.set(by.key, orders.length - 1);
    return orders.length - 1;
  };
  const said = <T>(one: { by: FactOrder; value: T } | null, row: (value: T) => Row): SaidRow =>
    one === null ? 0 : [orderAt(one.by), ...row(one.value)];
  const rows = [
    said(state.last, ({ place }) => [place]),
    said(state.mapped, pairRow),
    said(state.estimate, ({ date, from, to }) => [date, from, to]),
    said(state.proof, ({ deliveredTo, signedBy, podUrl }) => [deliveredTo, signedBy, podUrl]),
    said(state.pickupPoint, (point) => [
      ...[point.id, point.name, point.address],
      ...[point.postalCode, point.countryCode, point.availableUntil],
    ]),
    said(state.actionUrl, (url) => [url]),
    Object.entries(state.parcels).map(([number, one]) => [number, said(one, pairRow)]),
  ];
  const isPlain = state.keys.every((key) => key.length === KEY_LENGTH);
  return [
    pairRow(state.pair),
    isPlain ? state.keys.join("") : state.keys,
    state.pairs,
    orders,
    rows,
    trimmed([
      state.isReturn ? 1 : null,
      ...[state.attemptNumber, state.failedAttempts, state.exceptions, state.unmapped].map(
        unlessZero,
      ),
      state.departedAtMs,
      state.aliases.length === 0 ? null : state.aliases,
      unlessZero(state.dropped),
    ]),
  ];
}

// biome-ignore lint/suspicious/noExplicitAny: positional, see stateRow
function stateOf([pair, packedKeys, pairs, orders, rows, rest]: any): ShipmentState {
  const keys: string[] =
    typeof packedKeys === "string" ? (packedKeys.match(KEYS_FORM) ?? []) : packedKeys;
  const [isReturn, attemptNumber, failedAttempts, exceptions, unmapped, ...more] = rest;
  const [departedAtMs = null, aliases, dropped] = more;
  const by = (at: number): FactOrder => {
    const [key, occurredAtMs, receivedAtMs, place, terminal] = orders[at];
    const name: string = typeof key === "number" ? (keys[key] ?? "") : key;
    return { occurredAtMs, terminal: terminal === 1, receivedAtMs, place: place ?? 0, key: name };
  };
  // biome-ignore lint/suspicious/noExplicitAny: positional
  const said = <T>(row: any, value: (row: any) => T) =>
    row === 0 ? null : { by: by(row[0]), value: value(row.slice(1)) };
  const [last, mapped, estimate, proof, pickupPoint, actionUrl, parcels] = rows;
  return {
    pair: pairOf(pair),
    last: said(last, ([place]) => ({ place })),
    mapped: said(mapped, pairOf),
    keys,
    dropped: dropped ?? 0,
    pairs,
    estimate: said(estimate, ([date, from, to]) => ({ date, from, to })),
    proof: said(proof, ([deliveredTo, signedBy, podUrl]) => ({ deliveredTo, signedBy, podUrl })),
    pickupPoint: said(
      pickupPoint,
      ([id, name, address, postalCode, countryCode, availableUntil]) => ({
        ...{ id, name, address, postalCode, countryCode, availableUntil },
      }),
    ),
    actionUrl: said(actionUrl, ([url]) => url),
    aliases: aliases ?? [],
    attemptNumber: attemptNumber ?? 0,
    failedAttempts: failedAttempts ?? 0,
    exceptions: exceptions ?? 0,
    unmapped: unmapped ?? 0,
    isReturn: isReturn === 1,
    departedAtMs,
    parcels: Object.fromEntries(
      parcels.map(([number, one]: [string, unknown]) => [number, said(one, pairOf)]),
    ),
  };
}

const KEYS_FORM = new RegExp(`.{${KEY_LENGTH}}`, "g");

function pairRow({ status, detail }: StatusPair): Row {
  return [STATUSES.indexOf(status), detail];
}

function pairOf([status, detail]: readonly number[]): StatusPair {
  return { status: statusAt(status), detail: detail ?? 0 };
}

/** Statuses are stored by their place in the list: new ones go to its end. */
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
  return facts.map((fact) => JSON.stringify(factRow(meta, fact))).join(",");
}

/** @param underWay more facts are soon to come */
export function encodeFacts(text: string, underWay = false): string | Buffer {
  return underWay && text.length <= PLAIN_LENGTH ? plain(text) : pack(text);
}

export function decodeFactsText(bytes: Uint8Array): string {
  return unpack(bytes);
}

export function decodeFacts(meta: ShipmentMeta, bytes: Uint8Array): Fact[] {
  return JSON.parse(`[${unpack(bytes)}]`).map((row: unknown) => factOf(meta, row));
}

function factRow(meta: ShipmentMeta, fact: Fact): Row {
  const { eventId, occurredAt, status, trackingNumber = null, location, ...rest } = fact.event;
  const { name = null, countryCode = null, postalCode = null } = location ?? {};
  // A location without members is told among the rest.
  const isEmpty = location && name === null && countryCode === null && postalCode === null;
  const others = { ...rest, ...(isEmpty && { location }) };
  const isOwnKey = fact.key === seenPlace(meta.courier, eventId).factKey;
  return trimmed([
    eventId,
    occurredAt,
    fact.receivedAtMs,
    fact.place,
    fact.mapping ? [...pairRow(fact.mapping), Number(fact.mapping.terminal)] : null,
    status.code,
    status.description,
    ...[name, countryCode, postalCode],
    Object.keys(others).length === 0 ? null : others,
    trackingNumber === meta.trackingNumber ? null : [trackingNumber],
    fact.setAside ? 1 : null,
    isOwnKey ? null : [fact.key],
    instantOf(occurredAt) === fact.occurredAtMs ? null : [fact.occurredAtMs],
  ]);
}

// biome-ignore lint/suspicious/noExplicitAny: positional, see factRow
function factOf(meta: ShipmentMeta, row: any): Fact {
  const [eventId, occurredAt, receivedAtMs, place, mapping, code, description, ...rest] = row;
  const [name, countryCode, postalCode, others, ownNumber, setAside, key, occurredAtMs] = rest;
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
    key: key ? key[0] : seenPlace(meta.courier, eventId).factKey,
    event,
    occurredAtMs: occurredAtMs ? occurredAtMs[0] : instantOf(occurredAt),
    receivedAtMs,
    place,
    mapping: mapping ? { ...pairOf(mapping), terminal: mapping[2] === 1 } : null,
    ...(setAside === 1 && { setAside: true }),
  };
}

/** The cold part without what the meta tells already. */
export function encodeRecord(record: Omit<ShipmentRecord, "id">, meta: ShipmentMeta): Buffer {
  const told = toldByMeta(meta) as Record<string, unknown>;
  const members = Object.entries(record).filter(
    ([name, value]) => !(name in told) || told[name] !== value,
  );
  const absent = Object.keys(told).filter((name) => !(name in record));
  return pack(JSON.stringify([Object.fromEntries(members), absent]));
}

export function decodeRecord(bytes: Uint8Array, meta: ShipmentMeta): Omit<ShipmentRecord, "id"> {
  const [members, absent] = JSON.parse(unpack(bytes));
  const record = { ...toldByMeta(meta), ...members };
  for (const name of absent) delete record[name];
  return record;
}

function toldByMeta(meta: ShipmentMeta) {
  const { companyId, channelId, courier, trackingNumber, shipDate, orderReference } = meta;
  return {
    ...{ companyId, channelId, courier, trackingNumber, shipDate, orderReference },
    isRealTrackingNumber: !meta.isPlaceholder,
  };
}

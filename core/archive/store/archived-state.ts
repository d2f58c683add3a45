/** State and creation record of an archived shipment, without what its history also contains, and with marks for what is personal. */

import { factKeyOf } from "#core/events/store/seen.ts";
import { Consignee, OrderItem, Parcel, ShipmentInput } from "#core/shipments/rules/shipment.ts";
import type { Happened } from "./archived-history.ts";
import {
  openText,
  type Parts,
  type Policy,
  personalValue,
  takenApart,
  wordOf,
} from "./archived-parts.ts";

const { monetary, planning, customAttributes } = ShipmentInput.properties;
const SCHEMAS = [ShipmentInput, Consignee, Parcel, OrderItem, monetary, planning, customAttributes];

const RECORD_POLICY: Policy = {
  open: new Set([
    ...["orderDate", "origin", "language", "deliveryDate", "latestShipDate"],
    ...["latestDeliveryDate", "currency", "boxCode", "country", "originCountry"],
    ...["fields", "apiKey"],
  ]),
  words: new Set(),
  known: new Set([
    ...SCHEMAS.flatMap(({ properties }) => Object.keys(properties)),
    ...["companyId", "channelId", "createdAtMs"],
    ...["corrections", "atMs", "fields", "apiKey"],
  ]),
};
const ITEMS_POLICY: Policy = { ...RECORD_POLICY, words: new Set(["name"]) };

/** @param record with the names of members that it has not */
export function recordApart(parts: Parts, record: unknown): unknown {
  const [members, absent] = record as readonly [
    Readonly<Record<string, unknown>>,
    readonly string[],
  ];
  for (const name in members) {
    if (!RECORD_POLICY.known.has(name)) return personalValue(parts, [members, absent]);
  }
  const open: Record<string, unknown> = {};
  for (const name in members) {
    const policy = name === "orderItems" ? ITEMS_POLICY : RECORD_POLICY;
    open[name] = takenApart(parts, policy, members[name], name);
  }
  return [open, absent.map(openText)];
}

/** Indices in the meta's row (`shipment-codec.ts`): courier, ship date, destination and origin. */
const OPEN_META = new Set([2, 4, 7, 8]);
/** Indices among what facts have said. */
const [LAST, ESTIMATE, PARCELS] = [0, 2, 6];
/** Indices at the end of a state. */
const [DEPARTED, ALIASES] = [5, 6];
/** Stands for the keys of the events, where the state has those of no others. */
const KEYS_OF_HISTORY = 0;
const AT = "@";

type MetaRow = readonly unknown[];
type OrderRow = readonly [key: number | string, atMs: number, receivedMs: number, ...unknown[]];
type SaidRow = readonly [order: number, ...unknown[]];
type StateRow = readonly [
  pair: unknown,
  keys: unknown,
  pairs: readonly string[],
  orders: readonly OrderRow[],
  said: ReadonlyArray<SaidRow | 0>,
  rest: readonly unknown[],
];

/** @param own the keys of its events */
export function stateApart(parts: Parts, row: unknown, happened: Happened, own: OwnKeys): unknown {
  const [meta, state] = row as readonly [MetaRow, StateRow];
  const [pair, keys, pairs, orders, said, rest] = state;
  const isOfHistory = keys === own.text;
  const openKeys = Array.isArray(keys) ? keys.map(openText) : openText(String(keys));
  const metaRow = meta.map((value, at) => {
    if (OPEN_META.has(at) && typeof value === "string") return openText(value);
    return typeof value === "number" || value === null ? value : personalValue(parts, value);
  });
  return [
    metaRow,
    [
      pair,
      isOfHistory ? KEYS_OF_HISTORY : openKeys,
      pairs.map(openText),
      orders.map((row) => (isOfHistory ? shortOrder(row, own, happened) : orderApart(row))),
      said.map((row, at) => saidApart(parts, row, at)),
      rest.map((value, at) => restApart(parts, value, at, happened)),
    ],
  ];
}

export interface OwnKeys {
  /** As the state has them, if it has those of the history: sorted, 8 random bytes an event. */
  readonly text: string;
  /** Facts by the place of their keys. */
  readonly facts: readonly number[];
}

/** @param row a state */
export function keysOfState(row: unknown, happened: Happened): OwnKeys {
  return keysOf((row as readonly [MetaRow, StateRow])[0], happened);
}

function keysOf([, , courier]: MetaRow, { eventIds }: Happened): OwnKeys {
  const own = eventIds.map((eventId, fact) => ({ key: factKeyOf(String(courier), eventId), fact }));
  own.sort((one, other) => (one.key < other.key ? -1 : 1));
  return { text: own.map(({ key }) => key).join(""), facts: own.map(({ fact }) => fact) };
}

function orderApart([key, ...others]: OrderRow): unknown {
  return [typeof key === "string" ? openText(key) : key, ...others];
}

/** The fact alone where the history has the rest; a second number means that it ended the journey. */
function shortOrder(row: OrderRow, own: OwnKeys, happened: Happened): unknown {
  const [key] = row;
  const fact = typeof key === "number" ? own.facts[key] : undefined;
  if (fact === undefined) return orderApart(row);
  const short = row[4] === 1 ? [fact, 1] : [fact];
  const long = longOrder(short, own, happened);
  const isSame = long.length === row.length && long.every((value, at) => value === row[at]);
  return isSame ? short : row;
}

function longOrder([fact = 0, terminal]: readonly number[], own: OwnKeys, happened: Happened) {
  const index = happened.indices[fact] ?? 0;
  const row: unknown[] = [own.facts.indexOf(fact), happened.atMs[fact], happened.receivedMs[fact]];
  if (index !== 0 || terminal === 1) row.push(index === 0 ? null : index);
  if (terminal === 1) row.push(1);
  return row;
}

function saidApart(parts: Parts, row: SaidRow | 0, at: number): unknown {
  if (row === 0) return 0;
  if (at === PARCELS) return row.length === 0 ? [] : personalValue(parts, row);
  return row.map((value) => {
    if (typeof value !== "string") return value;
    if (at === LAST) return wordOf(parts, value);
    return at === ESTIMATE ? openText(value) : personalValue(parts, value);
  });
}

function restApart(parts: Parts, value: unknown, at: number, { atMs }: Happened): unknown {
  if (at === ALIASES) return value === null ? null : personalValue(parts, value);
  if (at === DEPARTED && typeof value === "number") {
    const fact = atMs.indexOf(value);
    return fact === -1 ? value : openText(`${AT}${fact}`);
  }
  return Array.isArray(value) ? value.map(openText) : value;
}

/**
 * @param row as it was taken apart, its marks resolved
 * @param known the keys of its events, where they have been computed before
 */
export function stateJoined(row: unknown, happened: Happened, known?: OwnKeys): unknown {
  const [meta, [pair, keys, pairs, orders, said, rest]] = row as readonly [MetaRow, StateRow];
  const departed = rest[DEPARTED];
  const isMarked = typeof departed === "string";
  const own = known ?? keysOf(meta, happened);
  return [
    meta,
    [
      pair,
      keys === KEYS_OF_HISTORY ? own.text : keys,
      pairs,
      orders.map((order) => (order.length <= 2 ? longOrder(order as never, own, happened) : order)),
      said,
      isMarked
        ? rest.map((value, at) =>
            at === DEPARTED ? happened.atMs[Number(departed.slice(1))] : value,
          )
        : rest,
    ],
  ];
}

/**
 * A shipment as the archive keeps it, taken apart: what is not personal as texts that resemble those of its neighbours, words that
 * come again and again, and all else as one packed text that is to be encrypted. A text is personal unless it is named here.
 */

import { createDeflater, createInflater } from "#core/platform/redis/deflate.ts";
import type { ShipmentMeta } from "#core/shipments/rules/shipment.ts";
import { PERSONAL_DICTIONARY } from "#core/shipments/store/codec-dictionary.ts";
import { decodeHot, encodeFacts, hotOf, recordOf } from "#core/shipments/store/shipment-codec.ts";
import {
  fieldsOf,
  type HotShipment,
  headOf,
  type ShipmentWithHistory,
  shipmentWithHistory,
} from "#core/shipments/store/shipments.ts";
import { historyApart, historyJoined } from "./archived-history.ts";
import { createJoining, openText, type Parts, personalValue } from "./archived-parts.ts";
import {
  keysOfState,
  type OwnKeys,
  recordApart,
  stateApart,
  stateJoined,
} from "./archived-state.ts";
import { HEAD, RECORD, STATE, type Texts } from "./archived-texts.ts";

/** Everything that is kept about a shipment. */
export interface WholeShipment {
  readonly id: number;
  /** Its hash: fields and values in turn. */
  readonly fields: readonly Buffer[];
  /** JSON, newest first. */
  readonly messages: readonly string[];
  /** Ids and JSON in turn. */
  readonly releases: readonly string[];
  /** What its recipient was told about, and when, in turn. */
  readonly topics: readonly string[];
  /** Tracking numbers that are taken by it on its channel. */
  readonly numbers: readonly string[];
  /** Sender accounts under which its references stand; those of its channel may change later. */
  readonly accounts: readonly string[];
}

/** What its rows and indices are made of. */
export interface ShipmentFacts extends ShipmentWithHistory {
  readonly version: number;
  readonly rank: number;
  /** As it stands in the hash. */
  readonly head: string;
  readonly meta: ShipmentMeta;
}

/** As a row of the archive holds it. The layout is a contract with what is stored already. */
export interface ArchivedParts {
  /** Ids of its events, JSON. */
  readonly eventIds: string;
  /** When they happened, JSON: see `archived-history.ts`. */
  readonly occurred: string;
  /** Everything else that is not personal, JSON; marks stand for the rest (`archived-parts.ts`). */
  readonly rest: string;
  readonly words: readonly string[];
  /** Packed, to be encrypted. */
  readonly personal: Buffer;
}

const deflate = createDeflater({ dictionary: PERSONAL_DICTIONARY, level: 6 });
const inflate = createInflater({ dictionary: PERSONAL_DICTIONARY });
/** The first byte of what is packed: another layout has another one. */
const LAYOUT = 2;

type Beside = Pick<WholeShipment, "messages" | "releases" | "numbers" | "topics" | "accounts">;

interface Apart extends Parts {
  readonly eventIds: readonly string[];
  readonly occurred: ReadonlyArray<string | number>;
  /** What is kept outside of the hash; times and indices of the events, their fields, their rows; other fields and texts in turn. */
  readonly rest: readonly [
    beside: unknown,
    received: readonly number[],
    indices: readonly number[],
    fields: ReadonlyArray<readonly [name: string, facts: number]>,
    rows: readonly unknown[],
    others: readonly unknown[],
  ];
}

/** @param texts of its hash */
export function packWhole(beside: Beside, texts: Texts): ArchivedParts {
  const { apart, keys } = takenApart(beside, texts);
  // What would not come back exactly stands there as personal texts.
  const parts = isExact(apart, keys, texts) ? apart : plainly(beside, texts);
  return {
    eventIds: JSON.stringify(parts.eventIds),
    occurred: JSON.stringify(parts.occurred),
    rest: JSON.stringify(parts.rest),
    words: parts.words,
    personal: deflate(JSON.stringify(parts.personal), LAYOUT),
  };
}

function takenApart(beside: Beside, texts: Texts): { apart: Apart; keys: OwnKeys | undefined } {
  const parts: Parts = { words: [], personal: [] };
  const besideMark = personalValue(parts, besideRow(beside));
  const history = historyApart(parts, texts);
  const state = texts.get(STATE);
  const keys = state && keysOfState(state.value, history);
  const others: unknown[] = [];
  for (const [name, { text, value }] of texts) {
    if (history.names.has(name)) continue;
    others.push(openText(name));
    if (name === HEAD) others.push(openText(text));
    else if (name === STATE && keys) others.push(stateApart(parts, value, history, keys));
    else if (name === RECORD) others.push(recordApart(parts, value));
    else others.push(personalValue(parts, text));
  }
  const { eventIds, occurred, received, indices, fields, rows } = history;
  const rest = [besideMark, received, indices, fields, rows, others] as const;
  return { apart: { ...parts, eventIds, occurred, rest }, keys };
}

function plainly(beside: Beside, texts: Texts): Apart {
  const personal = [besideRow(beside), ...[...texts.values()].map(({ text }) => text)];
  const others = [...texts.keys()].flatMap((name) => [openText(name), "p"]);
  return { words: [], personal, eventIds: [], occurred: [], rest: ["p", [], [], [], [], others] };
}

/** Members are only added at its end. */
type BesideRow = readonly [
  messages: readonly string[],
  releases: readonly string[],
  numbers: readonly string[],
  topics: readonly string[],
  accounts?: readonly string[],
];

function besideRow({ messages, releases, numbers, topics, accounts }: Beside): BesideRow {
  return [messages, releases, numbers, topics, accounts];
}

function isExact(apart: Apart, keys: OwnKeys | undefined, texts: Texts): boolean {
  const again = joined(apart, keys).texts;
  if (again.size !== texts.size) return false;
  for (const [name, { text }] of texts) if (again.get(name) !== text) return false;
  return true;
}

/** @param keys of its events, where they have been computed before */
function joined({ eventIds, occurred, rest, words, personal }: Apart, keys?: OwnKeys) {
  const join = createJoining({ words, personal });
  const [besideMark, received, indices, fields, rows, others] = rest;
  const beside = join(besideMark) as BesideRow;
  const history = historyJoined({ eventIds, occurred, received, indices, fields, rows }, join);
  const texts = new Map(history.texts);
  for (let at = 0; at < others.length; at += 2) {
    const name = join(others[at]) as string;
    const value = join(others[at + 1]);
    if (typeof value === "string") texts.set(name, value);
    else if (name === STATE) texts.set(name, JSON.stringify(stateJoined(value, history, keys)));
    else texts.set(name, JSON.stringify(value));
  }
  return { beside, texts };
}

/**
 * Its fields are not packed: most of them are read once.
 * @throws when the parts are not ours
 */
export function unpackWhole(id: number, parts: ArchivedParts): WholeShipment {
  if (parts.personal[0] !== LAYOUT) {
    throw new Error("a shipment is archived in a layout of another version");
  }
  const { beside, texts } = joined({
    eventIds: JSON.parse(parts.eventIds),
    occurred: JSON.parse(parts.occurred),
    rest: JSON.parse(parts.rest),
    words: [...parts.words],
    personal: JSON.parse(inflate(parts.personal, 1)),
  });
  const fields = [...texts].flatMap(([name, text]) => {
    const bytes = name === HEAD ? text : encodeFacts(text, true);
    return [Buffer.from(name), Buffer.from(bytes)];
  });
  const [messages, releases, numbers, topics, accounts = []] = beside;
  return { id, fields, messages, releases, numbers, topics, accounts };
}

/** @returns null if the fields are not those of a shipment */
export function factsOfWhole({
  id,
  fields,
}: Pick<WholeShipment, "id" | "fields">): ShipmentFacts | null {
  const found = shipmentWithHistory(id, fields);
  const byName = fieldsOf(fields);
  const [head, hot] = [byName.get(HEAD), byName.get(STATE)];
  if (!found || !head || !hot) return null;
  const { version, rank } = headOf(String(head));
  return { ...found, head: String(head), version, rank, meta: decodeHot(hot).meta };
}

/** The same of texts that have been unpacked. */
export type LeavingFacts = Omit<ShipmentFacts, "facts" | "base">;

/** What tells whether a shipment is over, before the rest of it is unpacked. */
export type Hot = Pick<HotShipment, "meta" | "state" | "updated">;

/** @returns null if it is not wanted, or the texts are not those of a shipment */
export function factsOfTexts(
  id: number,
  texts: Texts,
  isWanted: (hot: Hot) => boolean,
): LeavingFacts | null {
  const [head, hot, record] = [HEAD, STATE, RECORD].map((name) => texts.get(name));
  if (!head || !hot || !record) return null;
  const { meta, state } = hotOf(hot.value);
  const { version, rank, updated } = headOf(head.text);
  if (!isWanted({ meta, state, updated })) return null;
  const statusUpdatedAtMs = updated === 0 ? null : updated * 1_000;
  const given = recordOf(record.value, meta);
  const shipment = { record: { id, ...given }, state, statusUpdatedAtMs, lane: meta };
  return { shipment, head: head.text, version, rank, meta };
}

/** A shipment as the archive keeps it: what its keys in Redis hold, as one text. */
import type { ShipmentMeta } from "#core/domain/shipments/shipment.ts";
import { createDeflater, createInflater } from "#core/redis/client/deflate.ts";
import { factKeyOf } from "#core/redis/log/seen.ts";
import { DICTIONARY } from "./codec-dictionary.ts";
import { decodeFactsText, decodeHot, encodeFacts } from "./shipment-codec.ts";
import { fieldsOf, type ShipmentWithHistory, shipmentWithHistory } from "./shipments.ts";

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
}

/** Level 9 takes three times as long as this one, for 1 byte in 100. */
const deflate = createDeflater({ dictionary: DICTIONARY, level: 6 });
const inflate = createInflater({ dictionary: DICTIONARY });
/** The first byte: another layout has another one. */
const LAYOUT = 1;

/** What its rows and indices are made of. */
export interface ShipmentFacts extends ShipmentWithHistory {
  readonly version: number;
  readonly rank: number;
  /** As it stands in the hash. */
  readonly head: string;
  readonly meta: ShipmentMeta;
}

/** What stands beside the hash. The layout is a contract with what is stored already: members are only added at its end. */
type Beside = readonly [
  messages: readonly string[],
  releases: readonly string[],
  numbers: readonly string[],
  topics: readonly string[],
];

const HEAD = "v";
const STATE = "st";
const HISTORY = "h";
/** Name of a state whose keys are left out: they follow from the history. */
const STATE_WITHOUT_KEYS = "st=";
const NO_KEYS = '"="';

/**
 * Lines: the head, what stands beside the hash, then names and texts of its other fields in turn. They are JSON, in which no line
 * ends, and stand as they are, so that the dictionary knows them.
 */
export function packWhole({
  fields,
  messages,
  releases,
  numbers,
  topics,
}: Omit<WholeShipment, "id">): Buffer {
  const texts = new Map<string, string>();
  let head = "";
  for (const [name, bytes] of fieldsOf(fields)) {
    if (name === HEAD) head = String(bytes);
    else texts.set(name, decodeFactsText(bytes));
  }
  const beside: Beside = [messages, releases, numbers, topics];
  const lines = [head, JSON.stringify(beside)];
  const keys = keysOf(texts);
  for (const [name, text] of texts) {
    const isShort = name === STATE && text.includes(keys) && !text.includes(NO_KEYS);
    if (isShort) lines.push(STATE_WITHOUT_KEYS, text.replace(keys, NO_KEYS));
    else lines.push(name, text);
  }
  return deflate(lines.join("\n"), LAYOUT);
}

/** @throws when the bytes are not ours */
export function unpackWhole(id: number, bytes: Buffer): WholeShipment {
  const [head = "", beside = "", ...lines] = unpacked(bytes).split("\n");
  const [messages, releases, numbers, topics]: Beside = JSON.parse(beside);
  const names = lines.filter((_, at) => at % 2 === 0);
  const texts = new Map(names.map((name, at) => [name, lines[2 * at + 1] ?? ""]));
  const fields = [...texts].flatMap(([name, text]) => {
    const isShort = name === STATE_WITHOUT_KEYS;
    const full = isShort ? text.replace(NO_KEYS, keysOf(texts)) : text;
    return [Buffer.from(isShort ? STATE : name), Buffer.from(encodeFacts(full))];
  });
  return {
    id,
    fields: [Buffer.from(HEAD), Buffer.from(head), ...fields],
    messages,
    releases,
    numbers,
    topics,
  };
}

/** The keys of the events in the history, as the state has them if it has those of no others: 8 random bytes an event. */
function keysOf(texts: ReadonlyMap<string, string>): string {
  const state = texts.get(STATE) ?? texts.get(STATE_WITHOUT_KEYS) ?? "[[]]";
  const [[, , courier]] = JSON.parse(state);
  const facts: [eventId: string][] = JSON.parse(`[${texts.get(HISTORY) ?? ""}]`);
  return `"${facts.map(([eventId]) => factKeyOf(courier, eventId)).join("")}"`;
}

function unpacked(bytes: Buffer): string {
  if (bytes[0] !== LAYOUT) throw new Error("a shipment is archived in a layout of another version");
  return inflate(bytes, 1);
}

/** @returns null if the fields are not those of a shipment */
export function factsOfWhole({ id, fields }: WholeShipment): ShipmentFacts | null {
  const found = shipmentWithHistory(id, fields);
  const byName = fieldsOf(fields);
  const [head, hot] = [byName.get(HEAD), byName.get("st")];
  if (!found || !head || !hot) return null;
  const [version, rank] = String(head).split(" ").map(Number);
  const { meta } = decodeHot(hot);
  return { ...found, head: String(head), version: version ?? 0, rank: rank ?? 0, meta };
}

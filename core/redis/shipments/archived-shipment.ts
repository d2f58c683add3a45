/** A shipment as the archive keeps it: what its keys in Redis hold, as one text. */
import type { ShipmentMeta } from "#core/domain/shipments/shipment.ts";
import { createDeflater, createInflater } from "#core/redis/client/deflate.ts";
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

/** Packed once and seldom read: the level costs some 30 us more than that of a shipment under way. */
const deflate = createDeflater({ dictionary: DICTIONARY, level: 9 });
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

/** The layout is a contract with what is stored already: members are only added at its end. */
type Body = readonly [
  head: string,
  fields: readonly (readonly [name: string, text: string])[],
  messages: readonly string[],
  releases: readonly string[],
  numbers: readonly string[],
  topics: readonly string[],
];

const HEAD = "v";

export function packWhole(whole: WholeShipment): Buffer {
  const fields = [...fieldsOf(whole.fields)];
  const head = String(fields.find(([name]) => name === HEAD)?.[1] ?? "");
  const texts = fields.flatMap(([name, bytes]) =>
    name === HEAD ? [] : [[name, decodeFactsText(bytes)] as const],
  );
  const { messages, releases, numbers, topics } = whole;
  const body: Body = [head, texts, messages, releases, numbers, topics];
  return deflate(JSON.stringify(body), LAYOUT);
}

/** @throws when the bytes are not ours */
export function unpackWhole(id: number, bytes: Buffer): WholeShipment {
  const [head, texts, messages, releases, numbers, topics]: Body = JSON.parse(unpacked(bytes));
  const fields = texts.flatMap(([name, text]) => [
    Buffer.from(name),
    Buffer.from(encodeFacts(text)),
  ]);
  return {
    id,
    fields: [Buffer.from(HEAD), Buffer.from(head), ...fields],
    messages,
    releases,
    numbers,
    topics,
  };
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

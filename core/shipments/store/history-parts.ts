/**
 * Where the facts of a history stand in the hash of their shipment, in the order they were applied:
 *
 * | field           | holds                                                           |
 * |-----------------|-----------------------------------------------------------------|
 * | `h0`, `h1`, ... | full parts, packed                                              |
 * | `h`             | the open part; packed when it is long or the journey has ended   |
 * | `f0`, `f1`, ... | unpacked: what single commits have added since                   |
 *
 * While a shipment is under way a commit writes its own facts alone; the unpacked ones go into the open part when they have
 * become many, and when the journey ends. The shipment's head says how many facts are unpacked.
 */
import type { Fact } from "#core/events/rules/fact.ts";
import type { ShipmentMeta } from "#core/shipments/rules/shipment.ts";
import { decodeFacts, decodeFactsText, encodeFacts, factsText } from "./shipment-codec.ts";

const OPEN_PART = "h";
/** Bounds what is packed and unpacked at once. */
const PART_FACTS = 32;
/** With the other fields they fill a hash table of 8: a fifth one would double it, and it never shrinks again. */
const UNPACKED_FACTS = 4;
const UNPACKED_FIELDS = Array.from({ length: UNPACKED_FACTS }, (_, n) => `f${n}`);

/** What a commit does to a history. */
export interface HistoryChange {
  readonly meta: ShipmentMeta;
  /** Facts that stand there, and how many of them are unpacked. */
  readonly known: number;
  readonly unpacked: number;
  readonly facts: readonly Fact[];
  /** The facts take the place of those that stand there. */
  readonly isReplaced: boolean;
  /** More facts are soon to come. */
  readonly isUnderWay: boolean;
}

export interface Parts {
  /** Field and value in turn. */
  readonly fields: ReadonlyArray<string | Buffer>;
  /** Fields that go. */
  readonly dropped: readonly string[];
  /** Facts that are unpacked now. */
  readonly unpacked: number;
}

/** Fields to be read for a change that packs what stands in them. */
export const REPACKED_FIELDS = [OPEN_PART, ...UNPACKED_FIELDS] as const;

/** The change cannot be written without the values of `REPACKED_FIELDS`. */
export function repacks(change: HistoryChange): boolean {
  if (change.isReplaced || change.facts.length === 0 || staysLoose(change)) return false;
  return openFacts(change) > 0;
}

/** @param stored values of `REPACKED_FIELDS`, where it is needed */
export function partsOf(change: HistoryChange, stored: readonly (Buffer | null)[]): Parts {
  const { meta, unpacked, facts } = change;
  if (facts.length === 0) return { fields: [], dropped: [], unpacked };
  if (staysLoose(change)) {
    const value = encodeFacts(factsText(meta, facts), true);
    return {
      fields: [UNPACKED_FIELDS[unpacked] ?? "", value],
      dropped: [],
      unpacked: unpacked + facts.length,
    };
  }
  const { fields, full } = packedParts(change, stored);
  const gone = change.isReplaced ? fullParts(change) - full : 0;
  const parts = Array.from({ length: Math.max(0, gone) }, (_, n) => `${OPEN_PART}${full + n}`);
  return { fields, dropped: [...UNPACKED_FIELDS.slice(0, unpacked), ...parts], unpacked: 0 };
}

/** Loose facts stay within one part. */
function staysLoose(change: HistoryChange): boolean {
  const { unpacked, facts, isReplaced, isUnderWay } = change;
  if (!isUnderWay || isReplaced || unpacked + facts.length > UNPACKED_FACTS) return false;
  return openFacts(change) + facts.length < PART_FACTS;
}

function fullParts({ known, unpacked }: HistoryChange): number {
  return Math.floor((known - unpacked) / PART_FACTS);
}

/** Facts after the full parts. */
function openFacts(change: HistoryChange): number {
  return change.known - fullParts(change) * PART_FACTS;
}

function packedParts(change: HistoryChange, stored: readonly (Buffer | null)[]) {
  const { meta, facts, isReplaced, isUnderWay } = change;
  const capacity = PART_FACTS - (isReplaced ? 0 : openFacts(change));
  const before = isReplaced ? [] : stored.map((part) => (part ? decodeFactsText(part) : ""));
  const first = [...before, factsText(meta, facts.slice(0, capacity))];
  let text = first.filter((one) => one !== "").join(",");
  const fields: Array<string | Buffer> = [];
  let full = isReplaced ? 0 : fullParts(change);
  for (let next = capacity; next <= facts.length; next += PART_FACTS, full += 1) {
    fields.push(`${OPEN_PART}${full}`, encodeFacts(text));
    text = factsText(meta, facts.slice(next, next + PART_FACTS));
  }
  fields.push(OPEN_PART, encodeFacts(text, isUnderWay));
  return { fields, full };
}

/** @param fields of the shipment's hash */
export function historyOf(meta: ShipmentMeta, fields: ReadonlyMap<string, Buffer>): Fact[] {
  const parts: Buffer[] = [];
  for (let part = fields.get(`${OPEN_PART}0`); part; part = fields.get(OPEN_PART + parts.length)) {
    parts.push(part);
  }
  for (const name of REPACKED_FIELDS) {
    const part = fields.get(name);
    if (part) parts.push(part);
  }
  return parts.flatMap((part) => decodeFacts(meta, part));
}

/** The texts of a shipment's hash on its way to the archive: unpacked and parsed when first needed, and once. */
import { decodeFactsText } from "#core/shipments/store/shipment-codec.ts";
import { fieldsOf } from "#core/shipments/store/shipments.ts";

export const HEAD = "v";
export const STATE = "st";
export const RECORD = "c";
/** Fields that hold facts (`history-parts.ts`). */
const HISTORY_FIELD = /^[hf]\d*$/;

export interface StoredText {
  readonly text: string;
  /** A list of facts, a state or a record, as it stands there; null where a field holds something else. */
  readonly value: unknown;
}

/** By field. */
export type Texts = ReadonlyMap<string, StoredText>;

export function isHistoryField(name: string): boolean {
  return HISTORY_FIELD.test(name);
}

function storedText(name: string, bytes: Buffer): StoredText {
  let text: string | undefined;
  let value: unknown;
  return {
    get text() {
      text ??= name === HEAD ? String(bytes) : decodeFactsText(bytes);
      return text;
    },
    get value() {
      value ??= parsedValue(name, this.text);
      return value;
    },
  };
}

function parsedValue(name: string, text: string): unknown {
  if (name === STATE || name === RECORD) return JSON.parse(text);
  return isHistoryField(name) ? JSON.parse(`[${text}]`) : null;
}

export function textsOf(fields: readonly Buffer[]): Texts {
  const texts = new Map<string, StoredText>();
  for (const [name, bytes] of fieldsOf(fields)) texts.set(name, storedText(name, bytes));
  return texts;
}

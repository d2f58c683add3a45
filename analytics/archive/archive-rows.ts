/** Rows of the archive (`schema/archived-shipments.sql`): what is personal encrypted, facts and what search needs beside it. */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import type { Row, Table } from "#analytics/write/rows.ts";
import {
  type ArchivedParts,
  packWhole,
  unpackWhole,
  type WholeShipment,
} from "#core/archive/store/archived-shipment.ts";
import { type Leaving, updatedOf } from "#core/archive/store/remove-shipments.ts";
import type { ExactField } from "#core/platform/redis/keys.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import { shipDay } from "#core/shipments/rules/shipment.ts";
import { DAY_SHIFT } from "#core/shipments/store/columns.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import { openWords, sealWords } from "./archive-words.ts";

export const ARCHIVED_SHIPMENTS: Table = {
  name: "archived_shipments",
  columns: [
    ...["channel", "id", "company", "batch", "updated", "shipped", "status", "numbers"],
    ...["order_reference", "custom1", "custom2", "custom3", "archived_on"],
    ...["event_ids", "occurred", "rest", "words_text", "sealed_text"],
  ],
};

/** Columns of the values that search asks for exactly. */
export const VALUE_COLUMNS: Readonly<Record<ExactField, string>> = {
  orderReference: "order_reference",
  custom1: "custom1",
  custom2: "custom2",
  custom3: "custom3",
};

const IV_BYTES = 12;
const TAG_BYTES = 16;

type Keys = Pick<Vault, "keyFor">;

/** @param archivedOn day, YYYY-MM-DD */
export function archiveRow(
  vault: Keys,
  { whole, texts, facts }: Leaving,
  batch: number,
  archivedOn: string,
): Row {
  const { record, state } = facts.shipment;
  const { companyId, channelId, customAttributes: custom } = record;
  const hash = (field: ExactField, value: string | undefined) =>
    value ? valueHash(vault, companyId, field, value) : "0";
  const numbers = whole.numbers.map((number) => valueHash(vault, companyId, "number", number));
  const parts = packWhole(whole, texts);
  const place = { companyId, id: whole.id, batch };
  return [
    ...[channelId, whole.id, companyId, batch, updatedOf(facts)],
    ...[shipDay(record.shipDate) + DAY_SHIFT, STATUSES.indexOf(state.pair.status)],
    numbers as unknown as string,
    hash("orderReference", record.orderReference),
    ...[hash("custom1", custom?.custom1), hash("custom2", custom?.custom2)],
    ...[hash("custom3", custom?.custom3), archivedOn, parts.eventIds, parts.occurred, parts.rest],
    sealWords(wordKey(vault, companyId), parts.words).toString("base64"),
    seal(vault, place, parts).toString("base64"),
  ];
}

/** 64 bits as a decimal number, never 0. */
export function valueHash(
  vault: Keys,
  companyId: number,
  field: ExactField | "number",
  value: string,
): string {
  const key = vault.keyFor(`archived values of company ${companyId}`);
  const digest = createHmac("sha256", key).update(`${field} ${value}`).digest();
  return (digest.readBigUInt64BE(0) || 1n).toString();
}

interface Place {
  readonly companyId: number;
  readonly id: number;
  readonly batch: number;
}

/**
 * AES-256-GCM under the company's own key: iv, tag, text. A text that stands in another row, or beside facts that are not
 * its own, does not open.
 */
function seal(vault: Keys, place: Place, { personal, ...parts }: ArchivedParts): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keyOf(vault, place.companyId), iv);
  cipher.setAAD(beside(place, parts));
  const text = [cipher.update(personal), cipher.final()];
  return Buffer.concat([iv, cipher.getAuthTag(), ...text]);
}

/** What a row holds of a shipment, as it is read. */
export interface StoredParts extends Pick<ArchivedParts, "eventIds" | "occurred" | "rest"> {
  /** Base64. */
  readonly words: string;
  readonly sealed: string;
}

/** @throws when the bytes were not sealed by us for this row */
export function openParts(vault: Keys, place: Place, stored: StoredParts): WholeShipment {
  const { eventIds, occurred, rest } = stored;
  const { companyId, id } = place;
  const words = openWords(wordKey(vault, companyId), Buffer.from(stored.words, "base64"));
  const raw = Buffer.from(stored.sealed, "base64");
  const key = keyOf(vault, companyId);
  const decipher = createDecipheriv("aes-256-gcm", key, raw.subarray(0, IV_BYTES));
  decipher.setAuthTag(raw.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  const parts = { eventIds, occurred, rest, words };
  decipher.setAAD(beside(place, parts));
  const text = decipher.update(raw.subarray(IV_BYTES + TAG_BYTES));
  return unpackWhole(id, { ...parts, personal: Buffer.concat([text, decipher.final()]) });
}

/** JSON holds no line feed: no two rows have the same text. */
function beside({ id, batch }: Place, parts: Omit<ArchivedParts, "personal">): Buffer {
  const { eventIds, occurred, rest, words } = parts;
  return Buffer.from([id, batch, eventIds, occurred, rest, JSON.stringify(words)].join("\n"));
}

function keyOf(vault: Keys, companyId: number): Buffer {
  return vault.keyFor(`archive of company ${companyId}`);
}

function wordKey(vault: Keys, companyId: number): Buffer {
  return vault.keyFor(`archived words of company ${companyId}`);
}

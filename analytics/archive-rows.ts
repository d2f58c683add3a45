/** Rows of the archive (`schema/archived-shipments.sql`): shipments encrypted, what search needs beside them. */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { shipDay } from "#core/domain/shipments/shipment.ts";
import { STATUSES } from "#core/domain/statuses/status.ts";
import type { ExactField } from "#core/redis/client/keys.ts";
import {
  packWhole,
  unpackWhole,
  type WholeShipment,
} from "#core/redis/shipments/archived-shipment.ts";
import { DAY_SHIFT } from "#core/redis/shipments/columns.ts";
import { type Leaving, updatedOf } from "#core/redis/shipments/remove-shipments.ts";
import type { Vault } from "#core/secrets.ts";
import type { Row, Table } from "./rows.ts";

export const ARCHIVED_SHIPMENTS: Table = {
  name: "archived_shipments",
  columns: [
    ...["channel", "id", "company", "batch", "updated", "shipped", "status", "numbers"],
    ...["order_reference", "custom1", "custom2", "custom3", "archived_on", "sealed_text"],
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
  { whole, facts }: Leaving,
  batch: number,
  archivedOn: string,
): Row {
  const { record, state } = facts.shipment;
  const { companyId, channelId, customAttributes: custom } = record;
  const hash = (field: ExactField, value: string | undefined) =>
    value ? valueHash(vault, companyId, field, value) : "0";
  const numbers = whole.numbers.map((number) => valueHash(vault, companyId, "number", number));
  return [
    ...[channelId, whole.id, companyId, batch, updatedOf(facts)],
    ...[shipDay(record.shipDate) + DAY_SHIFT, STATUSES.indexOf(state.pair.status)],
    numbers as unknown as string,
    hash("orderReference", record.orderReference),
    ...[hash("custom1", custom?.custom1), hash("custom2", custom?.custom2)],
    ...[hash("custom3", custom?.custom3), archivedOn, seal(vault, companyId, whole, batch)],
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

/** AES-256-GCM under the company's own key: iv, tag, text. A text that stands in another row does not open. */
function seal(vault: Keys, companyId: number, whole: WholeShipment, batch: number): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", keyOf(vault, companyId), iv);
  cipher.setAAD(Buffer.from(`${whole.id} ${batch}`));
  const text = Buffer.concat([cipher.update(packWhole(whole)), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64");
}

/** @throws when the bytes were not sealed by us for this row */
export function unseal(
  vault: Keys,
  {
    companyId,
    id,
    batch,
  }: { readonly companyId: number; readonly id: number; readonly batch: number },
  sealed: string,
): WholeShipment {
  const raw = Buffer.from(sealed, "base64");
  const decipher = createDecipheriv(
    "aes-256-gcm",
    keyOf(vault, companyId),
    raw.subarray(0, IV_BYTES),
  );
  decipher.setAuthTag(raw.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  decipher.setAAD(Buffer.from(`${id} ${batch}`));
  const text = decipher.update(raw.subarray(IV_BYTES + TAG_BYTES));
  return unpackWhole(id, Buffer.concat([text, decipher.final()]));
}

function keyOf(vault: Keys, companyId: number): Buffer {
  return vault.keyFor(`archive of company ${companyId}`);
}

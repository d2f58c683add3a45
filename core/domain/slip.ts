/** The slip of a transmission: what it is made of, so that it can be made whenever it is read. */
import type { LabelRecord } from "./label.ts";

/** What stands at the top of every page. */
export interface SlipHead {
  readonly transmissionNumber: string;
  readonly courier: string;
  readonly channelName: string;
  /** `YYYY-MM-DD`, with `HH:MM` behind it where one was asked for; null = none. */
  readonly pickup: string | null;
  readonly createdAtMs: number;
}

/** A label of the transmission. */
export interface SlipRow {
  readonly trackingNumber: string;
  readonly reference: string;
  readonly name: string;
  /** Postcode, city and country. */
  readonly place: string;
  readonly parcels: number;
  /** kg; null where nobody gave one. */
  readonly weight: number | null;
}

export interface Slip extends SlipHead {
  readonly rows: readonly SlipRow[];
}

export function slipRow(label: LabelRecord): SlipRow {
  const { name, postcode, city, country } = label.consignee;
  return {
    trackingNumber: label.trackingNumbers[0]?.number ?? "",
    reference: label.reference,
    name,
    place: `${postcode} ${city} ${country}`,
    parcels: label.parcels,
    weight: label.weight,
  };
}

/** What people call a transmission by. */
export function transmissionNumberOf(transmissionId: number): string {
  return `T${String(transmissionId).padStart(9, "0")}`;
}

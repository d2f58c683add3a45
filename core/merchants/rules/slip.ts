/** The content of a transmission's slip, from which the PDF is rendered on request. */
import type { LabelRecord } from "./label.ts";

/** The heading of every page. */
export interface SlipHead {
  readonly transmissionNumber: string;
  readonly courier: string;
  readonly channelName: string;
  /** `YYYY-MM-DD`, followed by `HH:MM` if a time was requested; null = none. */
  readonly pickup: string | null;
  readonly createdAtMs: number;
}

/** A label of the transmission. */
export interface SlipRow {
  readonly trackingNumber: string;
  readonly reference: string;
  readonly name: string;
  /** Postcode, city and country. */
  readonly locality: string;
  readonly parcels: number;
  /** kg; null = unknown. */
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
    locality: `${postcode} ${city} ${country}`,
    parcels: label.parcels,
    weight: label.weight,
  };
}

/** The transmission number that people use. */
export function transmissionNumberOf(transmissionId: number): string {
  return `T${String(transmissionId).padStart(9, "0")}`;
}

/** What a merchant may ask of a parcel held in depot (document 1, `POST /v2/shipments/{id}/stock-release`). */

import { createHash } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import type { Fault } from "#core/platform/schema/fault.ts";
import { provinceCode } from "#core/platform/schema/text-forms.ts";
import { nextItalianWorkingDay } from "#core/platform/time/italian-calendar.ts";

const SHORT = 255;
const LONG = 2_000;
const required = Type.String({ minLength: 1, maxLength: SHORT });

export const StockReleaseBody = Type.Object({
  action: Type.Union(
    (["redeliver", "redeliver_new_address", "return_to_sender"] as const).map((name) =>
      Type.Literal(name),
    ),
  ),
  notes: Type.Optional(Type.String({ maxLength: LONG })),
  redeliveryDate: Type.Optional(Type.String({ format: "calendar-date" })),
  address: Type.Optional(
    Type.Object({
      name: required,
      street: required,
      city: required,
      zip: Type.String({ minLength: 1, maxLength: 16 }),
      province: provinceCode,
      phone: Type.Optional(Type.String({ maxLength: SHORT })),
    }),
  ),
});
export type StockReleaseBody = Static<typeof StockReleaseBody>;

/**
 * How a carrier handles a redelivery date: it requires one (the next Italian working day if none is given), accepts one, or
 * ignores it.
 */
export const DATE_SUPPORTS = ["required", "optional", "ignored"] as const;
export type DateSupport = (typeof DATE_SUPPORTS)[number];

/**
 * Checks that the fields are consistent.
 * @param today `YYYY-MM-DD` in Europe/Rome
 */
export function stockReleaseFaults(
  { action, address, redeliveryDate }: StockReleaseBody,
  today: string,
): readonly Fault[] {
  const faults: Fault[] = [];
  const newAddress = action === "redeliver_new_address";
  if (newAddress && address === undefined) {
    const message = "The action redeliver_new_address needs an address.";
    faults.push({ path: "address", code: "REQUIRED", message });
  }
  if (!newAddress && address !== undefined) {
    const message = "Only the action redeliver_new_address takes an address.";
    faults.push({ path: "address", code: "NOT_ALLOWED", message });
  }
  if (action === "return_to_sender" && redeliveryDate !== undefined) {
    const message = "The action return_to_sender takes no date.";
    faults.push({ path: "redeliveryDate", code: "NOT_ALLOWED", message });
  } else if (redeliveryDate !== undefined && redeliveryDate < today) {
    const message = `A date from today on (${today}).`;
    faults.push({ path: "redeliveryDate", code: "OUT_OF_RANGE", message });
  }
  return faults;
}

/** The date to send to the carrier; null = none. */
export function redeliveryDateOf(
  { action, redeliveryDate }: StockReleaseBody,
  support: DateSupport,
  today: string,
): string | null {
  if (action === "return_to_sender" || support === "ignored") return null;
  return redeliveryDate ?? (support === "required" ? nextItalianWorkingDay(today) : null);
}

/** @param factKey key of the fact that put the parcel on hold: after another one, an equal release is a new one */
export function releaseDigest(body: StockReleaseBody, factKey: string): string {
  const { action, notes, redeliveryDate, address } = body;
  const { name, street, city, zip, province, phone } = address ?? {};
  const said = [factKey, action, notes, redeliveryDate, name, street, city, zip, province, phone];
  return createHash("sha256").update(JSON.stringify(said)).digest("base64url");
}

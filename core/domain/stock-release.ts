/** What a merchant may ask of a parcel held in depot (document 1, `POST /v2/shipments/{id}/stock-release`). */
import { type Static, Type } from "@sinclair/typebox";
import type { Fault } from "./fault.ts";
import { nextItalianWorkingDay } from "./italian-calendar.ts";

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
      province: Type.String({ minLength: 1, maxLength: 10, description: "code" }),
      phone: Type.Optional(Type.String({ maxLength: SHORT })),
    }),
  ),
});
export type StockReleaseBody = Static<typeof StockReleaseBody>;

/** What the fields must not be together. */
export function stockReleaseFaults({
  action,
  address,
  redeliveryDate,
}: StockReleaseBody): readonly Fault[] {
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
  }
  return faults;
}

/** The date the carrier is told: a carrier that needs one gets the next Italian working day where none is given. */
export function redeliveryDateOf(
  { action, redeliveryDate }: StockReleaseBody,
  needsDate: boolean,
  today: string,
): string | null {
  if (!needsDate || action === "return_to_sender") return null;
  return redeliveryDate ?? nextItalianWorkingDay(today);
}

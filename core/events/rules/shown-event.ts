/**
 * A refused event as its sender's inbox shows it: its shape, and the values of members that name no recipient. Nothing of a recipient is
 * kept of an event that belongs to no shipment, so that an erasure has nothing to look for here.
 */
import { limit } from "#core/platform/schema/limit.ts";

type Members = { readonly [name: string]: true | Members };

/** Members whose values are shown; of any other only that it was there. */
const SHOWN: Members = {
  eventId: true,
  trackingNumber: true,
  occurredAt: true,
  externalId: true,
  senderAccount: true,
  isReturn: true,
  status: { code: true, description: true },
  location: { name: true, countryCode: true, postalCode: true },
  parcel: { trackingNumber: true, index: true, total: true },
  reason: { code: true },
  delivery: {
    estimatedDeliveryDate: true,
    estimatedDeliveryWindow: { from: true, to: true },
    attemptNumber: true,
  },
  trackingNumberChange: { newTrackingNumber: true },
};
export const NOT_KEPT = "(not kept)";
const VALUE_LENGTH = limit(
  200,
  "characters of a value that a courier's inbox shows of an event",
  "the rest is not kept",
);
const MEMBERS = limit(30, "members that a courier's inbox shows of an object", "not kept");
const NAME = /^[A-Za-z_]{1,40}$/;

export function shownEvent(event: unknown): unknown {
  return shown(event, SHOWN);
}

function shown(value: unknown, members: true | Members | undefined): unknown {
  if (value === null || typeof value === "number" || typeof value === "boolean") {
    return members === undefined ? NOT_KEPT : value;
  }
  if (members === undefined) return NOT_KEPT;
  if (typeof value === "string") {
    return members === true ? value.slice(0, VALUE_LENGTH).toWellFormed() : NOT_KEPT;
  }
  if (typeof value !== "object" || Array.isArray(value) || members === true) return NOT_KEPT;
  const named = Object.entries(value).filter(([name]) => NAME.test(name));
  return Object.fromEntries(
    named
      .slice(0, MEMBERS)
      .map(([name, own]) => [
        name,
        shown(own, Object.hasOwn(members, name) ? members[name] : undefined),
      ]),
  );
}

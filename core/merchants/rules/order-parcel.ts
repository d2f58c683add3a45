/** Parcels of orders (document 1, "Order parcel"): what a request says, what is shown, what a change does to the order. */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { referenceText } from "#core/events/rules/reference.ts";
import { nullableNumber as number, nullableText as text } from "#core/platform/schema/nullable.ts";
import { countryCode } from "#core/platform/schema/text-forms.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import { instantOf, romeIso } from "#core/platform/time/rome-time.ts";
import { centimetres, kilograms } from "./measure.ts";
import {
  naturalKey,
  type OrderInput,
  type OrderParcel,
  type OrderRecord,
  orderFingerprint,
  PARCELS_PER_ORDER,
  parcelHash,
} from "./order.ts";

/** A creation of more parcels than this is answered 202 with a job. */
export const PARCELS_ANSWERED_AT_ONCE = 100;

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const short = Type.String({ maxLength: 255 });
const long = Type.String({ maxLength: 2_000 });
const key = referenceText(50);

const fields = {
  weightKg: kilograms,
  lengthCm: optional(centimetres),
  widthCm: optional(centimetres),
  heightCm: optional(centimetres),
  originCountryIso: optional(countryCode),
  contentsDescription: optional(short),
  clientInternalCode: optional(short),
  shippingNotes: optional(long),
};

export const ParcelsCreation = Type.Object({
  orderReference: key,
  orderOrigin: key,
  orderDate: optional(Type.String({ format: "offset-date-time" })),
  parcels: Type.Array(Type.Object(fields), { minItems: 1, maxItems: PARCELS_PER_ORDER }),
});
export type ParcelsCreation = Static<typeof ParcelsCreation>;

/** Any field, at least one. */
export const ParcelUpdate = Type.Partial(Type.Object(fields));
export type ParcelUpdate = Static<typeof ParcelUpdate>;

export const OrderParcelView = Type.Object({
  hash: Type.String({ description: "identifies the parcel for its whole life" }),
  orderReference: Type.String(),
  orderOrigin: Type.String(),
  number: Type.Integer({ description: "place in the order, from 1; kept when others are deleted" }),
  weightKg: number,
  lengthCm: number,
  widthCm: number,
  heightCm: number,
  originCountryIso: text,
  contentsDescription: text,
  clientInternalCode: text,
  shippingNotes: text,
  createdAt: Type.String({ description: "ISO 8601" }),
  updatedAt: Type.String({ description: "ISO 8601" }),
  warnings,
});
export type OrderParcelView = Static<typeof OrderParcelView>;

export function parcelView({ input }: OrderRecord, parcel: OrderParcel): OrderParcelView {
  return {
    hash: parcel.hash,
    orderReference: input.reference,
    orderOrigin: input.source,
    number: parcel.number,
    weightKg: parcel.weightKg ?? null,
    lengthCm: parcel.lengthCm ?? null,
    widthCm: parcel.widthCm ?? null,
    heightCm: parcel.heightCm ?? null,
    originCountryIso: parcel.originCountryIso ?? null,
    contentsDescription: parcel.contentsDescription ?? null,
    clientInternalCode: parcel.clientInternalCode ?? null,
    shippingNotes: parcel.shippingNotes ?? null,
    createdAt: romeIso(parcel.createdAtMs),
    updatedAt: romeIso(parcel.updatedAtMs),
  };
}

/** The order that a creation of parcels brings into being. */
export function orderOfParcels(
  channelId: number,
  { orderReference, orderOrigin, orderDate, parcels }: ParcelsCreation,
  nowMs: number,
): OrderRecord {
  const createdAt = orderDate ?? romeIso(nowMs);
  const input: OrderInput = { source: orderOrigin, reference: orderReference, createdAt };
  const natural = naturalKey(orderOrigin, orderReference);
  return {
    channelId,
    input,
    parcels: parcels.map((parcel, at) => ({
      ...parcel,
      hash: parcelHash(channelId, natural, at + 1),
      number: at + 1,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
    })),
    createdAtMs: instantOf(createdAt),
    updatedAtMs: nowMs,
    fingerprint: orderFingerprint(input),
  };
}

/** Null when the order has no parcel with the hash. */
export function withParcelChanged(
  record: OrderRecord,
  hash: string,
  update: ParcelUpdate,
  nowMs: number,
): OrderRecord | null {
  if (!record.parcels.some((parcel) => parcel.hash === hash)) return null;
  const parcels = record.parcels.map((parcel) =>
    parcel.hash === hash ? { ...parcel, ...update, updatedAtMs: nowMs } : parcel,
  );
  return { ...record, parcels, updatedAtMs: nowMs };
}

/** Without one parcel, or without any; null when there is nothing to take away. */
export function withoutParcels(
  record: OrderRecord,
  hash: string | null,
  nowMs: number,
): OrderRecord | null {
  const parcels = hash === null ? [] : record.parcels.filter((parcel) => parcel.hash !== hash);
  if (parcels.length === record.parcels.length) return null;
  // Totals that the order came with would bring back the parcels that are gone.
  const {
    totalWeight: _weight,
    parcelsCount: _count,
    firstParcelLength: _length,
    firstParcelWidth: _width,
    firstParcelHeight: _height,
    ...input
  } = record.input;
  return { ...record, input, parcels, updatedAtMs: nowMs };
}

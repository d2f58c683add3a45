/** The merchant's shipment: what creation accepts (document 1, "Shipments") and what is kept of it. */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import type { LaneFacts } from "#core/benchmarks/rules/lane.ts";
import {
  EVENT_NUMBER_LENGTH,
  referenceText,
  TRACKING_NUMBER_LENGTH,
  trackingNumberText,
} from "#core/events/rules/reference.ts";
import { centimetres, kilograms } from "#core/merchants/rules/measure.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  countryCode,
  emailAddress,
  emailAddressOrEmpty,
} from "#core/platform/schema/text-forms.ts";
import { addYears, instantOf, romeDate } from "#core/platform/time/rome-time.ts";

/** Document 1, "Limits". */
export const SHIPMENTS_PER_CREATE = 100;
export const SHIPMENTS_PER_IMPORT = limit(5_000, "items of an import", "422");
export const PARCELS_PER_SHIPMENT = 100;
export const ORDER_ITEMS_PER_SHIPMENT = 500;
/** Bounds of fields that document 1 leaves open. */
const SHORT = 255;
const LONG = 2_000;

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const short = Type.String({ maxLength: SHORT });
const long = Type.String({ maxLength: LONG });
const date = Type.String({ format: "calendar-date" });
const dateOrDateTime = Type.String({ format: "date-or-date-time" });
const amount = Type.Number({ minimum: 0 });

export const Consignee = Type.Object({
  name: optional(short),
  street: optional(short),
  city: optional(short),
  postcode: optional(short),
  state: optional(short),
  country: optional(countryCode),
  email: optional(emailAddress),
  phone: optional(short),
});

const Custom = Type.Object({
  custom1: optional(short),
  custom2: optional(short),
  custom3: optional(short),
});

export const Parcel = Type.Object({
  id: optional(short),
  trackingNumber: optional(trackingNumberText(EVENT_NUMBER_LENGTH)),
  weight: kilograms,
  length: optional(centimetres),
  width: optional(centimetres),
  height: optional(centimetres),
  boxCode: optional(short),
  content: optional(short),
  originCountry: optional(countryCode),
});
export type Parcel = Static<typeof Parcel>;

export const OrderItem = Type.Object({
  sku: Type.String({ minLength: 1, maxLength: SHORT }),
  name: Type.String({ minLength: 1, maxLength: SHORT }),
  quantity: optional(Type.Integer({ minimum: 0 })),
  price: optional(amount),
  total: optional(amount),
  weight: optional(amount),
  netWeight: optional(amount),
  unitOfMeasurement: optional(short),
  url: optional(long),
  imageUrl: optional(long),
  isReturnable: optional(Type.Boolean()),
  customsCode: optional(short),
  originCountry: optional(countryCode),
  parcelId: optional(short),
  transparencyCodes: optional(Type.Array(short, { maxItems: 100 })),
  notes: optional(long),
  custom1: optional(short),
  custom2: optional(short),
  custom3: optional(short),
  custom4: optional(short),
  custom5: optional(short),
});
export type OrderItem = Static<typeof OrderItem>;

/** One item of `POST /v2/shipments`; a null member counts as absent. */
export const ShipmentInput = Type.Object({
  trackingNumber: trackingNumberText(TRACKING_NUMBER_LENGTH),
  courier: Type.String({ minLength: 1, maxLength: SHORT }),
  shipDate: date,
  orderReference: optional(referenceText(SHORT)),
  orderDate: optional(date),
  platformOrderId: optional(short),
  origin: optional(short),
  language: optional(short),
  tag: optional(short),
  note: optional(long),
  isRealTrackingNumber: optional(Type.Boolean()),
  isReturnable: optional(Type.Boolean()),
  commercialContactEmail: optional(emailAddressOrEmpty),
  consignee: optional(Consignee),
  monetary: optional(
    Type.Object({
      totalValue: optional(amount),
      codAmount: optional(amount),
      shippingCost: optional(amount),
      currency: optional(Type.Literal("EUR")),
    }),
  ),
  planning: optional(
    Type.Object({
      deliveryDate: optional(dateOrDateTime),
      latestShipDate: optional(dateOrDateTime),
      latestDeliveryDate: optional(dateOrDateTime),
    }),
  ),
  customAttributes: optional(Custom),
  parcels: optional(Type.Array(Parcel, { maxItems: PARCELS_PER_SHIPMENT })),
  orderItems: optional(Type.Array(OrderItem, { maxItems: ORDER_ITEMS_PER_SHIPMENT })),
});
export type ShipmentInput = Static<typeof ShipmentInput>;

/** A ship date further away is a mistake, and one such shipment would distort the figures of its lane. */
const FIRST_SHIP_DATE = "2000-01-01";
const SHIP_DATE_YEARS_AHEAD = 1;

/** What is wrong with a ship date, judged by the current day; null = nothing. */
export function faultOfShipDate(shipDate: string, nowMs: number): string | null {
  const last = addYears(romeDate(nowMs), SHIP_DATE_YEARS_AHEAD);
  if (shipDate >= FIRST_SHIP_DATE && shipDate <= last) return null;
  return `A date from ${FIRST_SHIP_DATE} to ${last}.`;
}

export const CreateBody = Type.Object({
  shipments: Type.Array(ShipmentInput, { minItems: 1, maxItems: SHIPMENTS_PER_CREATE }),
});

/** Languages of recipients (document 1, "Notifications"). */
export const LANGUAGES = [
  "it",
  "en",
  "de",
  "fr",
  "es",
  "pt",
  "zh",
  "ru",
  "ja",
  "cs",
  "ro",
  "hu",
  "ar",
  "sk",
  "pl",
  "ko",
  "nl",
] as const;
export type Language = (typeof LANGUAGES)[number];

export function isLanguage(text: string): text is Language {
  return (LANGUAGES as readonly string[]).includes(text);
}

/** The cold part of a shipment: as created, never changed by courier events. */
export interface ShipmentRecord extends Omit<ShipmentInput, "planning" | "language"> {
  readonly id: number;
  readonly companyId: number;
  readonly channelId: number;
  /** Canonical courier code. */
  readonly courier: string;
  readonly language: Language;
  readonly planning: Planning;
  readonly createdAtMs: number;
  /** Random part of the tracking page's address; absent where the channel had no tracking page at creation. */
  readonly trackingToken?: string;
  /** The latest ones, in order; absent = none. */
  readonly corrections?: readonly Correction[];
}

/** What a merchant corrected: names of members, never what they were, so that nothing personal is left behind. */
export interface Correction {
  readonly atMs: number;
  /** Paths such as `consignee.street`. */
  readonly fields: readonly string[];
  /** Code of the API key. */
  readonly apiKey: string;
}

export interface Planning {
  readonly deliveryDate: string | null;
  readonly latestShipDate: string | null;
  readonly latestDeliveryDate: string | null;
}

/** Planning members are dates or date-times with offset, always returned as a date: the day it is in Rome. */
export function planningOf(input: ShipmentInput["planning"]): Planning {
  const day = (text: string | undefined) =>
    text === undefined ? null : text.length === 10 ? text : romeDate(instantOf(text));
  return {
    deliveryDate: day(input?.deliveryDate),
    latestShipDate: day(input?.latestShipDate),
    latestDeliveryDate: day(input?.latestDeliveryDate),
  };
}

/** The small hot part beside the state: what applying an event needs of the creation. */
export interface ShipmentMeta extends LaneFacts {
  readonly companyId: number;
  readonly channelId: number;
  readonly trackingNumber: string;
  readonly isPlaceholder: boolean;
  readonly orderReference: string | null;
  /** Order references that it had before corrections: events still find it by them; absent = none. */
  readonly formerReferences?: readonly string[];
  /** Tracking numbers of its parcels other than its own; absent = none. */
  readonly parcelNumbers?: readonly string[];
  /** The recipient's data was erased: what couriers still send of it is not kept. */
  readonly isErased?: true;
}

const DAY_MS = 86_400_000;

/** The order references that events may name it by, the current one first. */
export function orderReferencesOf({
  orderReference,
  formerReferences = [],
}: Pick<ShipmentMeta, "orderReference" | "formerReferences">): readonly string[] {
  return orderReference === null ? formerReferences : [orderReference, ...formerReferences];
}

/** Days since 1970. */
export function shipDay(shipDate: string): number {
  return Date.parse(shipDate) / DAY_MS;
}

/** Labels (document 1, "Labels"): what is asked for, what is kept and what is answered. */

import { createHash } from "node:crypto";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { plainReference, referenceText } from "#core/events/rules/reference.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import {
  clockTime,
  countryCode,
  currencyCode,
  emailAddressOrEmpty,
} from "#core/platform/schema/text-forms.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import { centimetres, kilograms } from "./measure.ts";

/** Document 1, "Limits". */
export const PARCELS_PER_LABEL = 99;
export const LABELS_PER_CONFIRMATION = 1_000;
const CODE_LENGTH = 50;
/** Bounds of fields that document 1 leaves open. */
const SHORT = 255;
const ROWS_PER_LABEL = 500;

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const short = Type.String({ maxLength: SHORT });
const given = Type.String({ minLength: 1, maxLength: SHORT });
const code = Type.String({ maxLength: CODE_LENGTH });
const required = Type.String({ minLength: 1, maxLength: CODE_LENGTH });
const day = Type.String({ format: "calendar-date" });
const amount = Type.Number({ minimum: 0 });

export const LabelConsignee = Type.Object({
  name: given,
  street: given,
  city: given,
  state: Type.String({ maxLength: SHORT, description: "2 characters for Italy" }),
  postcode: given,
  country: countryCode,
  email: optional(emailAddressOrEmpty),
  phone: optional(short),
});
export type LabelConsignee = Static<typeof LabelConsignee>;

export const LabelSender = Type.Object({
  code: optional(short),
  businessName: optional(short),
  street: optional(short),
  city: optional(short),
  state: optional(short),
  postcode: optional(short),
  country: optional(countryCode),
  email: optional(emailAddressOrEmpty),
  phone: optional(short),
  referent: optional(short),
  isDefault: optional(Type.Boolean()),
});
export type LabelSender = Static<typeof LabelSender>;

export const LabelParcel = Type.Object({
  weight: optional(kilograms),
  length: optional(centimetres),
  width: optional(centimetres),
  height: optional(centimetres),
  boxCode: optional(code),
});
export type LabelParcel = Static<typeof LabelParcel>;

const Row = Type.Object({
  sku: given,
  name: given,
  qty: Type.Integer({ minimum: 0 }),
  price: optional(amount),
  total: optional(amount),
  weight: optional(amount),
  netWeight: optional(amount),
  customsCode: optional(short),
  originCountry: optional(countryCode),
  unitOfMeasurement: optional(short),
  parcelId: optional(short),
});

export const LabelRequest = Type.Object({
  courier: required,
  courierService: optional(code),
  reference: referenceText(CODE_LENGTH),
  source: referenceText(CODE_LENGTH),
  consignee: LabelConsignee,
  weight: optional(kilograms),
  parcels: optional(Type.Array(LabelParcel, { maxItems: PARCELS_PER_LABEL })),
  content: optional(Type.String({ maxLength: 100 })),
  pickupDate: optional(day),
  monetary: optional(
    Type.Object({
      isCod: optional(Type.Boolean()),
      amount: optional(amount),
      codPaymentOption: optional(code),
      shippingInsurance: optional(amount),
      currency: optional(currencyCode),
    }),
  ),
  planning: optional(
    Type.Object({ deliveryOptions: optional(short), requestedDeliveryDate: optional(day) }),
  ),
  customAttributes: optional(
    Type.Object({ custom1: optional(short), custom2: optional(short), custom3: optional(short) }),
  ),
  rows: optional(Type.Array(Row, { maxItems: ROWS_PER_LABEL })),
  sender: optional(LabelSender),
});
export type LabelRequest = Static<typeof LabelRequest>;

export const ConfirmRequest = Type.Object({
  courier: required,
  labelIds: Type.Array(Type.Integer({ minimum: 1, maximum: 999_999_999_999 }), {
    minItems: 1,
    maxItems: LABELS_PER_CONFIRMATION,
  }),
  pickupDate: optional(day),
  pickupTime: optional(clockTime),
  labelCreationDate: optional(
    Type.Unknown({ publishedAs: Type.String({ description: "not supported: always 422" }) }),
  ),
});
export type ConfirmRequest = Static<typeof ConfirmRequest>;

export const LabelFormat = Type.Union([Type.Literal("PDF"), Type.Literal("ZPL")]);
export type LabelFormat = Static<typeof LabelFormat>;

const TrackingNumber = Type.Object({ number: Type.String(), description: Type.String() });
export type TrackingNumber = Static<typeof TrackingNumber>;

/** What a carrier makes of a request. */
export interface MadeLabel {
  /** The first is the main one. */
  readonly trackingNumbers: readonly TrackingNumber[];
  readonly extShipmentId: string | null;
  /** One a parcel: PDF as base64, ZPL as plain text. */
  readonly labels: readonly string[];
}

export const LabelView = Type.Object({
  id: Type.Integer(),
  trackingNumbers: Type.Array(TrackingNumber),
  courier: Type.String(),
  reference: Type.String(),
  labels: Type.Array(Type.String(), {
    description: "one per parcel: PDF as base64 or ZPL as plain text",
  }),
  labelFormat: LabelFormat,
  extShipmentId: Type.Union([Type.String(), Type.Null()]),
  isExisting: Type.Boolean(),
  warnings,
});
export type LabelView = Static<typeof LabelView>;

/** What a confirmation needs of a label later; the label itself stands beside it. */
export interface LabelRecord {
  /** First in the stored text too (`core/merchants/store/own-record.ts`). */
  readonly channelId: number;
  readonly courier: string;
  readonly reference: string;
  readonly labelFormat: LabelFormat;
  readonly trackingNumbers: readonly TrackingNumber[];
  readonly extShipmentId: string | null;
  readonly parcels: number;
  /** kg; null when nobody gave one. */
  readonly weight: number | null;
  readonly consignee: Pick<LabelConsignee, "name" | "city" | "postcode" | "country">;
  readonly createdAtMs: number;
}

/** What identifies a label on its channel, as a digest of fixed length. */
export function labelDigest(courier: string, reference: string): string {
  return labelDigestAsGiven(courier, plainReference(reference));
}

/** As 0.1.0 wrote it. */
export function labelDigestAsGiven(courier: string, reference: string): string {
  const identity = `${courier.length}:${courier}:${reference}`;
  return createHash("sha256").update(identity).digest("base64url").slice(0, 22);
}

interface LabelRules {
  readonly needsWeight: boolean;
  readonly boxes: ReadonlyMap<string, object>;
  readonly platforms: ReadonlySet<string>;
}

/** What the schema cannot say (document 1, "Labels"). */
export function labelFaults(
  request: LabelRequest,
  { needsWeight, boxes, platforms }: LabelRules,
): Fault[] {
  const { consignee, monetary, parcels = [], source, weight } = request;
  const faults: Fault[] = [];
  if (!platforms.has(source)) {
    const message = "The source is not in the platform registry.";
    faults.push({ path: "source", code: "NOT_ALLOWED", message });
  }
  if (consignee.country === "IT" && !/^[A-Za-z]{2}$/.test(consignee.state)) {
    const message = "An Italian province has 2 letters.";
    faults.push({ path: "consignee.state", code: "BAD_FORMAT", message });
  }
  if (monetary?.isCod && monetary.amount === undefined) {
    const message = "Cash on delivery needs an amount.";
    faults.push({ path: "monetary.amount", code: "REQUIRED", message });
  }
  if (needsWeight && weight === undefined && parcels.length === 0) {
    const message = "This carrier needs parcels or weight.";
    faults.push({ path: "weight", code: "REQUIRED", message });
  }
  parcels.forEach(({ boxCode }, at) => {
    if (boxCode === undefined || boxes.has(boxCode)) return;
    const message = "The box code is not in the company's box registry.";
    faults.push({ path: `parcels[${at}].boxCode`, code: "NOT_ALLOWED", message });
  });
  return faults;
}

/** What the schema cannot say of a confirmation (document 1, `POST /v2/labels/confirm`). */
export function confirmFaults({ pickupDate, pickupTime, labelCreationDate }: ConfirmRequest) {
  const faults: Fault[] = [];
  if (labelCreationDate !== undefined) {
    const message = "Confirming by creation date is not supported; give labelIds.";
    faults.push({ path: "labelCreationDate", code: "NOT_ALLOWED", message });
  }
  if (pickupTime !== undefined && pickupDate === undefined) {
    const message = "A pickupTime needs a pickupDate.";
    faults.push({ path: "pickupDate", code: "REQUIRED", message });
  }
  return faults;
}

/** The parcels a label is made for: at least one. */
export function parcelsOf({ parcels = [], weight }: LabelRequest): LabelParcel[] {
  return parcels.length > 0 ? parcels : [weight === undefined ? {} : { weight }];
}

/** kg: the weight given for the whole, else the sum over the parcels; null where none was given. */
export function totalWeight({ weight: whole, parcels = [] }: LabelRequest): number | null {
  if (whole !== undefined) return whole;
  const weights = parcels.flatMap(({ weight }) => (weight === undefined ? [] : [weight]));
  if (weights.length === 0) return null;
  return Math.round(weights.reduce((sum, one) => sum + one) * 1000) / 1000;
}

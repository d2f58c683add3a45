/** The merchant's order (document 1, "Order"): what is accepted, what is kept of it and how it is shown. */
import { createHash } from "node:crypto";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { plainReference, referenceText } from "#core/events/rules/reference.ts";
import { nullableNumber as number, nullableText as text } from "#core/platform/schema/nullable.ts";
import { clockTime, countryCode, currencyCode } from "#core/platform/schema/text-forms.ts";
import { instantOf, romeIso } from "#core/platform/time/rome-time.ts";
import { Consignee, OrderItem } from "#core/shipments/rules/shipment.ts";
import { centimetres, kilograms } from "./measure.ts";

/** Bounds of fields that document 1 leaves open. */
const SHORT = 255;
const LONG = 2_000;
const KEY_LENGTH = 50;
/** Parcels of one order; far above what one consignee receives, and a document of about 300 KB. */
export const PARCELS_PER_ORDER = 1_000;
export const ITEMS_PER_ORDER = 500;
/** Decimals of a weight in kg that is shown: a milligram. */
const WEIGHT_SCALE = 1e6;
const DEFAULT_STATUS = "new";

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const short = Type.String({ maxLength: SHORT });
const long = Type.String({ maxLength: LONG });
const key = referenceText(KEY_LENGTH);
const date = Type.String({ format: "date-or-date-time" });
const amount = Type.Number({ minimum: 0 });
const instant = Type.String({ format: "offset-date-time" });

const ParcelInput = Type.Object({
  weight: optional(kilograms),
  length: optional(centimetres),
  width: optional(centimetres),
  height: optional(centimetres),
  boxCode: optional(short),
  content: optional(short),
  originCountry: optional(countryCode),
});

/** An order of the setup file or of a panel line; a null member counts as absent. */
export const OrderInput = Type.Object({
  source: key,
  reference: key,
  orderId: optional(short),
  courier: optional(Type.String({ minLength: 1, maxLength: KEY_LENGTH, description: "code" })),
  courierId: optional(Type.Integer({ minimum: 0 })),
  courierService: optional(short),
  senderId: optional(Type.Integer({ minimum: 0 })),
  status: optional(Type.String({ minLength: 1, maxLength: SHORT })),
  createdAt: optional(instant),
  updatedAt: optional(instant),
  deleted: optional(Type.Boolean({ description: "true takes the order out of every answer" })),
  isReturnable: optional(Type.Boolean()),
  notes: optional(long),
  content: optional(short),
  tag: optional(short),
  pickupDate: optional(Type.String({ format: "calendar-date" })),
  pickupTime: optional(clockTime),
  pickupPoint: optional(short),
  consignee: optional(Consignee),
  monetary: optional(
    Type.Object({
      paymentMethod: optional(short),
      isCod: optional(Type.Boolean()),
      codPaymentOption: optional(short),
      value: optional(amount),
      shippingCost: optional(amount),
      currency: optional(currencyCode),
      shippingInsurance: optional(amount),
    }),
  ),
  planning: optional(
    Type.Object({
      deliveryOptions: optional(short),
      requestedDeliveryDate: optional(date),
      latestShipDate: optional(date),
      latestDeliveryDate: optional(date),
    }),
  ),
  customAttributes: optional(
    Type.Object({ custom1: optional(short), custom2: optional(short), custom3: optional(short) }),
  ),
  totalWeight: optional(Type.Number({ minimum: 0, description: "kg; where parcels are absent" })),
  parcelsCount: optional(Type.Integer({ minimum: 0, maximum: PARCELS_PER_ORDER })),
  firstParcelLength: optional(centimetres),
  firstParcelWidth: optional(centimetres),
  firstParcelHeight: optional(centimetres),
  parcels: optional(Type.Array(ParcelInput, { maxItems: PARCELS_PER_ORDER })),
  items: optional(
    Type.Array(Type.Omit(OrderItem, ["custom1", "custom2", "custom3", "custom4", "custom5"]), {
      maxItems: ITEMS_PER_ORDER,
    }),
  ),
});
export type OrderInput = Static<typeof OrderInput>;

/** Of `/v2/parcels` (document 1, "Order parcel"). */
export interface OrderParcel {
  /** Stable for the life of the order: of its key and the parcel's number. */
  readonly hash: string;
  /** From 1, in the order given; kept when others are deleted. */
  readonly number: number;
  readonly weightKg?: number | undefined;
  readonly lengthCm?: number | undefined;
  readonly widthCm?: number | undefined;
  readonly heightCm?: number | undefined;
  readonly boxCode?: string | undefined;
  readonly originCountryIso?: string | undefined;
  readonly contentsDescription?: string | undefined;
  readonly clientInternalCode?: string | undefined;
  readonly shippingNotes?: string | undefined;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** What is stored of an order; its id and version stand beside it. */
export interface OrderRecord {
  readonly channelId: number;
  readonly input: Omit<OrderInput, "parcels">;
  readonly parcels: readonly OrderParcel[];
  /** The order date, UTC milliseconds: the listing's sort key. */
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Tells whether what came in has changed since. */
  readonly fingerprint: string;
}

/** Without the recipient, and without every text in which the merchant may have named one. */
export function erasedOrder(record: OrderRecord): OrderRecord {
  const { consignee, notes, content, tag, customAttributes, pickupPoint, ...kept } = record.input;
  const { items, ...input } = kept;
  return {
    ...record,
    input: {
      ...input,
      ...(items && { items: items.map(({ notes: _, url, imageUrl, ...item }) => item) }),
    },
    parcels: record.parcels.map(
      ({ shippingNotes, clientInternalCode, contentsDescription, ...parcel }) => parcel,
    ),
  };
}

/** What identifies an order on its channel. */
export function naturalKey(source: string, reference: string): string {
  return naturalKeyAsGiven(plainReference(source), plainReference(reference));
}

/** As 0.1.0 wrote it. */
export function naturalKeyAsGiven(source: string, reference: string): string {
  return `${source.length}:${source}:${reference}`;
}

/** @param text what the order's key and the parcel's number say */
function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 40);
}

export function parcelHash(channelId: number, natural: string, number: number): string {
  return hashOf(`${channelId}|${natural}|${number}`);
}

/** Drops null members at any depth: they count as absent. */
export function withoutNullMembers<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutNullMembers) as T;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([name, one]) => [name, withoutNullMembers(one)])) as T;
}

/**
 * The order as it is kept. What comes in again replaces what was kept; what the channel has not said stays of the first
 * time: the order date and the numbers of its parcels.
 */
export function orderRecord(
  channelId: number,
  order: OrderInput,
  before: OrderRecord | null,
  nowMs: number,
): OrderRecord {
  const { parcels = [], ...input } = order;
  const natural = naturalKey(input.source, input.reference);
  const kept = parcels.map((parcel, at): OrderParcel => {
    const { weight, length, width, height, boxCode, content, originCountry } = parcel;
    return {
      hash: parcelHash(channelId, natural, at + 1),
      number: at + 1,
      weightKg: weight,
      lengthCm: length,
      widthCm: width,
      heightCm: height,
      boxCode,
      contentsDescription: content,
      originCountryIso: originCountry,
      createdAtMs: before?.parcels.find(({ number }) => number === at + 1)?.createdAtMs ?? nowMs,
      updatedAtMs: nowMs,
    };
  });
  return {
    channelId,
    input: { ...input, createdAt: input.createdAt ?? before?.input.createdAt ?? romeIso(nowMs) },
    parcels: kept,
    createdAtMs:
      input.createdAt === undefined ? (before?.createdAtMs ?? nowMs) : instantOf(input.createdAt),
    updatedAtMs: input.updatedAt === undefined ? nowMs : instantOf(input.updatedAt),
    fingerprint: orderFingerprint(order),
  };
}

export function orderFingerprint(input: OrderInput): string {
  return createHash("sha256").update(JSON.stringify(input)).digest("base64url");
}

/** Totals that an order shows and its parcels are rebuilt from. */
export interface Aggregates {
  readonly totalWeight: number;
  readonly parcelsCount: number;
  readonly length: number | null;
  readonly width: number | null;
  readonly height: number | null;
  readonly boxCode: string | null;
  readonly content: string | null;
  readonly originCountry: string | null;
}

/** An order without parcels of its own is described by the totals it came with. */
export function aggregatesOf({ input, parcels }: OrderRecord): Aggregates {
  const [first] = parcels;
  const usesTotals = parcels.length === 0;
  const count = input.parcelsCount ?? ((input.totalWeight ?? 0) > 0 ? 1 : 0);
  return {
    totalWeight: usesTotals ? (input.totalWeight ?? 0) : weightOf(parcels),
    parcelsCount: usesTotals ? count : parcels.length,
    length: (usesTotals ? input.firstParcelLength : first?.lengthCm) ?? null,
    width: (usesTotals ? input.firstParcelWidth : first?.widthCm) ?? null,
    height: (usesTotals ? input.firstParcelHeight : first?.heightCm) ?? null,
    boxCode: first?.boxCode ?? null,
    content: input.content ?? shared(parcels, (parcel) => parcel.contentsDescription),
    originCountry: shared(parcels, (parcel) => parcel.originCountryIso),
  };
}

function weightOf(parcels: readonly OrderParcel[]): number {
  return rounded(parcels.reduce((sum, { weightKg = 0 }) => sum + weightKg, 0));
}

function rounded(weightKg: number): number {
  return Math.round(weightKg * WEIGHT_SCALE) / WEIGHT_SCALE;
}

/** The value all parcels share; null when they do not. */
function shared(
  parcels: readonly OrderParcel[],
  of: (parcel: OrderParcel) => string | undefined,
): string | null {
  const values = new Set(parcels.map(of));
  const [only] = values;
  return values.size === 1 ? (only ?? null) : null;
}

const RebuiltParcel = Type.Object({
  weight: Type.Number({ description: "kg; the total spread evenly" }),
  length: number,
  width: number,
  height: number,
  boxCode: text,
  content: text,
  originCountry: text,
});

export const OrderItemView = Type.Object({
  sku: Type.String(),
  name: Type.String(),
  quantity: Type.Integer(),
  weight: number,
  url: text,
  imageUrl: text,
  price: number,
  total: number,
  isReturnable: Type.Boolean(),
  notes: text,
  customsCode: text,
  originCountry: text,
  netWeight: number,
  unitOfMeasurement: text,
  parcelId: text,
  transparencyCodes: Type.Array(Type.String()),
});

export const OrderView = Type.Object({
  id: Type.Integer(),
  channelId: Type.Integer(),
  reference: Type.String(),
  orderId: text,
  source: Type.String(),
  courierId: Type.Integer({ description: "0 when unassigned" }),
  courierService: text,
  senderId: Type.Union([Type.Integer(), Type.Null()]),
  status: Type.String(),
  createdAt: Type.String({ description: "order date, ISO 8601; the listing sort key" }),
  updatedAt: Type.String({ description: "ISO 8601" }),
  isReturnable: Type.Boolean(),
  notes: text,
  content: text,
  tag: text,
  pickupDate: text,
  pickupTime: text,
  pickupPoint: text,
  consignee: Type.Object({
    name: text,
    street: text,
    city: text,
    state: text,
    postcode: text,
    country: text,
    email: text,
    phone: text,
  }),
  monetary: Type.Object({
    paymentMethod: text,
    isCod: Type.Boolean(),
    codPaymentOption: text,
    value: number,
    shippingCost: number,
    currency: Type.String(),
    shippingInsurance: number,
  }),
  planning: Type.Object({
    deliveryOptions: text,
    requestedDeliveryDate: text,
    latestShipDate: text,
    latestDeliveryDate: text,
  }),
  customAttributes: Type.Object({ custom1: text, custom2: text, custom3: text }),
  totalWeight: Type.Number({ description: "kg, all parcels" }),
  parcelsCount: Type.Integer(),
  firstParcelLength: number,
  firstParcelWidth: number,
  firstParcelHeight: number,
  parcels: Type.Array(RebuiltParcel),
  items: Type.Array(OrderItemView),
});
export type OrderView = Static<typeof OrderView>;

/** @param courierNumber of the order's courier code, undefined where none is known */
export function orderView(
  id: number,
  record: OrderRecord,
  courierNumber: (code: string) => number | undefined,
): OrderView {
  const { input } = record;
  const totals = aggregatesOf(record);
  const named = input.courier === undefined ? undefined : courierNumber(input.courier);
  return {
    id,
    channelId: record.channelId,
    reference: input.reference,
    orderId: input.orderId ?? null,
    source: input.source,
    courierId: input.courierId ?? named ?? 0,
    courierService: input.courierService ?? null,
    senderId: input.senderId ?? null,
    status: input.status ?? DEFAULT_STATUS,
    createdAt: input.createdAt ?? romeIso(record.createdAtMs),
    updatedAt: romeIso(record.updatedAtMs),
    isReturnable: input.isReturnable ?? true,
    notes: input.notes ?? null,
    content: input.content ?? null,
    tag: input.tag ?? null,
    pickupDate: input.pickupDate ?? null,
    pickupTime: input.pickupTime ?? null,
    pickupPoint: input.pickupPoint ?? null,
    ...partsOf(input),
    totalWeight: totals.totalWeight,
    parcelsCount: totals.parcelsCount,
    firstParcelLength: totals.length,
    firstParcelWidth: totals.width,
    firstParcelHeight: totals.height,
    parcels: rebuiltParcels(totals),
    items: (input.items ?? []).map(itemView),
  };
}

function partsOf({
  consignee,
  monetary,
  planning,
  customAttributes,
}: OrderRecord["input"]): Pick<
  OrderView,
  "consignee" | "monetary" | "planning" | "customAttributes"
> {
  return {
    consignee: {
      name: consignee?.name ?? null,
      street: consignee?.street ?? null,
      city: consignee?.city ?? null,
      state: consignee?.state ?? null,
      postcode: consignee?.postcode ?? null,
      country: consignee?.country ?? null,
      email: consignee?.email ?? null,
      phone: consignee?.phone ?? null,
    },
    monetary: {
      paymentMethod: monetary?.paymentMethod ?? null,
      isCod: monetary?.isCod ?? false,
      codPaymentOption: monetary?.codPaymentOption ?? null,
      value: monetary?.value ?? null,
      shippingCost: monetary?.shippingCost ?? null,
      currency: monetary?.currency ?? "EUR",
      shippingInsurance: monetary?.shippingInsurance ?? null,
    },
    planning: {
      deliveryOptions: planning?.deliveryOptions ?? null,
      requestedDeliveryDate: dayOf(planning?.requestedDeliveryDate),
      latestShipDate: dayOf(planning?.latestShipDate),
      latestDeliveryDate: dayOf(planning?.latestDeliveryDate),
    },
    customAttributes: {
      custom1: customAttributes?.custom1 ?? null,
      custom2: customAttributes?.custom2 ?? null,
      custom3: customAttributes?.custom3 ?? null,
    },
  };
}

/** Dates are shown as date: of a date-time the day it is in Rome. */
function dayOf(value: string | undefined): string | null {
  if (value === undefined) return null;
  return value.length === 10 ? value : romeIso(instantOf(value)).slice(0, 10);
}

/** The total weight spread evenly; dimensions and box of the first parcel only (document 1, "Order"). */
function rebuiltParcels(totals: Aggregates): OrderView["parcels"] {
  const { totalWeight, parcelsCount, content, originCountry } = totals;
  const { length, width, height, boxCode } = totals;
  const unknown = { length: null, width: null, height: null, boxCode: null };
  return Array.from({ length: parcelsCount }, (_, at) => ({
    weight: rounded(totalWeight / parcelsCount),
    ...(at === 0 ? { length, width, height, boxCode } : unknown),
    content,
    originCountry,
  }));
}

function itemView(item: NonNullable<OrderInput["items"]>[number]): Static<typeof OrderItemView> {
  return {
    sku: item.sku,
    name: item.name,
    quantity: item.quantity ?? 1,
    weight: item.weight ?? null,
    url: item.url ?? null,
    imageUrl: item.imageUrl ?? null,
    price: item.price ?? null,
    total: item.total ?? null,
    isReturnable: item.isReturnable ?? true,
    notes: item.notes ?? null,
    customsCode: item.customsCode ?? null,
    originCountry: item.originCountry ?? null,
    netWeight: item.netWeight ?? null,
    unitOfMeasurement: item.unitOfMeasurement ?? null,
    parcelId: item.parcelId ?? null,
    transparencyCodes: item.transparencyCodes ?? [],
  };
}

/** From an item of a creation to the shipment that is kept, or to what is wrong with it (document 1, "Shipments"). */
import { isItalianCap } from "#core/benchmarks/rules/lane.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { invalidName, notAllowed } from "./invalid-name.ts";
import {
  isLanguage,
  LANGUAGES,
  type Parcel,
  planningOf,
  type ShipmentInput,
  type ShipmentMeta,
  type ShipmentRecord,
} from "./shipment.ts";

export type ItemErrorCode =
  | "INVALID_COURIER"
  | "COURIER_NOT_CONFIGURED"
  | "INVALID_LANGUAGE"
  | "INVALID_ORIGIN"
  | "DUPLICATE_SHIPMENT"
  | "INVALID_BOX_CODE"
  | "MISSING_PARCEL_DIMENSIONS"
  | "VALIDATION_ERROR"
  | "INTERNAL_ERROR";

export interface ItemError {
  readonly code: ItemErrorCode;
  readonly message: string;
  /** Path within the item, such as `parcels[0].boxCode`. */
  readonly field: string;
  /** Of DUPLICATE_SHIPMENT: the channel's own shipment that is in the way. */
  readonly existingId?: number;
}

export interface Box {
  readonly length: number;
  readonly width: number;
  readonly height: number;
}

interface NamedCourier {
  readonly code: string;
  readonly name: string;
}

interface ChannelVariant {
  readonly code: string;
  readonly transcodings: readonly string[];
  readonly shippingEnabled: boolean;
}

/** The registries an item is checked against. */
export interface CreationContext {
  readonly companyId: number;
  readonly channelId: number;
  readonly couriers: ReadonlyMap<string, NamedCourier>;
  /** Couriers of the channel, by code. */
  readonly variants: ReadonlyMap<string, ChannelVariant>;
  readonly platforms: ReadonlySet<string>;
  readonly boxes: ReadonlyMap<string, Box>;
  /** Postal code the channel ships from; null where it has no Italian one. */
  readonly originCap: string | null;
}

export type Preparation =
  | {
      readonly kind: "ready";
      readonly record: Omit<ShipmentRecord, "id">;
      readonly meta: ShipmentMeta;
    }
  | { readonly kind: "rejected"; readonly errors: readonly ItemError[] };

/** All errors of the item are reported; the store checks uniqueness. */
export function prepareShipment(
  input: ShipmentInput,
  context: CreationContext,
  nowMs: number,
): Preparation {
  const courier = findCourier(input.courier, context);
  const language = input.language ?? "it";
  const errors = [
    ...courierErrors(input.courier, courier, context),
    ...languageErrors(language),
    ...originErrors(input.origin, context),
    ...parcelsErrors(input.parcels ?? [], context),
  ];
  if (errors.length > 0 || courier === null || !isLanguage(language)) {
    return { kind: "rejected", errors };
  }
  const { planning, language: _, parcels, consignee, ...rest } = input;
  const { companyId, channelId } = context;
  const record = {
    ...rest,
    companyId,
    channelId,
    courier,
    language,
    isRealTrackingNumber: input.isRealTrackingNumber ?? true,
    isReturnable: input.isReturnable ?? true,
    ...(consignee && { consignee: { country: "IT", ...consignee } }),
    ...(parcels && { parcels: parcels.map((parcel) => withBox(parcel, context)) }),
    planning: planningOf(planning),
    createdAtMs: nowMs,
  };
  return { kind: "ready", record, meta: metaOf(record, context) };
}

function metaOf(
  record: Omit<ShipmentRecord, "id">,
  { originCap, companyId, channelId }: CreationContext,
): ShipmentMeta {
  const parcelNumbers = parcelNumbersOf(record);
  const plannedOn = record.planning.deliveryDate;
  return {
    companyId,
    channelId,
    courier: record.courier,
    trackingNumber: record.trackingNumber,
    shipDate: record.shipDate,
    isPlaceholder: record.isRealTrackingNumber === false,
    orderReference: record.orderReference ?? null,
    destCap: capOf(record.consignee),
    originCap,
    weightKg: weightOf(record.parcels),
    ...(parcelNumbers.length > 0 && { parcelNumbers }),
    ...(plannedOn && { plannedOn }),
  };
}

/** Numbers by which courier events may tell of single parcels. */
function parcelNumbersOf({
  trackingNumber,
  parcels = [],
}: Pick<ShipmentRecord, "trackingNumber" | "parcels">): string[] {
  const numbers = new Set(parcels.map((parcel) => parcel.trackingNumber ?? ""));
  return [...numbers].filter((number) => number !== "" && number !== trackingNumber);
}

/** The CAP of an Italian address; null for any other. Italy is the default country. */
export function capOf(
  address: { readonly postcode?: string; readonly country?: string } | null | undefined,
): string | null {
  const { postcode, country = "IT" } = address ?? {};
  return postcode !== undefined && country === "IT" && isItalianCap(postcode) ? postcode : null;
}

function weightOf(parcels: readonly Parcel[] | undefined): number | null {
  if (!parcels || parcels.length === 0) return null;
  const grams = parcels.reduce((sum, { weight }) => sum + weight * 1000, 0);
  return Math.round(grams) / 1000;
}

/**
 * A courier code, a transcoding of the channel, or a courier name, in this order; letter case does not count. Among
 * couriers of one name, one of the channel's comes first.
 */
export function findCourier(
  text: string,
  { couriers, variants }: Pick<CreationContext, "couriers" | "variants">,
): string | null {
  if (couriers.has(text)) return text;
  const wanted = text.trim().toLowerCase();
  const same = (other: string) => other.trim().toLowerCase() === wanted;
  const all = [...couriers.values()];
  return (
    all.find(({ code }) => same(code))?.code ??
    [...variants.values()].find(({ transcodings }) => transcodings.some(same))?.code ??
    all.find(({ code, name }) => same(name) && variants.has(code))?.code ??
    all.find(({ name }) => same(name))?.code ??
    null
  );
}

function courierErrors(text: string, code: string | null, context: CreationContext): ItemError[] {
  if (code === null) return [unknownCourier(text, context)];
  const { variants } = context;
  if (variants.get(code)?.shippingEnabled) return [];
  const message = `The courier ${code} is not enabled for the channel.`;
  return [error("COURIER_NOT_CONFIGURED", "courier", message)];
}

function unknownCourier(text: string, context: CreationContext): ItemError {
  return error("INVALID_COURIER", "courier", unknownCourierText(text, context));
}

/** Allowed are the couriers that the channel ships with, by any name. */
export function unknownCourierText(
  text: string,
  { couriers, variants }: Pick<CreationContext, "couriers" | "variants">,
): string {
  const enabled = [...variants.values()].filter(({ shippingEnabled }) => shippingEnabled);
  const others = enabled.flatMap(({ code, transcodings }) =>
    [couriers.get(code)?.name ?? code, ...transcodings].map((name) => [name, code] as const),
  );
  const codes = enabled.map(({ code }) => code);
  return invalidName("The courier {} is not known.", text, codes, new Map(others));
}

function languageErrors(language: string): ItemError[] {
  if (isLanguage(language)) return [];
  const message = invalidName("The language {} is not supported.", language, LANGUAGES);
  return [error("INVALID_LANGUAGE", "language", message)];
}

function originErrors(origin: string | undefined, { platforms }: CreationContext): ItemError[] {
  if (origin === undefined || platforms.has(origin)) return [];
  const problem = "The origin {} is not in the platform registry.";
  return [error("INVALID_ORIGIN", "origin", invalidName(problem, origin, platforms))];
}

/** A job keeps its errors for 30 days, and 5,000 items may have 100 wrong box codes each. */
const BOXES_NAMED = limit(
  5,
  "errors of an item that list the boxes and the nearest one",
  "further errors name the value alone",
);

function parcelsErrors(parcels: readonly Parcel[], context: CreationContext): ItemError[] {
  const errors: ItemError[] = [];
  for (const [at, parcel] of parcels.entries()) {
    errors.push(...parcelErrors(parcel, at, context, errors.length < BOXES_NAMED));
  }
  return errors;
}

/**
 * A parcel needs either boxCode and weight, or weight, length, width and height.
 * @param isNamed whether an error lists the boxes that there are
 */
function parcelErrors(
  parcel: Parcel,
  at: number,
  { boxes }: CreationContext,
  isNamed: boolean,
): ItemError[] {
  const { boxCode, length, width, height } = parcel;
  const field = `parcels[${at}]`;
  if (boxCode !== undefined) {
    if (boxes.has(boxCode)) return [];
    const problem = "The box code {} is not in the company's box registry.";
    const message = isNamed
      ? invalidName(problem, boxCode, boxes.keys())
      : notAllowed(problem, boxCode);
    return [error("INVALID_BOX_CODE", `${field}.boxCode`, message)];
  }
  if (length !== undefined && width !== undefined && height !== undefined) return [];
  const message = "Without boxCode a parcel needs length, width and height.";
  return [error("MISSING_PARCEL_DIMENSIONS", field, message)];
}

/** The registry supplies the dimensions that the parcel does not give itself. */
function withBox(parcel: Parcel, { boxes }: CreationContext): Parcel {
  const box = parcel.boxCode === undefined ? undefined : boxes.get(parcel.boxCode);
  if (!box) return parcel;
  const { length, width, height } = box;
  return { length, width, height, ...parcel };
}

function error(code: ItemErrorCode, field: string, message: string): ItemError {
  return { code, field, message };
}

/** Weights in kg and lengths in cm of parcels. */
import { Type } from "@sinclair/typebox";
import { limit } from "#core/platform/schema/limit.ts";

/** Far above any parcel; sums of them stay numbers that JSON can hold. */
const MEASURE_LIMIT = limit(
  1_000_000,
  "weight in kg or length in cm of a parcel",
  "422; an error of the setup file",
);

const measure = (unit: string) =>
  Type.Number({ exclusiveMinimum: 0, maximum: MEASURE_LIMIT, description: unit });

export const kilograms = measure("kg");
export const centimetres = measure("cm");

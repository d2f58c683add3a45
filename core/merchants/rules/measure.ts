/** Weights in kg and lengths in cm of parcels. */
import { Type } from "@sinclair/typebox";

/** Far above any parcel; sums of them stay numbers that JSON can hold. */
const MEASURE_LIMIT = 1_000_000;

const measure = (unit: string) =>
  Type.Number({ exclusiveMinimum: 0, maximum: MEASURE_LIMIT, description: unit });

export const kilograms = measure("kg");
export const centimetres = measure("cm");

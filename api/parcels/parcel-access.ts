/** What all calls of order parcels ask first: the product, and which order is meant. */
import type { Caller } from "#api/auth/authenticated.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { orderOfParcels, parcelView } from "#core/merchants/rules/order-parcel.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Fault } from "#core/platform/schema/fault.ts";

export const KEY_LENGTH = 50;

const EXAMPLE_MS = Date.UTC(2026, 10, 20, 9);
export const EXAMPLE_CREATION = {
  orderReference: "1002",
  orderOrigin: "shopify",
  parcels: [{ weightKg: 1.2, lengthCm: 30, widthCm: 20, heightCm: 10 }],
};
const record = orderOfParcels(1, EXAMPLE_CREATION, EXAMPLE_MS);
export const EXAMPLE_PARCELS = record.parcels.map((one) => parcelView(record, one));

/** @throws {Problem} 403 */
export function checkProduct({ company }: Caller): void {
  if (company.products.includes("api-parcels")) return;
  throw new Problem(403, "PRODUCT_NOT_OWNED", "The company does not own the product api-parcels.");
}

/** The same for a missing parcel, one of another channel and a text that is no hash. */
export function parcelNotFound(): Problem {
  return new Problem(404, "PARCEL_NOT_FOUND", "There is no such parcel.");
}

export interface ParcelQuery {
  readonly orderReference: string;
  readonly orderOrigin: string;
  readonly page: number;
  readonly limit: number;
}

/** Document 1, "Limits". */
export const LIMIT_DEFAULT = 20;
export const LIMIT_MAX = 100;
export const PAGE_MAX = 1_000_000_000;

interface Reading {
  readonly params: URLSearchParams;
  readonly faults: Fault[];
}

/** @throws {Problem} 422 */
export function readParcelQuery(params: URLSearchParams): ParcelQuery {
  const faults: Fault[] = [];
  const reading: Reading = { params, faults };
  const query = {
    orderReference: key(reading, "orderReference"),
    orderOrigin: key(reading, "orderOrigin"),
    page: integer(reading, "page", 1, PAGE_MAX),
    limit: integer(reading, "limit", LIMIT_DEFAULT, LIMIT_MAX),
  };
  if (faults.length > 0) throw validationFailed(faults, Object.fromEntries(params));
  return query;
}

function text(reading: Reading, name: string): string | null {
  const [value = null, ...more] = reading.params.getAll(name);
  if (more.length > 0) {
    const message = "The parameter is given more than once.";
    reading.faults.push({ path: name, code: "TOO_MANY", message });
  }
  return value;
}

function key(reading: Reading, name: string): string {
  const value = text(reading, name) ?? "";
  if (value === "") {
    reading.faults.push({ path: name, code: "REQUIRED", message: "The parameter is required." });
  } else if ([...value].length > KEY_LENGTH) {
    reading.faults.push({
      path: name,
      code: "TOO_LONG",
      message: `At most ${KEY_LENGTH} characters.`,
    });
  }
  return value;
}

function integer(reading: Reading, name: string, fallback: number, max: number): number {
  const value = text(reading, name);
  if (value === null) return fallback;
  if (!/^[+-]?\d+$/.test(value)) {
    reading.faults.push({ path: name, code: "WRONG_TYPE", message: "A whole number." });
  } else if (Number(value) < 1 || Number(value) > max) {
    reading.faults.push({ path: name, code: "OUT_OF_RANGE", message: `From 1 to ${max}.` });
  }
  return Number(value);
}

import { limit } from "#core/platform/schema/limit.ts";

/**
 * Body limits in bytes, by what the schema can hold. A string of 255 characters is about 300 bytes in practice and 3 KiB at
 * worst, with two six-character escapes per character.
 */
const KIB = 1024;
const MIB = 1024 * KIB;

/** One API key of at most 255 characters. */
export const TOKEN_BODY_BYTES = limit(
  4 * KIB,
  "body of a token request",
  "413, the rest is not read",
);
/** A few texts: notifications, stock releases, address checks, parcel updates, benchmarks. */
export const SMALL_BODY_BYTES = limit(
  64 * KIB,
  "body of another small request of the merchant API",
  "413, the rest is not read",
);
/** A text of 10,000 characters, each an escape. */
export const SANDBOX_BODY_BYTES = limit(
  128 * KIB,
  "body of a sandbox request",
  "413, the rest is not read",
);
/** 99 parcels and 500 rows of about 1 KiB, or 1,000 parcels of an order. */
export const LIST_BODY_BYTES = limit(
  MIB,
  "body of a request for labels or new parcels",
  "413, the rest is not read",
);
/** One shipment: 100 parcels and 500 order lines of about 850 bytes. */
export const SHIPMENT_BYTES = limit(512 * KIB, "each shipment of a creation or an import", "413");
/** 100 shipments of 80 KiB: with about 150 parcels and order lines each. */
export const CREATE_BODY_BYTES = limit(8 * MIB, "body of a creation", "413");
/** 5,000 shipments of 6.5 KiB: with about 15 parcels and order lines each. */
export const IMPORT_BODY_BYTES = limit(32 * MIB, "body of an import", "413");

/** One item of `POST /v2/shipments/import`: a statically invalid one fails alone (document 1). */

import { Value } from "@sinclair/typebox/value";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { listFaults } from "#core/platform/schema/fault.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import type { ItemError } from "./new-shipment.ts";
import { faultOfShipDate, ShipmentInput } from "./shipment.ts";

export type ImportItem =
  | { readonly kind: "valid"; readonly input: ShipmentInput }
  | { readonly kind: "invalid"; readonly errors: readonly ItemError[] };

const checker = compileSchema(ShipmentInput);

/**
 * @param raw is modified: members that no schema knows are removed
 * @param mayBeIllFormed whether its strings must be checked for lone surrogates
 */
export function readImportItem(raw: unknown, mayBeIllFormed: boolean, nowMs: number): ImportItem {
  const illFormed = mayBeIllFormed ? illFormedText(raw) : [];
  if (illFormed.length > 0) return invalid(illFormed);
  if (!checker.check(raw)) return invalid(listFaults(checker.errors(raw)));
  const message = faultOfShipDate(raw.shipDate, nowMs);
  if (message !== null) return invalid([{ path: "shipDate", message }]);
  return { kind: "valid", input: Value.Clean(ShipmentInput, raw) as ShipmentInput };
}

function invalid(
  faults: readonly { readonly path: string; readonly message: string }[],
): ImportItem {
  const code = "VALIDATION_ERROR";
  return {
    kind: "invalid",
    errors: faults.map(({ path, message }) => ({ code, message, field: path })),
  };
}

/** What the item calls itself, also where it is invalid. */
export function trackingNumberOf(raw: unknown): string | null {
  if (typeof raw !== "object" || raw === null) return null;
  const { trackingNumber } = raw as { readonly trackingNumber?: unknown };
  return typeof trackingNumber === "string" ? trackingNumber.toWellFormed() : null;
}

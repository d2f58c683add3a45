/** `GET /v2/errors` and `/v2/errors.json`: what every error code of the merchant API means. */

import { errorRoutes } from "#core/platform/http/errors-page.ts";
import { FAULT_CODES } from "#core/platform/schema/fault.ts";
import type { ItemErrorCode } from "#core/shipments/rules/new-shipment.ts";

/** Codes of one item of a creation or an import; the others of the request are not affected. */
export const ITEM_CODES: Readonly<Record<ItemErrorCode, string>> = {
  INVALID_COURIER: "The courier is not known.",
  COURIER_NOT_CONFIGURED: "The courier is not enabled for the channel.",
  INVALID_LANGUAGE: "The language is not supported.",
  INVALID_ORIGIN: "The origin is not in the platform registry.",
  DUPLICATE_SHIPMENT:
    "The channel has a shipment with this courier and tracking number; `existingId` is its id.",
  INVALID_BOX_CODE: "The box code is not in the company's box registry.",
  MISSING_PARCEL_DIMENSIONS: "A parcel has neither a box code nor all three dimensions.",
  VALIDATION_ERROR: "The item of an import violates the documented rules.",
  INTERNAL_ERROR: "The item could not be created because of an error on the side of the service.",
};

export const merchantErrors = () =>
  errorRoutes({
    api: "merchant",
    title: "Error codes of the merchant API",
    shapes:
      "An error is {status, code, message, requestId}. Validation failures (422) and errors of labels are problem documents (RFC 7807): {type, title, status, code, detail, requestId}, with violations[] for validation. The header X-Error-Message repeats the text in ASCII, and the header Link leads to this page.",
    lists: [
      { title: "Codes of violations[]", name: "violations", codes: FAULT_CODES },
      {
        title: "Codes of the items of a creation or an import",
        name: "items",
        codes: ITEM_CODES,
        prefix: "item-",
      },
    ],
    links: { "OpenAPI description": "/v2/openapi.json" },
  });

/** Every `code` of an error of the merchant API, with what a caller does about it. A test compares it with the source. */

import type { ItemErrorCode } from "#core/domain/shipments/new-shipment.ts";
import type { DescribedError } from "#core/http/openapi/document.ts";

export interface ErrorCode extends DescribedError {
  /** What to do. */
  readonly remedy: string;
}

const CORRECT = "Correct the request; do not repeat it as it is.";
const LATER = "Repeat the request after the seconds of Retry-After, or with exponential backoff.";

export const ERROR_CODES: readonly ErrorCode[] = [
  row(
    400,
    "MALFORMED_BODY",
    "The body is missing or is not JSON in UTF-8, contains a duplicate key or a key `__proto__`, or has more than 32 levels.",
    CORRECT,
    "calls with a body",
  ),
  row(
    400,
    "BAD_REQUEST_TARGET",
    "The Host header is missing, empty, duplicate or not a host name, the path is malformed, or the query is not UTF-8.",
    "Correct the address.",
    "every call",
  ),
  row(
    400,
    "UNKNOWN_CARRIER",
    "The carrier code of a label is not known or not available on this channel.",
    "Use a carrier that is configured on the channel.",
  ),
  row(
    401,
    "INVALID_TOKEN",
    "The access token is missing, not valid or expired, or its key or channel has been switched off.",
    "Get a new token by POST /v2/auth/token.",
    "calls with credentials",
  ),
  row(401, "INVALID_API_KEY", "The API key is not valid or not active.", "Check the key."),
  row(
    403,
    "NO_CHANNEL_CONTEXT",
    "The token belongs to no channel.",
    "Use a token of a channel's API key.",
    "calls with credentials",
  ),
  row(
    403,
    "MISSING_SCOPE",
    "The API key lacks the scope that the call needs; the message names it.",
    "Use a key with that scope.",
    "calls with credentials",
  ),
  row(
    403,
    "KEY_SUSPENDED",
    "The key is suspended for an hour after 10 answers 429 within 5 minutes.",
    "Wait the seconds of Retry-After, and honour it in future.",
    "calls with credentials",
  ),
  row(
    403,
    "PRODUCT_NOT_OWNED",
    "The company does not own the product that the call needs.",
    "Order the product.",
  ),
  row(
    403,
    "ADDRESS_CHECK_NOT_ENABLED",
    "Address check is not enabled on the channel.",
    "Have it enabled.",
  ),
  row(
    403,
    "COMPANY_WIDE_READ_NOT_ENABLED",
    "The API key is not enabled for company-wide reads.",
    "Use scope=channel, or have the key enabled.",
  ),
  row(404, "NOT_FOUND", "There is no such path.", "Check the address."),
  ...(["SHIPMENT", "ORDER", "PARCEL", "JOB", "SANDBOX"] as const).map((name) =>
    row(
      404,
      `${name}_NOT_FOUND`,
      "There is no such resource, or it belongs to another channel.",
      "Check the id.",
    ),
  ),
  row(
    405,
    "METHOD_NOT_ALLOWED",
    "The path exists for other methods, which the header Allow names.",
    "Use one of them.",
  ),
  row(
    406,
    "NOT_ACCEPTABLE",
    "The header Accept excludes JSON, the only format of the answers.",
    "Send Accept: application/json, or none.",
    "every call",
  ),
  row(
    408,
    "BODY_TOO_SLOW",
    "The body did not arrive within 60 s.",
    "Repeat the request.",
    "calls with a body",
  ),
  row(
    409,
    "ORDER_EXISTS",
    "The channel has an order with this origin and reference.",
    "Change the parcels of that order.",
  ),
  row(
    409,
    "NOT_HELD_IN_DEPOT",
    "The shipment is not held in depot.",
    "Read its status; release it while it is held.",
  ),
  row(
    409,
    "STOCK_RELEASE_UNDER_WAY",
    "The carrier is being asked for the same release.",
    "Repeat the request after the seconds of Retry-After.",
  ),
  row(
    409,
    "EMAILS_NOT_MANAGED",
    "The channel's transactional e-mails are not managed by the service.",
    "Have them managed, or send the e-mail yourself.",
  ),
  row(
    409,
    "NOTIFICATION_REPEATED",
    "The event was accepted for this shipment within the last 24 hours.",
    "Nothing: the recipient has been notified.",
  ),
  row(
    413,
    "BODY_TOO_LARGE",
    "The body is larger than the call takes, or a shipment in a list is larger than 524,288 bytes.",
    "Split the request.",
    "calls with a body",
  ),
  row(
    422,
    "VALIDATION_FAILED",
    "The request violates the documented rules; `violations` lists what and where.",
    CORRECT,
    "calls with a body",
  ),
  row(
    422,
    "PROVIDER_CANNOT_SERVE",
    "The street registry takes Italian addresses only, and only for channels that ship with its carrier.",
    "Use the geocoder.",
  ),
  row(422, "CARRIER_REFUSED", "The carrier refuses; the message is its own.", CORRECT),
  row(
    423,
    "LABEL_IN_PROGRESS",
    "Another request has been making this label for more than 15 s.",
    LATER,
  ),
  row(
    423,
    "CONFIRMATION_IN_PROGRESS",
    "Another request has been confirming labels of this carrier for more than 15 s.",
    LATER,
  ),
  row(
    429,
    "RATE_LIMITED",
    "The request budget is used up; at the token call, too many invalid API keys came from this address.",
    "Wait the seconds of Retry-After, then use exponential backoff.",
    "calls with credentials",
  ),
  row(500, "INTERNAL_ERROR", "An error on the side of the service.", LATER, "every call"),
  row(502, "CARRIER_UNREACHABLE", "The carrier cannot be reached.", LATER),
  row(502, "CARRIER_UNREADABLE", "The carrier's answer cannot be read.", LATER),
  row(502, "PROVIDER_UNREACHABLE", "The address provider cannot be reached.", LATER),
  row(502, "PROVIDER_UNREADABLE", "The address provider's answer cannot be read.", LATER),
  row(
    503,
    "STORE_UNAVAILABLE",
    "The store of the service is unavailable; nothing was acknowledged.",
    LATER,
    "every call",
  ),
  row(503, "IMPORT_QUEUE_FULL", "The channel has too many unfinished imports.", LATER),
  row(503, "NOTIFICATION_NOT_QUEUED", "The e-mail was not queued, and none went out.", LATER),
  row(503, "SEARCH_UNSTEADY", "The shipments change faster than they can be read.", LATER),
  row(503, "BENCHMARKS_UNAVAILABLE", "Benchmarks cannot be computed just now.", LATER),
];

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

function row(
  status: number,
  code: string,
  meaning: string,
  remedy: string,
  of?: DescribedError["of"],
): ErrorCode {
  return { status, code, meaning, remedy, ...(of && { of }) };
}

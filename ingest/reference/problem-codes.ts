/** Every `code` of a problem document of `/v1`, with what a sender does about it. A test compares it with the source. */

export interface ProblemCode {
  readonly status: number;
  readonly code: string;
  readonly meaning: string;
  /** What to do. */
  readonly remedy: string;
}

export const PROBLEM_CODES: readonly ProblemCode[] = [
  row(
    400,
    "MALFORMED_BODY",
    "The body is not gzip although it says so, or cannot be cut into an envelope and its events: quotes, brackets and commas do not match, or a documented envelope field is there twice or cannot be read. What is wrong inside one event makes that event INVALID.",
    "Correct the message; do not retry it as it is.",
  ),
  row(
    400,
    "INVALID_ENVELOPE",
    "A field of the envelope is missing or wrong; see errors[].",
    "Correct the message; do not retry it as it is.",
  ),
  row(
    400,
    "UNSUPPORTED_SCHEMA_VERSION",
    "The major version of schemaVersion is not supported; detail names those that are.",
    "Send a supported version.",
  ),
  row(
    400,
    "BAD_REQUEST_TARGET",
    "The Host header is missing, empty, duplicate or not a host name, the path is malformed, or the query is not UTF-8.",
    "Correct the address.",
  ),
  row(
    401,
    "UNKNOWN_TOKEN",
    "The bearer token is missing, unknown, revoked or expired.",
    "Check the token; OAuth clients ask for a new one. Do not retry with the same.",
  ),
  row(
    403,
    "SIGNATURE_REQUIRED",
    "Signing is mandatory for this courier and the header is missing.",
    "Sign the message.",
  ),
  row(
    403,
    "BAD_SIGNATURE",
    "The signature is malformed, more than 5 minutes off the service clock (expired), or not of these bytes and this secret (mismatch).",
    "Sign the bytes as transmitted (compressed ones under gzip) with the current secret; check the clock.",
  ),
  row(
    403,
    "ADDRESS_NOT_ALLOWED",
    "The source address is not on the courier's allowlist.",
    "Send from an agreed address.",
  ),
  row(
    403,
    "CERTIFICATE_NOT_ACCEPTED",
    "The courier is bound to a client certificate and this connection shows none or another one.",
    "Connect with the agreed certificate.",
  ),
  row(
    403,
    "COURIER_MISMATCH",
    "The courier of the envelope is not the one of the token.",
    "Correct the courier code or the token.",
  ),
  row(404, "NOT_FOUND", "There is no such path.", "Check the address."),
  row(
    404,
    "NOT_ACCEPTING",
    "The courier is not activated yet; validate and ping work.",
    "Keep the events and send them after the activation.",
  ),
  row(
    405,
    "METHOD_NOT_ALLOWED",
    "The path exists for another method, named by the header Allow.",
    "Use that method.",
  ),
  row(
    413,
    "BODY_TOO_LARGE",
    "The body has more than 5 MiB, transmitted or inflated.",
    "Split the message.",
  ),
  row(
    415,
    "WRONG_CONTENT_TYPE",
    "Content-Type is not application/json in UTF-8.",
    "Correct the header.",
  ),
  row(
    415,
    "WRONG_CONTENT_ENCODING",
    "Content-Encoding is neither gzip nor absent (identity).",
    "Compress with gzip or not at all.",
  ),
  row(429, "RATE_LIMITED", "The burst is used up.", "Wait the seconds of Retry-After, then retry."),
  row(500, "INTERNAL_ERROR", "An error on the side of the service.", "Retry with backoff."),
  row(
    503,
    "BODY_TOO_SLOW",
    "The body did not arrive in time: 10 seconds, and one more for each 100 KiB. The connection is closed.",
    "Retry the same message.",
  ),
  row(
    503,
    "LOG_FULL",
    "The service is behind and takes no further events for now. Some events of the message may have been stored.",
    "Retry the same message after the seconds of Retry-After; what was stored is then a DUPLICATE.",
  ),
  row(
    503,
    "REFERENCES_BUSY",
    "Shipments of events in the message were being registered all the time. Some events may have been stored.",
    "Retry the same message after the seconds of Retry-After; what was stored is then a DUPLICATE.",
  ),
  row(
    503,
    "STORE_UNAVAILABLE",
    "The store is unavailable. Nothing was acknowledged.",
    "Retry the same message after the seconds of Retry-After.",
  ),
];

function row(status: number, code: string, meaning: string, remedy: string): ProblemCode {
  return { status, code, meaning, remedy };
}

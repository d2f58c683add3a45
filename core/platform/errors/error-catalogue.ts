/**
 * Every `code` of an error that a port answers with its HTTP status, what it means and what a caller does about it. The published
 * lists, the OpenAPI documents and the types of `Problem` come from here: a code that is not listed does not compile, and
 * `error-catalogue.test.ts` finds a code that nothing throws.
 */

/** Who calls: each has an API, and a catalogue, of its own. */
export type ErrorApi = "merchant" | "courier" | "operator";

/** Calls that can all be answered so; absent: only those that name the code. */
type Extent =
  | "every call"
  | "calls with credentials"
  | "calls with credentials that are no GET"
  | "calls with a body"
  | "calls with a query";

export interface ErrorEntry {
  readonly status: number;
  readonly code: string;
  readonly meaning: string;
  /** What to do. */
  readonly remedy: string;
  readonly of?: Extent;
}

const CORRECT = "Correct the request; do not repeat it as it is.";
const LATER = "Repeat the request after the seconds of Retry-After, or with exponential backoff.";
const CORRECT_MESSAGE = "Correct the message; do not retry it as it is.";
const RETRY_MESSAGE = "Retry the same message after the seconds of Retry-After.";

/** On every port. */
const SHARED = {
  BAD_REQUEST_TARGET: row(
    400,
    "The Host header is missing, empty, duplicate or not a host name, the path is malformed, or the query is not UTF-8.",
    "Correct the address.",
    "every call",
  ),
  NOT_FOUND: row(404, "There is no such path.", "Check the address."),
  METRICS_ELSEWHERE: row(404, "The metrics are served by the port METRICS_PORT.", "Ask that port."),
  UNAUTHORIZED: row(401, "The metrics need the bearer token METRICS_TOKEN.", "Send the token."),
};

/** Of calls that take an `Idempotency-Key`. */
const IDEMPOTENCY = {
  IDEMPOTENCY_KEY_REUSED: row(
    409,
    "The Idempotency-Key was used for another request within the last 24 hours: another path or another body.",
    "Use a new key for a new request.",
  ),
  IDEMPOTENCY_KEY_IN_USE: row(
    409,
    "The same request is being carried out under this Idempotency-Key.",
    "Repeat the request after the seconds of Retry-After.",
  ),
};

const MERCHANT = {
  ...SHARED,
  MALFORMED_BODY: row(
    400,
    "The body is missing or is not JSON in UTF-8, contains a duplicate key or a key `__proto__`, or has more than 32 levels.",
    CORRECT,
    "calls with a body",
  ),
  UNKNOWN_CARRIER: row(
    400,
    "The carrier code of a label is not known or not available on this channel.",
    "Use a carrier that is configured on the channel.",
  ),
  INVALID_TOKEN: row(
    401,
    "The access token is missing, not valid or expired, or its key or channel has been switched off.",
    "Get a new token with POST /v2/auth/token.",
    "calls with credentials",
  ),
  INVALID_API_KEY: row(401, "The API key is not valid or not active.", "Check the key."),
  NO_CHANNEL_CONTEXT: row(
    403,
    "The token belongs to no channel.",
    "Use a token of a channel's API key.",
    "calls with credentials",
  ),
  MISSING_SCOPE: row(
    403,
    "The API key lacks the scope that the call needs; the message names it.",
    "Use a key with that scope.",
    "calls with credentials",
  ),
  KEY_SUSPENDED: row(
    403,
    "The key is suspended for an hour after 10 answers 429 within 5 minutes.",
    "Wait the seconds of Retry-After, and honour it in future.",
    "calls with credentials",
  ),
  PRODUCT_NOT_OWNED: row(
    403,
    "The company does not own the product that the call needs.",
    "Order the product.",
  ),
  ADDRESS_CHECK_NOT_ENABLED: row(
    403,
    "Address check is not enabled on the channel.",
    "Have it enabled.",
  ),
  COMPANY_WIDE_READ_NOT_ENABLED: row(
    403,
    "The API key is not enabled for company-wide reads.",
    "Use scope=channel, or have the key enabled.",
  ),
  SHIPMENT_NOT_FOUND: row(
    404,
    "There is no such resource, or it belongs to another channel.",
    "Check the id.",
  ),
  ORDER_NOT_FOUND: row(
    404,
    "There is no such resource, or it belongs to another channel.",
    "Check the id.",
  ),
  PARCEL_NOT_FOUND: row(
    404,
    "There is no such resource, or it belongs to another channel.",
    "Check the id.",
  ),
  JOB_NOT_FOUND: row(
    404,
    "There is no such resource, or it belongs to another channel.",
    "Check the id.",
  ),
  LABEL_NOT_FOUND: row(
    404,
    "There is no such resource, or it belongs to another channel.",
    "Check the id. Labels are kept for 400 days.",
  ),
  TRANSMISSION_NOT_FOUND: row(
    404,
    "There is no such resource, or it belongs to another channel.",
    "Check the id. Transmissions are kept for 400 days.",
  ),
  STOCK_RELEASE_NOT_FOUND: row(
    404,
    "There is no such resource, or it belongs to another channel.",
    "Check the id. A shipment keeps its latest 50 releases.",
  ),
  NOTIFICATION_NOT_FOUND: row(
    404,
    "There is no such resource, or it belongs to another channel.",
    "Check the id. A shipment keeps its latest 200 notifications.",
  ),
  SANDBOX_NOT_FOUND: row(
    404,
    "There is no such resource, or it belongs to another channel.",
    "Check the id.",
  ),
  METHOD_NOT_ALLOWED: row(
    405,
    "The path exists for other methods, which the header Allow names.",
    "Use one of them.",
  ),
  NOT_ACCEPTABLE: row(
    406,
    "The header Accept excludes JSON, the only format of the answers.",
    "Send Accept: application/json, or none.",
    "every call",
  ),
  BODY_TOO_SLOW: row(
    408,
    "The body did not arrive within 60 s.",
    "Repeat the request.",
    "calls with a body",
  ),
  ORDER_EXISTS: row(
    409,
    "The channel has an order with this origin and reference.",
    "Change the parcels of that order.",
  ),
  ...IDEMPOTENCY,
  RECIPIENT_ERASED: row(
    409,
    "The recipient's data was erased: nothing personal can be added to the shipment again.",
    "Correct its order reference alone, or create another shipment.",
  ),
  TOO_MANY_REFERENCES: row(
    409,
    "The order reference was corrected too often.",
    "Go back to an earlier reference, or leave it as it is.",
  ),
  NOT_HELD_IN_DEPOT: row(
    409,
    "The shipment is not held in depot.",
    "Read its status; release it while it is held.",
  ),
  STOCK_RELEASE_UNDER_WAY: row(
    409,
    "The carrier is being asked for the same release.",
    "Repeat the request after the seconds of Retry-After.",
  ),
  EMAILS_NOT_MANAGED: row(
    409,
    "The channel's transactional e-mails are not managed by the service.",
    "Have them managed, or send the e-mail yourself.",
  ),
  NOTIFICATION_REPEATED: row(
    409,
    "The event was accepted for this shipment within the last 24 hours.",
    "Nothing: the recipient has been notified.",
  ),
  BODY_TOO_LARGE: row(
    413,
    "The body is larger than the call takes, or a shipment in a list is larger than 524,288 bytes.",
    "Split the request.",
    "calls with a body",
  ),
  VALIDATION_FAILED: row(
    422,
    "The request violates the documented rules; `violations` lists what and where.",
    CORRECT,
    "calls with a body",
  ),
  UNKNOWN_PARAMETER: row(
    422,
    "The call has no query parameter of this name; `nearest` is the one with the most similar name.",
    "Correct the name, or leave the parameter out.",
    "calls with credentials",
  ),
  PROVIDER_CANNOT_SERVE: row(
    422,
    "The street registry takes Italian addresses only, and only for channels that ship with its carrier.",
    "Use the geocoder.",
  ),
  CARRIER_REFUSED: row(422, "The carrier refuses; the message is its own.", CORRECT),
  LABEL_CONFIRMED: row(
    409,
    "A transmission holds the label, which is handed over to the carrier.",
    "Ask the carrier. Labels can be voided until they are confirmed.",
  ),
  LABEL_IN_PROGRESS: row(
    423,
    "Another request has been making this label for more than 15 s.",
    LATER,
  ),
  CONFIRMATION_IN_PROGRESS: row(
    423,
    "Another request has been confirming labels of this carrier for more than 15 s.",
    LATER,
  ),
  RATE_LIMITED: row(
    429,
    "The request budget is used up; at the token call, too many invalid API keys came from this address.",
    "Wait the seconds of Retry-After, then use exponential backoff.",
    "calls with credentials",
  ),
  INTERNAL_ERROR: row(500, "An error on the side of the service.", LATER, "every call"),
  CARRIER_UNREACHABLE: row(502, "The carrier cannot be reached.", LATER),
  CARRIER_UNREADABLE: row(502, "The carrier's answer cannot be read.", LATER),
  PROVIDER_UNREACHABLE: row(502, "The address provider cannot be reached.", LATER),
  PROVIDER_UNREADABLE: row(502, "The address provider's answer cannot be read.", LATER),
  STORE_UNAVAILABLE: row(
    503,
    "The store of the service is unavailable; nothing was acknowledged.",
    LATER,
    "every call",
  ),
  IMPORT_QUEUE_FULL: row(503, "The channel has too many unfinished imports.", LATER),
  NOTIFICATION_NOT_QUEUED: row(503, "The e-mail was not queued, and none went out.", LATER),
  SEARCH_UNSTEADY: row(503, "The shipments change faster than they can be read.", LATER),
  ARCHIVE_UNAVAILABLE: row(
    503,
    "Archived shipments cannot be read at the moment; all others can.",
    LATER,
  ),
  BENCHMARKS_UNAVAILABLE: row(503, "Benchmarks cannot be computed just now.", LATER),
};

const COURIER = {
  ...SHARED,
  MALFORMED_BODY: row(
    400,
    "The body is not gzip although Content-Encoding says so, or cannot be cut into an envelope and its events: quotes, brackets and commas do not match, or a documented envelope field occurs twice or cannot be read. An error inside one event makes only that event INVALID.",
    CORRECT_MESSAGE,
  ),
  INVALID_ENVELOPE: row(
    400,
    "A field of the envelope is missing or wrong; see errors[].",
    CORRECT_MESSAGE,
  ),
  UNSUPPORTED_SCHEMA_VERSION: row(
    400,
    "The major version of schemaVersion is not supported; detail names those that are.",
    "Send a supported version.",
  ),
  UNKNOWN_TOKEN: row(
    401,
    "The bearer token is missing, unknown, revoked or expired.",
    "Check the token; OAuth clients ask for a new one. Do not retry with the same.",
    "calls with credentials",
  ),
  SIGNATURE_REQUIRED: row(
    403,
    "Signing is mandatory for this courier and the header is missing.",
    "Sign the message.",
  ),
  BAD_SIGNATURE: row(
    403,
    "The signature is malformed, more than 5 minutes off the service clock (expired), or not of these bytes and this secret (mismatch).",
    "Sign the bytes as transmitted (compressed ones under gzip) with the current secret; check the clock.",
  ),
  ADDRESS_NOT_ALLOWED: row(
    403,
    "The source address is not on the courier's allowlist.",
    "Send from an agreed address.",
    "calls with credentials",
  ),
  CERTIFICATE_NOT_ACCEPTED: row(
    403,
    "The courier is bound to a client certificate and this connection shows none or another one.",
    "Connect with the agreed certificate.",
    "calls with credentials",
  ),
  COURIER_MISMATCH: row(
    403,
    "The courier of the envelope is not the one of the token.",
    "Correct the courier code or the token.",
  ),
  NOT_ACCEPTING: row(
    404,
    "The courier is not activated yet; validate and ping work.",
    "Keep the events and send them after the activation.",
  ),
  METHOD_NOT_ALLOWED: row(
    405,
    "The path exists for another method, named by the header Allow.",
    "Use that method.",
  ),
  BODY_TOO_LARGE: row(
    413,
    "The body has more than 5 MiB, transmitted or inflated.",
    "Split the message.",
  ),
  WRONG_CONTENT_TYPE: row(
    415,
    "Content-Type is not application/json in UTF-8.",
    "Correct the header.",
  ),
  WRONG_CONTENT_ENCODING: row(
    415,
    "Content-Encoding is neither gzip nor absent (identity).",
    "Compress with gzip or not at all.",
  ),
  RATE_LIMITED: row(
    429,
    "The request rate is used up.",
    "Wait the seconds of Retry-After, then retry.",
    "every call",
  ),
  INTERNAL_ERROR: row(
    500,
    "An error on the side of the service.",
    "Retry with backoff.",
    "every call",
  ),
  BODY_TOO_SLOW: row(
    503,
    "The body did not arrive in time: 10 seconds, and one more for each 100 KiB. The connection is closed.",
    "Retry the same message.",
  ),
  LOG_FULL: row(
    503,
    "The service is behind and takes no further events for now. Some events of the message may have been stored.",
    "Retry the same message after the seconds of Retry-After; what was stored is then a DUPLICATE.",
  ),
  REFERENCES_BUSY: row(
    503,
    "Shipments of events in the message were being registered at the same time. Some events may have been stored.",
    "Retry the same message after the seconds of Retry-After; what was stored is then a DUPLICATE.",
  ),
  STORE_UNAVAILABLE: row(
    503,
    "The store is unavailable. Nothing was acknowledged.",
    RETRY_MESSAGE,
    "every call",
  ),
};

const OPERATOR = {
  ...SHARED,
  MALFORMED_BODY: row(
    400,
    "The body is missing or is not JSON in UTF-8, contains a duplicate key or a key `__proto__`, or has more than 32 levels.",
    CORRECT,
    "calls with a body",
  ),
  UNKNOWN_OPERATOR: row(
    401,
    "The credentials are missing or wrong.",
    "Log in, or send the token of an operator.",
    "calls with credentials",
  ),
  TOTP_REQUIRED: row(401, "The account needs the code of its second factor.", "Send `code` too."),
  WRONG_CODE: row(
    401,
    "The code of the second factor is wrong, expired, or was used before.",
    "Send the current code.",
  ),
  WRONG_PASSWORD: row(401, "The current password is wrong.", "Send the current password."),
  FORBIDDEN: row(
    403,
    "The role of the account does not include the call.",
    "Ask somebody who has the role.",
    "calls with credentials",
  ),
  CROSS_SITE: row(
    403,
    "A request with a session did not come from a page of the panel.",
    "Send it from a page of the panel, or with a token instead of a session.",
    "calls with credentials",
  ),
  METHOD_NOT_ALLOWED: row(
    405,
    "The path exists for other methods, which the header Allow names.",
    "Use one of them.",
  ),
  ACCOUNT_NOT_FOUND: row(404, "There is no such account.", "Check the id."),
  COMPANY_NOT_FOUND: row(404, "There is no such company.", "Check the code."),
  INVITATION_NOT_FOUND: row(
    404,
    "There is no such invitation: it was used, replaced, or has expired.",
    "Ask for another one.",
  ),
  ACCESS_NOT_FOUND: row(
    404,
    "The courier has no such token or secret in force.",
    "Check the id or code.",
  ),
  API_KEY_NOT_FOUND: row(404, "There is no such API key.", "Check the id or code."),
  BOX_NOT_FOUND: row(404, "The company has no such box.", "Check the code."),
  CHANNEL_NOT_FOUND: row(404, "There is no such channel.", "Check the id or code."),
  COURIER_NOT_FOUND: row(404, "There is no such courier.", "Check the id or code."),
  DEAD_LETTER_NOT_FOUND: row(404, "There is no such dead letter.", "Check the id or code."),
  DELIVERY_NOT_FOUND: row(
    404,
    "There is no such delivery, or its 30 days are over.",
    "Check the id or code.",
  ),
  ENDPOINT_NOT_FOUND: row(404, "There is no such webhook endpoint.", "Check the id or code."),
  QUALITY_LINK_NOT_FOUND: row(
    404,
    "There is no such link to a quality report: it never existed, was revoked, or has expired.",
    "Make another one.",
  ),
  JOB_NOT_FOUND: row(404, "There is no such import.", "Imports are kept for 30 days."),
  REMAP_NOT_FOUND: row(404, "There is no such remap.", "Check the id or code."),
  REPLAY_NOT_FOUND: row(404, "There is no such replay.", "Check the id or code."),
  SENDER_NOT_FOUND: row(404, "The channel has no sender.", "Nothing is left to do."),
  SHIPMENT_NOT_FOUND: row(404, "There is no such shipment.", "Check the id or code."),
  TEMPLATE_NOT_FOUND: row(
    404,
    "The channel has no such mail template.",
    "Check the event and the language.",
  ),
  BODY_TOO_SLOW: row(
    408,
    "The body did not arrive within 60 s.",
    "Repeat the request.",
    "calls with a body",
  ),
  ACCOUNT_EXISTS: row(
    409,
    "There is an account with this e-mail address: of the inviter's own company or courier, or, when a link is used, of any.",
    "Use that account, or another address. An address has one account: another invitation can be accepted once that one is deleted.",
  ),
  NO_ACCOUNT: row(409, "The operator of PANEL_TOKEN has no account.", "Log in with an account."),
  OWN_ACCOUNT: row(
    409,
    "Nobody changes the role of their own account, or deletes it.",
    "Let another administrator do it.",
  ),
  TOO_MANY_ACCOUNTS: row(
    409,
    "The company, the courier or the operators have reached their limit of accounts, or all of them together have.",
    "Delete accounts and invitations that are not used.",
  ),
  TOTP_ACTIVE: row(409, "The account has a second factor.", "Remove it first."),
  TOTP_REPLACED: row(
    409,
    "The secret of the second factor was replaced in the meantime.",
    "Start again.",
  ),
  API_KEY_CODE_IN_USE: row(409, "The channel has an API key of this code.", "Choose another code."),
  COURIER_EXISTS: row(409, "There is a courier of this code.", "Choose another code."),
  COMPANY_EXISTS: row(409, "There is a company of this code.", "Choose another code."),
  CHANNEL_EXISTS: row(
    409,
    "There is a channel of this code, of this company or another.",
    "Choose another code.",
  ),
  ENTITY_CLOSED: row(
    409,
    "The courier, company or channel has been closed.",
    "Reopen it before you change it; its code is not free.",
  ),
  WEBHOOKS_PENDING: row(
    409,
    "The company or channel has webhooks that are not delivered yet.",
    "Wait for them, or disable the endpoints.",
  ),
  IMPORTS_RUNNING: row(409, "An import of the company or channel is running.", "Wait for its end."),
  COURIER_IN_CHANNEL: row(
    409,
    "The channel has this courier already.",
    "Change the courier instead of adding it.",
  ),
  CATALOGUE_CHANGED: row(
    409,
    "The courier's catalogue has changed since the preview that `base` is of.",
    "Preview the file again.",
  ),
  CATALOGUE_FULL: row(
    409,
    "The courier's catalogue has reached its limit of codes.",
    "Remove codes that the courier no longer sends.",
  ),
  DELIVERY_PENDING: row(
    409,
    "The delivery is still pending: it is sent without a replay.",
    "Wait for its outcome.",
  ),
  ENDPOINT_DISABLED: row(409, "The webhook endpoint is disabled.", "Enable it first."),
  NOT_REPLAYABLE: row(
    409,
    "Deliveries of webhooks v1 cannot be replayed.",
    "Let the merchant catch up with the search.",
  ),
  REMAP_SUPERSEDED: row(
    409,
    "A later change has mapped the same codes again; `codes` lists them.",
    "Revert the later change first.",
  ),
  REPLAY_WINDOW_OVER: row(
    409,
    "The delivery is more than 30 days old.",
    "Let the merchant catch up with the search.",
  ),
  ROTATION_RUNNING: row(
    409,
    "The secret of an earlier rotation still signs.",
    "Wait until `previousSecretUntil`, or send `revokePrevious: true`.",
  ),
  SECRET_REPLACED: row(
    409,
    "Somebody else has rotated the secret at the same time.",
    "Read the endpoint, and rotate again if it is still needed.",
  ),
  VERSION_CONFLICT: row(
    412,
    "What you change is not the version that `If-Match` names, or with `If-None-Match: *` is there already; `changedBy` and `changedAt` say who changed it last, and when.",
    "Read it again, and send what is still wanted with its new `ETag`.",
    "calls with credentials that are no GET",
  ),
  TEST_CLOCK_OFF: row(
    409,
    "The clock moves only where TEST_CLOCK=1 is set.",
    "Use an installation for tests.",
  ),
  TOO_MANY_API_KEYS: row(
    409,
    "The channel has reached its limit of API keys.",
    "Revoke one that is not used.",
  ),
  TOO_MANY_BOXES: row(
    409,
    "The company has reached its limit of boxes.",
    "Delete one that is not used.",
  ),
  TOO_MANY_COURIERS: row(
    409,
    "The channel has reached its limit of couriers.",
    "Remove one that is not used.",
  ),
  TOO_MANY_ENDPOINTS: row(
    409,
    "The channel has 5 webhook endpoints, disabled ones included.",
    "Delete one.",
  ),
  TOO_MANY_RECEIVERS: row(
    409,
    "There are as many receivers of these alarms as there may be.",
    "Change or delete one.",
  ),
  RECEIVER_NOT_FOUND: row(
    404,
    "There is no such receiver of alarms, or it is somebody else's.",
    "List the receivers.",
  ),
  INCIDENT_NOT_FOUND: row(
    404,
    "There is no such incident, or it is somebody else's.",
    "List the incidents.",
  ),
  TOO_MANY_LINKS: row(
    409,
    "The courier has reached its limit of links to its quality report.",
    "Revoke one that is not used.",
  ),
  TOO_MANY_ISSUED: row(
    409,
    "The courier has reached its limit of issued tokens or secrets.",
    "Revoke one that is not used.",
  ),
  TOO_MANY_TEMPLATES: row(
    409,
    "The channel has reached its limit of mail templates.",
    "Delete one that is not used.",
  ),
  ...IDEMPOTENCY,
  TOO_MANY_REPLAYS: row(409, "Too many replays are under way.", "Wait for one to end."),
  BODY_TOO_LARGE: row(
    413,
    "The body is larger than the call takes.",
    "Split the request.",
    "calls with a body",
  ),
  INVALID_BODY: row(
    422,
    "The body violates the documented rules; `violations` lists what and where.",
    CORRECT,
    "calls with a body",
  ),
  INVALID_HEADER: row(
    422,
    "The Idempotency-Key is not 1 to 255 visible ASCII characters.",
    "Send another key, such as a UUID.",
  ),
  INVALID_PATH: row(
    422,
    "A parameter of the path violates the documented rules; `violations` lists what and where.",
    "Correct the path.",
  ),
  INVALID_QUERY: row(
    422,
    "A parameter of the query violates the documented rules.",
    CORRECT,
    "calls with a query",
  ),
  INVALID_STATUS_CODE: row(
    422,
    "The status code of the path is not one that a courier can send.",
    "Correct the path.",
  ),
  SQL_FAILED: row(422, "ClickHouse refuses the statement; the detail is its message.", CORRECT),
  SQL_REFUSED: row(
    422,
    "SQL access does not allow what the statement does.",
    "Read the tables that docs/analytics.md names.",
  ),
  RATE_LIMITED: row(
    429,
    "Too many log-ins, or wrong tokens, came from this address, or too many requests from this caller.",
    "Wait the seconds of Retry-After.",
    "calls with credentials",
  ),
  TOO_MANY_INVITATIONS: row(
    429,
    "Too many invitations went to this address, or were sent by this account, company or courier.",
    "Wait the seconds of Retry-After.",
  ),
  TOO_MANY_IDEMPOTENCY_KEYS: row(
    429,
    "The caller has reached its limit of Idempotency-Keys within 24 hours.",
    "Wait the seconds of Retry-After, or send the request without a key.",
  ),
  TOO_MANY_TEST_MAILS: row(
    429,
    "The channel has reached its limit of test mails.",
    "Wait the seconds of Retry-After.",
  ),
  SQL_BUSY: row(429, "Too many SQL statements are waiting.", LATER),
  INTERNAL_ERROR: row(500, "An error on the side of the service.", LATER, "every call"),
  MAIL_NOT_SENT: row(
    502,
    "The mail server refuses the message or cannot be reached; the detail says which.",
    "Follow the detail, then repeat the request.",
  ),
  ANALYTICS_UNAVAILABLE: row(503, "ClickHouse is unavailable.", LATER),
  ARCHIVE_UNAVAILABLE: row(
    503,
    "Archived shipments cannot be read at the moment; all others can.",
    LATER,
  ),
  CONFIGURATION_BUSY: row(
    503,
    "Another change of the configuration or of the same account is in progress.",
    LATER,
  ),
  AUDIT_LOG_FULL: row(
    503,
    "ClickHouse has been unavailable for so long that the audit log has no room for another change.",
    LATER,
    "calls with credentials that are no GET",
  ),
  LOGINS_BUSY: row(503, "Too many people log in at the same time.", LATER),
  TOO_MANY_VIEWERS: row(503, "Too many people watch the live overview.", LATER),
  NOBODY_SENDS: row(
    503,
    "No process sends webhooks at the moment.",
    "Start the processors, then repeat the request.",
  ),
  SQL_DOOR_SHUT: row(
    503,
    "SQL access is closed, because it cannot be made safe here; the detail says why.",
    "Follow the detail.",
  ),
  STORE_UNAVAILABLE: row(
    503,
    "The store of the service is unavailable; nothing was acknowledged.",
    LATER,
    "every call",
  ),
};

const CATALOGUES = { merchant: MERCHANT, courier: COURIER, operator: OPERATOR };
type Catalogues = typeof CATALOGUES;

export type ErrorCode = { [Api in ErrorApi]: keyof Catalogues[Api] }[ErrorApi];

/** The statuses of a code: one in each API. */
export type StatusOf<Code extends ErrorCode> = {
  [Api in ErrorApi]: Code extends keyof Catalogues[Api]
    ? Catalogues[Api][Code] extends { readonly status: infer Status }
      ? Status
      : never
    : never;
}[ErrorApi];

/** By status. */
export function errorsOf(api: ErrorApi): ErrorEntry[] {
  const entries = Object.entries(CATALOGUES[api]).map(([code, entry]) => ({ code, ...entry }));
  return entries.toSorted((one, other) => one.status - other.status);
}

function row<Status extends number>(status: Status, meaning: string, remedy: string, of?: Extent) {
  return { status, meaning, remedy, ...(of && { of }) };
}

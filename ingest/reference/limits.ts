/** Every limit of `/v1` and what happens at it, for the reference. */
import { BODY_LIMIT_BYTES, EVENTS_PER_MESSAGE } from "#core/events/rules/event.ts";
import { PARKED_LIMIT, PARKED_MS, PARKED_PER_REFERENCE } from "#core/events/store/parked.ts";
import { SHIPMENTS_PER_COMPANY, SHIPMENTS_PER_REFERENCE } from "#core/events/store/references.ts";
import { NESTING_LIMIT } from "#core/platform/http/body/strict-json.ts";
import { FAULTS_LISTED } from "#core/platform/schema/fault.ts";
import { SIGNATURE_TOLERANCE_MS, SIGNATURES_READ } from "#core/webhooks/rules/signature.ts";
import { TOKEN_LIFE_SECONDS } from "#ingest/oauth/access-token.ts";
import { FORM_LIMIT_BYTES } from "#ingest/routes/token.ts";

export interface Limit {
  readonly what: string;
  readonly limit: string;
  readonly then: string;
}

const days = (ms: number) => `${ms / 86_400_000} days`;
const number = (value: number) => value.toLocaleString("en");

export const LIMITS: readonly Limit[] = [
  row("Events of a message", number(EVENTS_PER_MESSAGE), "400 INVALID_ENVELOPE"),
  row("Body, transmitted and inflated", `${BODY_LIMIT_BYTES / 1_048_576} MiB`, "413"),
  row("Nesting of an event's JSON", String(NESTING_LIMIT), "that event is INVALID"),
  row("Errors listed of one event or envelope", String(FAULTS_LISTED), "the rest is not listed"),
  row(
    "Rate of a courier",
    "20 requests a second, burst 100, unless agreed otherwise",
    "429 with Retry-After",
  ),
  row(
    "Rate of callers without a valid token",
    "20 requests a second and address, burst 100",
    "429 with Retry-After",
  ),
  row(
    "Signature's t, both ways",
    `${SIGNATURE_TOLERANCE_MS / 60_000} minutes`,
    "403 BAD_SIGNATURE",
  ),
  row(
    "v1 values of a signature header",
    `the first ${SIGNATURES_READ} are read`,
    "others are ignored",
  ),
  row(
    "Time to transmit a message",
    "10 seconds, and one more for each 100 KiB; without Content-Length 10 seconds for each part",
    "503 BODY_TOO_SLOW",
  ),
  row(
    "Requests on a connection",
    "one at a time; chunked bodies without trailers",
    "the connection is closed without an answer; 400 without a body",
  ),
  row("Memory of eventIds", "184 days at least", "a replay after that is treated as new"),
  row(
    "Set-aside of an event of an unknown parcel",
    `${days(PARKED_MS)} from the last time it was sent`,
    "nothing is kept",
  ),
  row(
    "Events set aside for one reference",
    number(PARKED_PER_REFERENCE),
    "the one sent longest ago is no longer kept",
  ),
  row("Events set aside in all", number(PARKED_LIMIT), "UNKNOWN_TRACKING all the same, not kept"),
  row(
    "Shipments that one number reaches",
    `the latest ${SHIPMENTS_PER_COMPANY} of a company, ${SHIPMENTS_PER_REFERENCE} in all`,
    "older ones are not reached",
  ),
  row("Life of an OAuth access token", `${number(TOKEN_LIFE_SECONDS)} seconds`, "401"),
  row("Form of a token request", `${number(FORM_LIMIT_BYTES)} bytes`, "400 invalid_request"),
];

function row(what: string, limit: string, then: string): Limit {
  return { what, limit, then };
}

/** The reference page: one static HTML document without requests to anybody, whose tables can be searched. */
import { CourierEvent, Envelope } from "#core/events/rules/event.ts";
import { NUMBER_REUSE_MS } from "#core/events/rules/match-reference.ts";
import { errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { type Html, html } from "#core/platform/http/html.ts";
import { type Row, referencePage, table } from "#core/platform/http/reference-page.ts";
import { FAULT_CODES } from "#core/platform/schema/fault.ts";
import { EXAMPLE_ANSWER, EXAMPLE_MESSAGE } from "#ingest/reference/example.ts";
import { fieldRows } from "#ingest/reference/field-rows.ts";
import { LIMITS } from "#ingest/reference/limits.ts";

export function docsPage(): string {
  return referencePage(
    "Courier Event Ingestion API",
    html`<p>Push tracking events as they happen. <a href="/v1/guide">Guide to a first integration</a>,
<a href="/v1/openapi.json">OpenAPI description</a>, <a href="/v1/calls">calls to search and to try</a>, <a href="#doctor">doctor</a>,
complete senders without dependencies: <a href="/v1/examples/courier.ts">TypeScript</a>, <a href="/v1/examples/courier.py">Python</a></p>
${ENDPOINTS}
<h2 id="example">Example</h2>
<p>A message with three events, the last of them without an offset:</p>
<pre>${json(EXAMPLE_MESSAGE)}</pre>
<p>Its answer, 200:</p>
<pre>${json(EXAMPLE_ANSWER)}</pre>
<h2 id="envelope">Envelope</h2>
<p>Unknown fields of the envelope are ignored. Any schemaVersion 1.x is accepted. A minor version may add optional fields and
outcomes: ignore unknown fields in answers. A major version is announced at least 90 days ahead; the previous one is
accepted for at least 12 months after the announcement.</p>
${fields(fieldRows(Envelope))}
<h2 id="event">Event</h2>
<p>Unknown fields make the event INVALID. trackingNumber is required, or externalId with senderAccount.</p>
${fields(fieldRows(CourierEvent))}
${JSON_RULES}
<h2 id="outcomes">Outcomes</h2>
${table(["Outcome", "Meaning"], rows(OUTCOMES))}
<p>Order of checks: INVALID, DUPLICATE, UNKNOWN_TRACKING, ACCEPTED. Only ACCEPTED takes the eventId.</p>
${MATCHING}
<h2 id="faults">Codes of errors[]</h2>
${table(["Code", "Meaning"], rows(Object.entries(FAULT_CODES)))}
<h2 id="problems">Problem codes</h2>
${table(["Status", "Code", "Meaning", "What to do"], problemRows())}
<h2 id="limits">Limits</h2>
${table(["What", "Limit", "At the limit"], rows(LIMITS.map(({ what, limit, then }) => [what, limit, then])))}
${SIGNATURE}
${DOCTOR}`,
    { isSearchable: true },
  );
}

const REUSE_DAYS = NUMBER_REUSE_MS / 86_400_000;
const rows = (cells: ReadonlyArray<readonly string[]>): Row[] =>
  cells.map((row) => ({ cells: row }));
const json = (value: unknown) => JSON.stringify(value, null, 2);

const OUTCOMES = [
  ["ACCEPTED", "stored and being processed; on validate: would have been accepted"],
  ["DUPLICATE", "the eventId is already known; not an error"],
  [
    "UNKNOWN_TRACKING",
    "no such parcel, or references that contradict each other; kept for 7 days in case the parcel is registered",
  ],
  ["INVALID", "violates the schema; correct it and resend it with the same eventId"],
];

const ENDPOINTS = html`<h2 id="endpoints">Endpoints</h2>
${table(
  ["Call", "Does"],
  rows([
    ["POST /v1/events", "takes a message; 200 with one result for each event"],
    ["POST /v1/events/validate", "the same checks; stores nothing, needs no known parcels"],
    ["GET /v1/ping", "checks the credentials"],
    ["POST /v1/oauth/token", "access token for couriers with an OAuth client (on request)"],
    ["GET /v1/vectors.json", "bodies, secrets and the signatures that belong to them"],
    ["GET /v1/doctor.mjs", "a program that checks your sender"],
  ]),
)}
<p>Authorization: Bearer &lt;token&gt;; Content-Type: application/json; Content-Encoding: gzip is welcome.
Retry on 429, 5xx, connection failures and timeouts, with exponential backoff and jitter; the same message may be sent
again at any time.</p>`;

const JSON_RULES = html`<h2 id="json">JSON</h2>
${table(
  ["What", "Then"],
  rows([
    [
      "in an event: the same key twice, a key __proto__, nesting over 32, invalid JSON, invalid UTF-8, half of a surrogate pair",
      "that event is INVALID (BAD_FORMAT), the others are processed",
    ],
    ["a documented envelope field twice", "400 MALFORMED_BODY"],
    ["unknown envelope fields", "ignored, whatever they hold"],
    ["quotes, brackets or commas that do not match", "400 MALFORMED_BODY"],
    ["half of a surrogate pair in messageId", "400 INVALID_ENVELOPE"],
    ["a number written 1.0 or 1e0 where a whole number is asked for", "accepted"],
    ["a number too large for a double", "WRONG_TYPE or OUT_OF_RANGE"],
    ["a byte order mark before the text", "ignored"],
    ["several gzip members in a row", "read as one text"],
    ["zero bytes after the end of the gzip stream", "ignored"],
    ["any other bytes after it", "400 MALFORMED_BODY"],
  ]),
)}`;

const MATCHING = html`<h2 id="matching">Which parcel an event means</h2>
${table(
  ["References", "The event goes to"],
  rows([
    [
      "trackingNumber",
      "every shipment with this number: its own, that of a parcel, or one that was announced",
    ],
    [
      "any of them",
      "white space and invisible characters around it do not count; in a tracking number they do not count inside either, nor does the case of ASCII letters",
    ],
    ["and senderAccount", "only those whose merchant has the account, if any of them has"],
    [
      "and externalId",
      "only those whose order reference agrees or that have none; UNKNOWN_TRACKING if none agrees",
    ],
    [
      "externalId and senderAccount",
      "the one shipment with this order reference; UNKNOWN_TRACKING, and not kept, if there are several",
    ],
  ]),
)}
<p>A number may be reused: ${REUSE_DAYS} days after the end of its first shipment, events go only to the later one.
deliveredTo, signedBy, podUrl, pickupPoint and recipientActionUrl reach no shipment if the event goes to several companies.
A trackingNumberChange takes effect from the next event on; that of a DUPLICATE has none.</p>`;

const SIGNATURE = html`<h2 id="signature">Signature</h2>
<p>X-Service-Signature: t=&lt;unix_seconds&gt;,v1=&lt;hex&gt;, where v1 is the HMAC-SHA256 of
&lt;t&gt;.&lt;body as transmitted&gt; keyed with the signing secret as issued. Compress first, then sign.</p>
<pre>BODY=message.json T=$(date +%s)
V1=$( (printf '%s.' "$T"; cat "$BODY") | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)
curl -sS "$URL/v1/events/validate" -H "Authorization: Bearer $TOKEN" -H "X-Service-Signature: t=$T,v1=$V1" \\
  -H 'Content-Type: application/json' --data-binary @"$BODY"</pre>
<p>Check your code with the <a href="/v1/vectors.json">test vectors</a> first: bodies in base64, secrets, and the headers
that belong to them.</p>`;

const DOCTOR = html`<h2 id="doctor">Doctor</h2>
<p><a href="/v1/doctor.mjs">One file</a> that needs Node.js 20 or Bun and nothing else. It checks address, token, clock and
signature, stops at the first cause that makes everything else fail, sends about fifty edge cases to
/v1/events/validate, which stores nothing, and judges messages of your own.</p>
<pre>curl -sSO "$URL/v1/doctor.mjs"
node doctor.mjs courier --url "$URL" --token "$TOKEN" --courier "$COURIER" --secret "$SECRET" --messages message.json</pre>`;

function problemRows(): Row[] {
  return errorsOf("courier").map(({ status, code, meaning, remedy }) => ({
    id: code,
    cells: [String(status), code, meaning, remedy],
  }));
}

function fields(found: ReturnType<typeof fieldRows>): Html {
  return table(
    ["Field", "Required", "Rule"],
    rows(found.map(({ path, required, rule }) => [path, required ? "yes" : "", rule])),
  );
}

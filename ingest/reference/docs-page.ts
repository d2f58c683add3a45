/** The reference page: one static HTML document without scripts and without requests to anybody. */
import { CourierEvent, Envelope } from "#core/domain/event.ts";
import { FAULT_CODES } from "#core/domain/fault.ts";
import { NUMBER_REUSE_MS } from "#core/domain/match-reference.ts";
import { fieldRows } from "#ingest/reference/field-rows.ts";
import { LIMITS } from "#ingest/reference/limits.ts";
import { PROBLEM_CODES } from "#ingest/reference/problem-codes.ts";

export function docsPage(): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Courier Event Ingestion API</title>
<style>${STYLE}</style>
<main>
<h1>Courier Event Ingestion API</h1>
<p>Push tracking events as they happen. <a href="/v1/openapi.json">OpenAPI description</a></p>
${ENDPOINTS}
<h2 id="envelope">Envelope</h2>
<p>Unknown fields of the envelope are ignored. Any schemaVersion 1.x is accepted.</p>
${fields(fieldRows(Envelope))}
<h2 id="event">Event</h2>
<p>Unknown fields make the event INVALID. Either trackingNumber, or externalId with senderAccount, must be there.</p>
${fields(fieldRows(CourierEvent))}
${JSON_RULES}
<h2 id="outcomes">Outcomes</h2>
${table(["Outcome", "Meaning"], OUTCOMES)}
<p>Order of judgement: INVALID, DUPLICATE, UNKNOWN_TRACKING, ACCEPTED. Only ACCEPTED takes the eventId.</p>
${MATCHING}
<h2 id="faults">Codes of errors[]</h2>
${table(["Code", "Meaning"], Object.entries(FAULT_CODES))}
<h2 id="problems">Problem codes</h2>
${table(["Status", "Code", "Meaning", "What to do"], problemRows())}
<h2 id="limits">Limits</h2>
${table(
  ["What", "Limit", "At the limit"],
  LIMITS.map(({ what, limit, then }) => [what, limit, then]),
)}
${SIGNATURE}
</main>
</html>
`;
}

const REUSE_DAYS = NUMBER_REUSE_MS / 86_400_000;

const OUTCOMES = [
  ["ACCEPTED", "stored and being processed; on validate: would have been accepted"],
  ["DUPLICATE", "the eventId is already known; not an error"],
  [
    "UNKNOWN_TRACKING",
    "no such parcel, or references that contradict each other; kept for 7 days in case it appears",
  ],
  ["INVALID", "against the schema; correct it and resend it with the same eventId"],
];

const ENDPOINTS = `<h2 id="endpoints">Endpoints</h2>
${table(
  ["Call", "Does"],
  [
    ["POST /v1/events", "takes a message; 200 with one result for each event"],
    ["POST /v1/events/validate", "the same judgement; stores nothing, needs no known parcels"],
    ["GET /v1/ping", "checks the credentials"],
    ["POST /v1/oauth/token", "access token for couriers with an OAuth client (on request)"],
  ],
)}
<p>Authorization: Bearer &lt;token&gt;; Content-Type: application/json; Content-Encoding: gzip is welcome.
Retry on 429, 5xx, connection failures and timeouts, with exponential backoff and jitter; the same message may be sent
again at any time.</p>`;

const JSON_RULES = `<h2 id="json">JSON</h2>
${table(
  ["What", "Then"],
  [
    ["the same key twice in one object, a key __proto__, nesting over 32", "400 MALFORMED_BODY"],
    ["half a surrogate pair in a text of an event", "that event is INVALID (BAD_FORMAT)"],
    ["half a surrogate pair in messageId", "400 INVALID_ENVELOPE"],
    ["a number written 1.0 or 1e0 where a whole number is asked for", "accepted"],
    ["a number too large for a double", "wrong type or out of range"],
    ["a byte order mark before the text", "ignored"],
    ["text after the end of the gzip stream", "ignored"],
  ],
)}`;

const MATCHING = `<h2 id="matching">Which parcel an event means</h2>
${table(
  ["References", "The event goes to"],
  [
    [
      "trackingNumber",
      "every shipment with this number: its own, that of a parcel, or one that was announced",
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
  ],
)}
<p>A number may be used again: ${REUSE_DAYS} days after the end of its first shipment, events go to the later one alone.
deliveredTo, signedBy, podUrl, pickupPoint and recipientActionUrl reach no shipment if the event goes to several companies.
A trackingNumberChange counts from the next event on; that of a DUPLICATE does not count.</p>`;

const SIGNATURE = `<h2 id="signature">Signature</h2>
<p>X-Service-Signature: t=&lt;unix_seconds&gt;,v1=&lt;hex&gt;, where v1 is the HMAC-SHA256 of
&lt;t&gt;.&lt;body as transmitted&gt; keyed with the signing secret as issued. Compress first, then sign.</p>
<pre>printf '%s.' "$T" | cat - body.json | openssl dgst -sha256 -hmac "$SECRET"</pre>`;

function problemRows(): string[][] {
  return PROBLEM_CODES.map(({ status, code, meaning, remedy }) => [
    String(status),
    code,
    meaning,
    remedy,
  ]);
}

function fields(rows: ReturnType<typeof fieldRows>): string {
  return table(
    ["Field", "Required", "Rule"],
    rows.map(({ path, required, rule }) => [path, required ? "yes" : "", rule]),
  );
}

function table(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const cells = (tag: string, row: readonly string[]) =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
  const body = rows.map((row) => cells("td", row)).join("\n");
  return `<div class="wide"><table><thead>${cells("th", head)}</thead><tbody>\n${body}\n</tbody></table></div>`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d5d9de, #3a4048); --soft: light-dark(#f4f6f8, #1d2126); }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: light-dark(#14181d, #e4e8ec); background: light-dark(#fff, #14171a); }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
td:first-child { font-family: ui-monospace, monospace; font-size: .9em; }
pre { overflow-x: auto; padding: .8rem; background: var(--soft); }
a { color: light-dark(#0b57c4, #8ab4f8); }
`;

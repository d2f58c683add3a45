/**
 * The public tracking page: what a recipient may see of a shipment, in the shipment's language. Of personal data it shows
 * the city alone; the courier's own words stay out, since they may name people.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import { compareFacts, type Fact, orderOf } from "#core/events/rules/fact.ts";
import { WORDS } from "#core/merchants/rules/words.ts";
import { type Html, html } from "#core/platform/http/html.ts";
import { ownFile } from "#core/platform/process/own-files.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import { LANGUAGES, type Language } from "#core/shipments/rules/shipment.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import { statusDetailText, statusText } from "#core/statuses/rules/status-text.ts";

const STYLE = readFileSync(ownFile("panel/server/shipments/tracking-page.css"), "utf8");
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

/** No script, no request to anybody, in no frame; the one style is named by its hash. */
const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  "cache-control": "private, no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-robots-tag": "noindex, nofollow",
} as const;

/** How far along the way a status is, of four steps. */
const STEPS = 4;
const STEP_OF: Readonly<Record<Status, number>> = {
  WAITING_TO_COMPUTE: 0,
  PENDING: 0,
  INFO_RECEIVED: 1,
  PROCESSING: 1,
  DEPARTED: 2,
  IN_TRANSIT: 2,
  DELAY: 2,
  EXCEPTION: 2,
  OUT_FOR_DELIVERY: 3,
  FAILED_ATTEMPT: 3,
  PICKUP_POINT: 4,
  RETURNED: 4,
  DELIVERED: 4,
};
const TROUBLE: readonly Status[] = ["EXCEPTION", "FAILED_ATTEMPT", "DELAY", "RETURNED"];
const ENDED: readonly Status[] = ["DELIVERED", "RETURNED", "PICKUP_POINT"];
/** Events shown, the latest ones. */
const EVENTS_SHOWN = 200;

export function trackingPage(
  { record, state }: StoredShipment,
  facts: readonly Fact[],
  channel: Channel,
  { couriers, statusDetails }: Configuration,
  language: Language,
): Response {
  const words = WORDS[language];
  const { status, detail } = state.pair;
  const headline = statusText(status, language);
  const inDetail = detail === 0 ? null : statusDetailText(statusDetails.get(detail), language);
  const estimate = ENDED.includes(status) ? null : estimateText(record, state, language);
  const rows: [string, string | null | undefined][] = [
    [words.estimatedDelivery, estimate],
    [words.trackingNumber, record.trackingNumber],
    [words.courier, couriers.get(record.courier)?.name ?? record.courier],
    [words.destination, record.consignee?.city],
  ];
  const body = html`<main>
<header><p>${channel.name}</p></header>
<section>
<h1${TROUBLE.includes(status) ? html` class="trouble"` : null}>${headline}</h1>
${inDetail === null ? null : html`<p class="detail">${inDetail}</p>`}
<ol class="steps" aria-hidden="true">${steps(status)}</ol>
<dl>${rows.map(([name, value]) => (value ? html`<dt>${name}</dt><dd>${value}</dd>\n` : null))}</dl>
</section>
<section>
<h2>${words.history}</h2>
${timeline(facts, language, statusDetails, words.noEvents)}
</section>
${languageSwitch(language)}
</main>`;
  return respond(200, language, `${headline} · ${channel.name}`, body);
}

/** Each language by its own name, as a link: the page has no script. */
function languageSwitch(shown: Language): Html {
  const nameOf = (language: Language) =>
    new Intl.DisplayNames(language, { type: "language" }).of(language) ?? language;
  const items = LANGUAGES.map((language) =>
    language === shown
      ? html`<li aria-current="true" lang="${language}">${nameOf(language)}</li>`
      : html`<li><a href="?lang=${language}" hreflang="${language}" lang="${language}">${nameOf(language)}</a></li>`,
  );
  return html`<nav><details><summary lang="${shown}">${nameOf(shown)}</summary><ul>${items}</ul></details></nav>`;
}

/** The same for every address that is none of ours, in the visitor's language where we have it. */
export function noTrackingPage(): Response {
  const body = html`<main><section><h1 class="trouble">404</h1>
<p class="detail">Spedizione non trovata · Shipment not found</p></section></main>`;
  return respond(404, "it", "404", body);
}

/** The first available of the courier's time window, its date and the merchant's plan (document 2, data rule 3). */
function estimateText(
  { planning }: StoredShipment["record"],
  { estimate }: StoredShipment["state"],
  language: Language,
): string | null {
  const { date = null, from = null, to = null } = estimate?.value ?? {};
  const day = date ?? planning.deliveryDate;
  return windowText(from, to, language) ?? (day && dayText(day, language));
}

/** Either end may be open. */
function windowText(from: string | null, to: string | null, language: Language): string | null {
  const clock = new Intl.DateTimeFormat(language, {
    dateStyle: "full",
    timeStyle: "short",
    timeZone: "Europe/Rome",
  });
  if (from !== null && to !== null) {
    const [first = 0, last = 0] = [instantOf(from), instantOf(to)].sort(
      (one, other) => one - other,
    );
    return clock.formatRange(first, last);
  }
  if (from !== null) return `${clock.format(instantOf(from))} –`;
  return to === null ? null : `– ${clock.format(instantOf(to))}`;
}

function dayText(day: string, language: Language): string {
  const noon = Date.parse(`${day.slice(0, 10)}T12:00:00Z`);
  if (Number.isNaN(noon)) return day;
  return new Intl.DateTimeFormat(language, { dateStyle: "full", timeZone: "UTC" }).format(noon);
}

function steps(status: Status): Html[] {
  return Array.from({ length: STEPS }, (_, at) =>
    at < STEP_OF[status] ? html`<li class="done"></li>` : html`<li></li>`,
  );
}

/** Latest first; codes that are not mapped say nothing in the recipient's language. */
function timeline(
  facts: readonly Fact[],
  language: Language,
  statusDetails: Configuration["statusDetails"],
  noEvents: string,
): Html {
  const latestFirst = facts
    .filter(({ mapping }) => mapping !== null)
    .sort((one, other) => compareFacts(orderOf(other), orderOf(one)))
    .slice(0, EVENTS_SHOWN);
  if (latestFirst.length === 0) return html`<p class="detail">${noEvents}</p>`;
  const clock = new Intl.DateTimeFormat(language, {
    dateStyle: "medium",
    timeStyle: "short",
    timeZone: "Europe/Rome",
  });
  const items = latestFirst.map(({ mapping, occurredAtMs, event }) => {
    const detail = mapping && statusDetailText(statusDetails.get(mapping.detail), language);
    const locationName = event.location?.name ?? null;
    const at = new Date(occurredAtMs);
    return html`<li><p><strong>${mapping && statusText(mapping.status, language)}</strong></p>
${detail === null ? null : html`<p>${detail}</p>`}
<p><time datetime="${at.toISOString()}">${clock.format(at)}</time>${locationName === null ? null : ` · ${locationName}`}</p></li>
`;
  });
  return html`<ol class="history">${items}</ol>`;
}

function respond(status: number, language: Language, title: string, body: Html): Response {
  const direction = language === "ar" ? html` dir="rtl"` : null;
  const page = html`<!doctype html>
<html lang="${language}"${direction}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${{ markup: STYLE }}</style>
</head>
<body>
${body}
</body>
</html>
`;
  return new Response(page.markup, { status, headers: HEADERS });
}

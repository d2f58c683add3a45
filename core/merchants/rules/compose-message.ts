/** From a template, or from our own words where there is none, to what a recipient reads. */

import { limit } from "#core/platform/schema/limit.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";
import type { ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import { renderHtml, renderLine, renderText, type Values } from "./render-template.ts";
import { textOfHtml, tidied } from "./text-of-html.ts";
import { WORDS } from "./words.ts";

export interface Composed {
  readonly subject: string;
  readonly html: string;
  readonly text: string;
}

interface Template {
  readonly subject: string;
  readonly body: string;
  /** The language of the message, which may differ from the one requested. */
  readonly language: string;
}

/** RFC 5322 lines of a header; what is longer is cut. */
const SUBJECT_LENGTH = 500;
/** Three parts of a long text message. */
const SMS_LENGTH = 459;

export function composeTemplate({ subject, body, language }: Template, values: Values): Composed {
  const isMarkup = /<[a-z!/]/i.test(body);
  const markup = isMarkup ? body : body.replace(/\r?\n/g, "<br>\n");
  const rendered = renderHtml(markup, values);
  return {
    subject: cut(renderLine(subject, values), SUBJECT_LENGTH),
    html: /<html\b/i.test(body) ? rendered : page(rendered, language),
    text: tidied(renderText(textTemplateOf(markup), values)),
  };
}

/** Templates whose plain text is remembered, of 100 KB each at most. */
export const TEXT_TEMPLATES_KEPT = limit(
  50,
  "templates whose plain text is remembered",
  "the template used longest ago is read again",
);
const textTemplates = new Map<string, string>();

/** Reading HTML takes up to about 50 ms: once a template, not once a message. */
function textTemplateOf(markup: string): string {
  const text = textTemplates.get(markup) ?? textOfHtml(markup);
  textTemplates.delete(markup);
  textTemplates.set(markup, text);
  if (textTemplates.size > TEXT_TEMPLATES_KEPT) {
    const [oldest = ""] = textTemplates.keys();
    textTemplates.delete(oldest);
  }
  return text;
}

/** The status mail of a channel that has no template for it. */
export function composeStatus(
  summary: ShipmentSummary,
  merchant: string,
  language: Language,
): Composed {
  const words = WORDS[language];
  const { statusDescription, statusDetailDescription, trackingNumber, courierName } = summary;
  const lines = [
    `${words.trackingNumber}: ${trackingNumber} (${courierName})`,
    ...(summary.orderReference === null ? [] : [`${words.order}: ${summary.orderReference}`]),
  ];
  const { trackingUrl: url } = summary;
  const link =
    url === null
      ? ""
      : `<p><a href="${Bun.escapeHTML(url)}">${Bun.escapeHTML(words.trackShipment)}</a></p>`;
  const title = `${words.yourShipment} · ${merchant}`;
  const detail = statusDetailDescription === null ? "" : ` – ${statusDetailDescription}`;
  const html =
    `<p>${Bun.escapeHTML(title)}</p>\n` +
    `<h1>${Bun.escapeHTML(statusDescription + detail)}</h1>\n` +
    `<p>${lines.map((line) => Bun.escapeHTML(line)).join("<br>\n")}</p>\n${link}`;
  return {
    subject: renderLine("{{merchant}}: {{status}}", { merchant, status: statusDescription }),
    html: page(html, language),
    text: [
      ...[title, statusDescription + detail, lines.join("\n")],
      ...(url === null ? [] : [`${words.trackShipment} (${url})`]),
    ].join("\n\n"),
  };
}

/** One text message of a status. */
export function composeSms(summary: ShipmentSummary, merchant: string): string {
  const { statusDescription, trackingNumber, trackingUrl: url } = summary;
  const text = `${merchant}: ${statusDescription} (${trackingNumber})`;
  const link = url === null ? "" : ` ${url}`;
  return cut(text, SMS_LENGTH - link.length) + link;
}

/** No half of a surrogate pair is left at the end. */
function cut(text: string, length: number): string {
  return text.slice(0, length).replace(/[\ud800-\udbff]$/, "");
}

function page(body: string, language: string): string {
  const direction = language === "ar" ? ' dir="rtl"' : "";
  return `<!doctype html>\n<html lang="${language}"${direction}><head><meta charset="utf-8"></head><body>\n${body}\n</body></html>\n`;
}

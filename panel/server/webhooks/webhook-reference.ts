/** `GET /webhooks/docs`: the AsyncAPI document of the webhooks for people. It is made of the document, so that they agree. */

import { type Html, html, markdown } from "#core/platform/http/html.ts";
import { linkList, type Row, referencePage, table } from "#core/platform/http/reference-page.ts";
import type { Json } from "#core/platform/schema/published-schema.ts";
import { EXAMPLE_SECRET, SIGNATURE_SCHEME, webhookAsyncapi } from "./webhook-asyncapi.ts";

const LINKS = {
  "Guide, with code that verifies signatures": "/docs/webhooks",
  "Test vector": "/webhooks/vector.json",
  "AsyncAPI description": "/webhooks/asyncapi.json",
  "JSON Schema of the payload": "/webhooks/payload.schema.json",
  "Addresses that we call from": "/ips.txt",
  "Endpoints over HTTP": "/panel/docs#/Webhooks",
};

export function webhookReference(): string {
  const { info, components } = webhookAsyncapi();
  const messages = Object.values(components.messages);
  const [first] = messages;
  return referencePage(
    info.title,
    html`<p>${linkList(LINKS)}</p>
${markdown(info.description.replace(SIGNATURE_SCHEME, ""))}
<h2 id="signature">Signature</h2>
${markdown(SIGNATURE_SCHEME)}
<p>The examples below are signed with the secret <code>${EXAMPLE_SECRET}</code>. Check your code with them, with the clock set to
their <code>t</code>: the body is one line, exactly as it stands there.</p>
<h2 id="events">Events</h2>
${messages.map(eventHtml)}
<h2 id="headers">Headers</h2>
${first ? table(["Header", "Required", "Meaning", "Example"], headerRows(first.headers)) : null}
<h2 id="payload">Payload</h2>
<p>New members may appear at any time: ignore those that you do not know.</p>
${table(["Member", "Required", "Type", "Meaning"], memberRows(components.schemas.payload))}`,
    { isSearchable: true },
  );
}

type Message = ReturnType<typeof webhookAsyncapi>["components"]["messages"]["shipmentUpdated"];

function eventHtml({ name, summary, examples }: Message): Html {
  const shown = examples.map(({ headers, payload }) => {
    const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}`);
    const request = ["POST /your/path HTTP/1.1", ...lines, "", JSON.stringify(payload)].join("\n");
    return html`<pre>${request}</pre>
<details><summary>The same body, in lines</summary><pre>${JSON.stringify(payload, null, 2)}</pre></details>\n`;
  });
  return html`<h3 id="${name}"><code>${name}</code></h3>\n<p>${summary}.</p>\n${shown}`;
}

function headerRows({ properties, required }: Message["headers"]): Row[] {
  return Object.entries(properties).map(([name, { description, examples }]) => ({
    cells: [name, required.includes(name) ? "yes" : "", description, examples.join(", ")],
  }));
}

function memberRows(schema: Json, path = ""): Row[] {
  const members = (schema["properties"] ?? {}) as Readonly<Record<string, Json>>;
  const required = (schema["required"] ?? []) as readonly string[];
  return Object.entries(members).flatMap(([name, member]) => {
    const full = path === "" ? name : `${path}.${name}`;
    const description = String(member["description"] ?? "");
    const cells = [full, required.includes(name) ? "yes" : "", typeText(member), description];
    return [{ cells }, ...memberRows(member, full)];
  });
}

function typeText({ type, enum: values, const: value, pattern }: Json): string {
  if (value !== undefined) return JSON.stringify(value);
  if (Array.isArray(values)) return values.map((one) => one ?? "null").join(", ");
  const names = [type].flat().join(" or ");
  return pattern === undefined ? names : `${names}, ${pattern}`;
}

/**
 * The page of an OpenAPI document: to read, to search, and to try its calls. Swagger UI shows it; everything comes from the port
 * itself, and the page may ask nobody else for anything.
 */
import { readFileSync } from "node:fs";
import { publicRoutes } from "#core/platform/http/access.ts";
import { publicText } from "#core/platform/http/compression.ts";
import { html, htmlPage } from "#core/platform/http/html.ts";
import { linkList, PUBLIC_CACHE } from "#core/platform/http/reference-page.ts";
import { packageFile } from "#core/platform/process/own-files.ts";

export interface Viewer {
  /** Of the page; its files lie below it. */
  readonly path: string;
  readonly title: string;
  /** Address of the document. */
  readonly document: string;
  /** Name and address of other pages. */
  readonly links: Readonly<Record<string, string>>;
  /** Where an API key is exchanged for the access token of calls that are tried, and the name of their security scheme. */
  readonly keys?: { readonly tokenPath: string; readonly scheme: string };
  /** That every answer of the port has. */
  readonly headers?: Readonly<Record<string, string>>;
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  // Swagger UI sets the style attributes of its elements.
  "style-src 'self'; style-src-attr 'unsafe-inline'",
  // Its icons are written into its style sheet.
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join("; ");

export function viewerRoutes(viewer: Viewer) {
  const { path, headers = {} } = viewer;
  const page = publicText(() => pageOf(viewer));
  const common = { "x-content-type-options": "nosniff", ...PUBLIC_CACHE, ...headers };
  const javascript = { ...common, "content-type": "text/javascript; charset=utf-8" };
  const css = { ...common, "content-type": "text/css; charset=utf-8" };
  const html = {
    ...common,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
  };
  return publicRoutes(`viewer ${path}`)
    .get(path, ({ request }) => page(request, html))
    .get(`${path}/swagger-ui.js`, ({ request }) => renderer(request, javascript))
    .get(`${path}/swagger-ui.css`, ({ request }) => rendererStyle(request, css))
    .get(`${path}/reference.js`, ({ request }) => script(request, javascript))
    .get(`${path}/reference.css`, ({ request }) => style(request, css));
}

/** Who opens the port in a browser gets to its reference. */
export function leadTo(location: string, headers: Readonly<Record<string, string>> = {}) {
  return publicRoutes(`lead to ${location}`).get(
    "/",
    () => new Response(null, { status: 303, headers: { location, ...headers } }),
  );
}

const renderer = readOnce("swagger-ui-dist/swagger-ui-bundle.js");
const rendererStyle = readOnce("swagger-ui-dist/swagger-ui.css");
const script = publicText(() => SCRIPT);
const style = publicText(() => STYLE);

/** Files of the renderer are read when somebody first asks for them. */
function readOnce(path: string) {
  let text: string | null = null;
  return publicText(() => {
    text ??= readFileSync(packageFile(path), "utf8");
    return text;
  });
}

function pageOf({ path, title, document, links, keys }: Viewer): string {
  const exchange = keys
    ? html` data-token-path="${keys.tokenPath}" data-scheme="${keys.scheme}"`
    : null;
  return htmlPage(
    title,
    html`<header>
<h1>${title}</h1>
<nav>${linkList({ "OpenAPI description": document, ...links })}</nav>
${keys ? KEY_FORM : null}</header>
<main id="reference" data-document="${document}"${exchange}></main>
<script src="${path}/swagger-ui.js"></script>
<script src="${path}/reference.js"></script>`,
    html`<link rel="stylesheet" href="${path}/swagger-ui.css">
<link rel="stylesheet" href="${path}/reference.css">`,
  );
}

const KEY_FORM = html`<form id="keys">
<label>API key <input name="apiKey" type="password" autocomplete="off" required></label>
<button>Use it to try calls</button>
<output name="outcome"></output>
</form>
`;

/** Swagger UI has no dark colours. */
const STYLE = `:root { color-scheme: light; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; align-items: baseline; padding: .6rem 20px; border-bottom: 1px solid #d5d9de; }
header h1 { font-size: 1.1rem; margin: 0; }
/* Of Swagger UI's own look. */
.swagger-ui .samples { padding: 10px 20px; }
.swagger-ui .samples h4 { margin: 0 0 5px; font-size: 14px; }
.swagger-ui .samples summary { cursor: pointer; font-size: 14px; }
.swagger-ui .samples pre { overflow-x: auto; margin: 5px 0 10px; padding: 10px; font: 13px/1.45 ui-monospace, monospace; color: #fff; background: #333; }
.swagger-ui, .swagger-ui .info .title, .swagger-ui .opblock-tag { font-family: system-ui, sans-serif; }
`;

/** Swagger UI's own filter knows only tags. The token stays in the memory of the page. */
const SCRIPT = `"use strict";
const element = document.getElementById("reference");
const { document: url, tokenPath, scheme } = element.dataset;

function searchCalls(tags, phrase) {
  const words = phrase.toLowerCase().split(/\\s+/);
  const matches = (call, tag) => {
    const { summary = "", description = "", operationId = "" } = call.get("operation").toJS();
    const text = [tag, call.get("method"), call.get("path"), operationId, summary, description].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return tags
    .map((group, tag) => group.update("operations", (calls) => calls.filter((call) => matches(call, tag))))
    .filter((group) => group.get("operations").size > 0);
}

// Samples stand before the answers of a call.
const withSamples = (Responses, { React: { createElement: make, Fragment } }) => (props) => {
  const { path, method, specSelectors } = props;
  const samples = specSelectors.specJson().getIn(["paths", path, method, "x-codeSamples"])?.toJS() ?? [];
  const shown = samples.map(({ label, source }, at) =>
    make("details", { key: label, open: at === 0 }, make("summary", null, label), make("pre", { tabIndex: 0 }, source)),
  );
  return make(Fragment, null, make("section", { className: "samples" }, make("h4", null, "Examples"), shown), make(Responses, props));
};

const ui = SwaggerUIBundle({
  url,
  domNode: element,
  deepLinking: true,
  filter: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  plugins: [() => ({ fn: { opsFilter: searchCalls }, wrapComponents: { responses: withSamples } })],
  onComplete: () => {
    element.querySelector(".operation-filter-input").placeholder = "Search calls";
  },
});

const form = document.getElementById("keys");
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { apiKey, outcome } = form.elements;
  const answer = await fetch(tokenPath, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ apiKey: apiKey.value }),
  });
  const body = await answer.json();
  apiKey.value = "";
  if (answer.ok) ui.preauthorizeApiKey(scheme, body.token);
  outcome.value = answer.ok ? "Calls are sent with this key." : body.message ?? body.detail;
});
`;

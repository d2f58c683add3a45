/** The plain text of a mail that a merchant wrote in HTML. */
import { describe, expect, test } from "bun:test";
import { composeTemplate, TEXT_TEMPLATES_KEPT } from "#core/merchants/rules/compose-message.ts";
import {
  DEPTH_READ,
  ENTITIES_READ,
  TAGS_READ,
  textOfHtml,
} from "#core/merchants/rules/text-of-html.ts";

/** A template as Italian shops write them. */
const TEMPLATE = `<!doctype html><html><head><title>Spedizione</title><style>p > b { color: red }</style></head><body>
<!-- intestazione: se a > b -->
<!--[if mso]><table><tr><td>solo Outlook</td></tr></table><![endif]-->
<table width="100%"><tr><td><img src="https://shop.example/logo.png" alt="Acme"></td></tr>
<tr><td>
  <h1>Il tuo pacco &egrave; partito</h1>
  <p>Gentile {{consignee.name}},<br>la consegna &egrave; prevista per luned&igrave;: <b>&euro;&nbsp;{{monetary.codAmount}}</b> alla consegna.</p>
  <table><tr><th>Numero</th><td>{{trackingNumber}}</td></tr><tr><th>Corriere</th><td>{{courierName}}</td></tr></table>
  <ul><li>Perch&eacute; no?</li><li>L&rsquo;ultimo</li></ul>
  <a href="{{trackingUrl}}" style="color:#fff">Segui la spedizione</a> &middot;
  <a href="https://shop.example/?a=1&amp;b=2">Assistenza</a> &middot; <a href="mailto:info@shop.example">info@shop.example</a>
</td></tr></table></body></html>`;

const VALUES = {
  "consignee.name": "Anna <Rossi> & figli",
  "monetary.codAmount": "12,50",
  trackingNumber: "TN0001",
  courierName: "BRT",
};

const textOf = (body: string, values: Readonly<Record<string, string>>) =>
  composeTemplate({ subject: "s", body, language: "it" }, values).text;

describe("the plain text beside an HTML body", () => {
  test("of an Italian template has its letters, its table in rows of cells, and none of its comments", () => {
    expect(textOf(TEMPLATE, { ...VALUES, trackingUrl: "https://t.example/x" })).toBe(
      [
        "Acme",
        "Il tuo pacco è partito",
        "Gentile Anna <Rossi> & figli,\nla consegna è prevista per lunedì: €\u00a012,50 alla consegna.",
        "Numero TN0001\nCorriere BRT",
        " * Perché no?\n * L’ultimo",
        "Segui la spedizione (https://t.example/x) · Assistenza (https://shop.example/?a=1&b=2) · info@shop.example",
      ].join("\n\n"),
    );
  });

  test("shows no empty brackets where there is no address, and a value as it is", () => {
    const text = textOf(TEMPLATE, { ...VALUES, trackingUrl: "" });
    expect(text).toContain("Segui la spedizione · Assistenza");
    expect(textOf("<p>{{a}}|{{b}}</p>", { a: "&egrave; {{b}} <b>x</b>" })).toBe(
      "&egrave; {{b}} <b>x</b>|",
    );
  });

  test.each([
    ["<p>Ciao <b>Anna</b></p><p>oggi</p>", "Ciao Anna\n\noggi"],
    [
      'See <a class="x" href="https://t.example/1">your parcel</a>.',
      "See your parcel (https://t.example/1).",
    ],
    [
      '<a href="javascript:x()">no</a> <a href="https://a.example">https://a.example</a>',
      "no https://a.example",
    ],
    ["<head><title>T</title></head><STYLE>p{}</Style >a<script>if (1 < 2) x()</script>b", "ab"],
    ["<style>never closed", ""],
    ["1 &lt; 2 &amp;lt; 3 &#232;&#xe8;!<br/>5 < 6", "1 < 2 &lt; 3 èè!\n5 < 6"],
    ["a   \n\n\n\n<div>b</div>\t\nc", "a\nb\nc"],
    ["a<br><br><br><br>b", "a\n\nb"],
    ["<header>shown</header>", "shown"],
    ['<a href="https://a.example">x</a></a>z', "x (https://a.example)z"],
    ['<b href="https://b.example">y</b></a>', "y"],
    ['<a href="https://a.example/x.png"><img src="y" alt=""></a>', "https://a.example/x.png"],
  ])("%p is %p", (html, text) => {
    expect(textOfHtml(html)).toBe(text);
  });

  test("reads so many tags and entities, and says that it has left out the rest", () => {
    expect(textOfHtml("a</i>".repeat(TAGS_READ))).toBe("a".repeat(TAGS_READ));
    expect(textOfHtml("a</i>".repeat(TAGS_READ + 1))).toBe(`${"a".repeat(TAGS_READ + 1)}…`);
    expect(textOfHtml("&egrave;".repeat(ENTITIES_READ))).toBe("è".repeat(ENTITIES_READ));
    expect(textOfHtml("&egrave;".repeat(ENTITIES_READ + 1))).toBe(`${"è".repeat(ENTITIES_READ)}…`);
  });

  test("reads so many elements within each other", () => {
    const nested = (depth: number) => textOfHtml(`${"<i>".repeat(depth)}x`);
    expect([nested(DEPTH_READ), nested(DEPTH_READ + 1)]).toEqual(["x", "…"]);
  });

  test("takes time in proportion to the body, whatever is never closed in it", () => {
    for (const part of [
      ...["<style>", '<a href="https://x">', "<br", "<", " ", "<a ", '<a href="https:', "</a"],
      ...["<div>", "<p>", "<table><tr><td>", "<ul><li>", "<svg>", "<!--", "&egrave;", "&", "<hr>"],
    ]) {
      const timeOf = (length: number) => {
        const html = part.repeat(Math.ceil(length / part.length));
        const from = performance.now();
        textOfHtml(html);
        return performance.now() - from;
      };
      // Seconds where it was the square. The faster of some: another process may hold any of them up.
      const isFast = [1, 2, 3].some(() => timeOf(1_000_000) < 1_000);
      expect([part, isFast]).toEqual([part, true]);
    }
  });

  test("a template is read once for all its messages, and as many are remembered as are said", () => {
    const body = (at: number) => `<p>${"<b>x</b>".repeat(500)} ${at} {{a}}</p>`;
    for (let at = 0; at <= TEXT_TEMPLATES_KEPT + 1; at += 1) {
      for (const a of ["1", "2"]) expect(textOf(body(at), { a })).toEndWith(`x ${at} ${a}`);
    }
    expect(textOf(body(0), { a: "3" })).toEndWith("x 0 3");
  });
});

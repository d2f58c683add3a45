/** The plain text of a mail that a merchant wrote in HTML. */
import { describe, expect, test } from "bun:test";
import { textOfHtml } from "#core/domain/messages/render-template.ts";

describe("the plain text beside an HTML body", () => {
  test.each([
    ["<p>Ciao <b>Anna</b></p><p>oggi</p>", "Ciao Anna\noggi"],
    [
      'See <a class="x" href="https://t.example/1">your parcel</a>.',
      "See your parcel (https://t.example/1).",
    ],
    ['<a href="javascript:x()">no</a> <a href="https://a.example">never closed', "no never closed"],
    ["<head><title>T</title></head><STYLE>p{}</Style >a<script>if (1 < 2) x()</script>b", "ab"],
    ["<style>never closed", "never closed"],
    ["1 &lt; 2 &amp;lt; 3&nbsp;!<br/>5 < 6", "1 < 2 &lt; 3 !\n5 < 6"],
    ["a   \n\n\n\n<div>b</div>\t\nc", "a\n\nb\n\nc"],
    ["<header>shown</header>", "shown"],
  ])("%p is %p", (html, text) => {
    expect(textOfHtml(html)).toBe(text);
  });

  test("takes time in proportion to the body, whatever is never closed in it", () => {
    for (const part of [
      "<style>",
      '<a href="https://x">',
      "<br",
      "<",
      " ",
      "<a ",
      '<a href="https:',
      "</a",
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
});

/** References as people type them: which characters count, and in what form they are compared. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  distinctNumbers,
  isReference,
  matchingNumber,
  plainReference,
} from "#core/events/rules/reference.ts";

const IGNORED = /^[\p{White_Space}\p{Cf}]$/u;
const CONTROL = /^\p{Cc}$/u;
const CODE_POINTS = Array.from({ length: 0x110000 }, (_, n) => n).filter(
  (n) => n < 0xd800 || n > 0xdfff,
);
const show = (codePoint: number) => `U+${codePoint.toString(16)}`;

describe("a reference", () => {
  test("is refused for every control character that is no white space, wherever it stands", () => {
    for (const n of CODE_POINTS.slice(0, 0x200)) {
      const character = String.fromCodePoint(n);
      const isRefused = CONTROL.test(character) && !IGNORED.test(character);
      for (const text of [`${character}AB`, `A${character}B`, `AB${character}`]) {
        expect([show(n), isReference(text)]).toEqual([show(n), !isRefused]);
      }
    }
  });

  test("is refused where nothing visible is left: exactly white space and format characters do not count", () => {
    const wrong = CODE_POINTS.filter((n) => {
      const character = String.fromCodePoint(n);
      const isVisible = !IGNORED.test(character) && !CONTROL.test(character);
      return (
        isReference(character) !== isVisible || isReference(`\u00a0${character} `) !== isVisible
      );
    });
    expect(wrong.map(show)).toEqual([]);
    expect(isReference("")).toBe(false);
  });

  // What is tried in more than one way would take hours.
  test("of a million blanks is judged at once, whatever stands behind them", () => {
    const blanks = " \u200b\u2060".repeat(333_333);
    expect(isReference(`${blanks}\u0001`)).toBe(false);
    expect(isReference(`A${blanks}\u0001`)).toBe(false);
    expect(isReference(blanks)).toBe(false);
    expect(plainReference(`A${blanks}B${blanks}`)).toBe(`A${blanks}B`);
  });
});

describe("a tracking number", () => {
  test.each([
    "rr123456785it",
    "RR 123 456 785 it",
    "RR123456785IT   ",
    "\u00a0RR123456785IT",
    "\ufeffRR123456785IT\r\n",
    "RR\u00ad123\u200b456\u2060785\u200eIT",
    "\u202aRR123456785IT\u202c",
    "RR123456785IT\u0085",
    "\t\u{e0001}RR123456785\u3000IT",
  ])("typed as %j is RR123456785IT", (given) => {
    expect(matchingNumber(given)).toBe("RR123456785IT");
    expect(isReference(given)).toBe(true);
  });

  test("differs by everything else: accents, case beyond ASCII, hyphens, full width", () => {
    const others = ["RR-1", "RR1", "RRé1", "RRÉ1", "ＲＲ1", "RRı1", "RRß1"];
    expect(new Set(others.map(matchingNumber)).size).toBe(others.length);
  });

  test("has one form: that of a form is itself, and no blank or small letter of ASCII is in it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const form = matchingNumber(text);
        expect(matchingNumber(form)).toBe(form);
        expect(form).not.toMatch(/[\p{White_Space}\p{Cf}a-z]/u);
        expect(matchingNumber(` ${text}\u200b`)).toBe(form);
      }),
    );
  });

  test("stays as it was first given where several mean the same", () => {
    expect(distinctNumbers(["rr1", "X", "RR 1", "x "])).toEqual(["rr1", "X"]);
  });
});

describe("another reference", () => {
  test("keeps its case and its inner spaces", () => {
    expect(plainReference("Order 12 b")).toBe("Order 12 b");
    expect(plainReference("\r\n\u00a0Order 12\u200bb \ufeff")).toBe("Order 12\u200bb");
    expect(plainReference("order-1")).not.toBe(plainReference("ORDER-1"));
    expect(plainReference("\u{e0001}è\u{e0020}")).toBe("è");
  });
});

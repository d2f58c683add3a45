/** Rules of the analytics: CAP prefixes, order of arrival, silence. */
import { describe, expect, test } from "bun:test";
import { CAP_PREFIXES, capPrefixOf } from "#core/benchmarks/rules/cap-prefix.ts";
import { isOutOfOrder } from "#core/benchmarks/rules/event-row.ts";
import { areaOfCap, isItalianCap } from "#core/benchmarks/rules/lane.ts";
import { isSilent } from "#core/events/rules/silence.ts";

describe("CAP prefixes (document 1, Couriers: origin area)", () => {
  test("all 93 in use are known, each in one area, islands included", () => {
    expect(CAP_PREFIXES.length).toBe(93);
    expect(new Set(CAP_PREFIXES.map(({ prefix }) => prefix)).size).toBe(93);
    const unused = Array.from({ length: 100 }, (_, at) => String(at).padStart(2, "0")).filter(
      (prefix) => !CAP_PREFIXES.some((one) => one.prefix === prefix),
    );
    expect(unused).toEqual(["49", "68", "69", "77", "78", "79", "99"]);
    expect(unused.some((prefix) => isItalianCap(`${prefix}100`))).toBe(false);
  });

  test("Sardinia and Sicily are SUD, Abruzzo too; Lazio and Umbria are CENTRO", () => {
    const areas = ["07026", "08100", "09124", "90133", "98122", "67100", "00184", "05100", "06121"];
    expect(areas.map(areaOfCap)).toEqual([...Array(6).fill("SUD"), ...Array(3).fill("CENTRO")]);
    expect(capPrefixOf("09124")?.provinces).toContain("Cagliari");
  });
});

describe("out of order: a fact received before it happened after it", () => {
  const fact = { occurredAtMs: 100, receivedAtMs: 1010, messageIndex: 5 };
  test.each([
    [
      "received earlier, happened later",
      { occurredAtMs: 101, receivedAtMs: 1009, messageIndex: 9 },
      true,
    ],
    [
      "same message, further ahead",
      { occurredAtMs: 101, receivedAtMs: 1010, messageIndex: 4 },
      true,
    ],
    ["same message, behind", { occurredAtMs: 101, receivedAtMs: 1010, messageIndex: 6 }, false],
    ["received later", { occurredAtMs: 101, receivedAtMs: 1011, messageIndex: 0 }, false],
    [
      "happened at the same time",
      { occurredAtMs: 100, receivedAtMs: 1009, messageIndex: 0 },
      false,
    ],
    ["dated ahead", { occurredAtMs: 2_000, receivedAtMs: 99, messageIndex: 0 }, false],
    ["itself", fact, false],
  ])("%s", (_, other, expected) => {
    expect(isOutOfOrder(fact, [other])).toBe(expected);
  });
});

test("silence needs 20 expected events, and under a tenth of them", () => {
  expect([isSilent(20, 1), isSilent(20, 2), isSilent(19, 0), isSilent(0, 0)]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

import { describe, expect, test } from "bun:test";
import { areaOfCap, isItalianCap, leadDays, transitDays } from "#core/benchmarks/rules/lane.ts";

describe("lanes (document 1, Couriers)", () => {
  test("areas by CAP prefix, islands included", () => {
    const areas = { "20121": "NORD", "40121": "NORD", "00118": "CENTRO", "50121": "CENTRO" };
    const south = {
      "60121": "CENTRO",
      "65121": "SUD",
      "80121": "SUD",
      "90121": "SUD",
      "09121": "SUD",
    };
    for (const [cap, area] of Object.entries({ ...areas, ...south })) {
      expect(areaOfCap(cap)).toBe(area as never);
    }
    expect(["2012", "201211", "ABCDE", "00000"].map(isItalianCap)).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });

  test("lead and transit are calendar days of Rome", () => {
    const delivered = Date.parse("2026-11-12T23:30:00Z");
    expect(leadDays("2026-11-10", delivered)).toBe(3);
    expect(transitDays(Date.parse("2026-11-10T22:30:00Z"), delivered)).toBe(3);
    expect(transitDays(null, delivered)).toBeNull();
    expect(transitDays(delivered + 1, delivered)).toBeNull();
  });
});

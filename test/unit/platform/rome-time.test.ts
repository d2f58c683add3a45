import { describe, expect, test } from "bun:test";
import {
  instantOf,
  isOffsetDateTime,
  monthsBefore,
  parseRomeDateTime,
  romeDateTime,
  romeIso,
} from "#core/platform/time/rome-time.ts";
import { planningOf } from "#core/shipments/rules/shipment.ts";

describe("Europe/Rome time (document 1, What the service does)", () => {
  test("is written without offset on both sides of both clock changes", () => {
    const pairs = [
      ["2026-03-29T00:59:59Z", "2026-03-29 01:59:59"],
      ["2026-03-29T01:00:00Z", "2026-03-29 03:00:00"],
      ["2026-10-25T00:59:59Z", "2026-10-25 02:59:59"],
      ["2026-10-25T01:00:00Z", "2026-10-25 02:00:00"],
    ] as const;
    for (const [utc, rome] of pairs) expect(romeDateTime(Date.parse(utc))).toBe(rome);
  });

  test("a local time that exists twice is read as the earlier instant", () => {
    expect(parseRomeDateTime("2026-10-25 02:30:00")).toBe(Date.parse("2026-10-25T00:30:00Z"));
  });

  test("a local time the clock jumps over is read as the last second before the jump, so that a catch-up never skips", () => {
    const before = Date.parse("2027-03-28T00:59:59Z");
    for (const text of ["2027-03-28 02:00:00", "2027-03-28 02:30:00", "2027-03-28 02:59:59"]) {
      expect(parseRomeDateTime(text)).toBe(before);
    }
    expect(parseRomeDateTime("2027-03-28 01:59:59")).toBe(before);
    expect(parseRomeDateTime("2027-03-28 03:00:00")).toBe(before + 1_000);
  });

  test("what is written is read back, every half hour of two years", () => {
    for (
      let ms = Date.parse("2026-01-01T00:00:00Z");
      ms < Date.parse("2028-01-01");
      ms += 1_800_000
    ) {
      const read = parseRomeDateTime(romeDateTime(ms));
      expect(read === ms || read === ms - 3_600_000).toBe(true);
    }
  });

  test("a text of any year is read back", () => {
    for (const text of ["0001-01-01 00:00:00", "1850-06-01 12:00:00", "9999-12-31 23:59:59"]) {
      expect(romeDateTime(parseRomeDateTime(text) ?? 0)).toBe(text);
    }
  });

  test("text that is no real date and time is null", () => {
    for (const text of ["2026-02-30 10:00:00", "2026-11-20T10:00:00", "2026-11-20 25:00:00", ""]) {
      expect(parseRomeDateTime(text)).toBeNull();
    }
  });

  test("with offset it is ISO 8601", () => {
    expect(romeIso(Date.parse("2026-07-01T10:00:00Z"))).toBe("2026-07-01T12:00:00.000+02:00");
    expect(romeIso(Date.parse("2026-12-01T10:00:00Z"))).toBe("2026-12-01T11:00:00.000+01:00");
  });

  test("planning members come back as the day it is in Rome (document 1, Shipments)", () => {
    expect(
      planningOf({ deliveryDate: "2026-11-20", latestShipDate: "2026-11-20T23:30:00Z" }),
    ).toEqual({
      deliveryDate: "2026-11-20",
      latestShipDate: "2026-11-21",
      latestDeliveryDate: null,
    });
  });
});

describe("occurredAt (document 2, Event)", () => {
  test("needs an explicit offset and a real instant", () => {
    const good = [
      "2026-11-20T10:00:00+01:00",
      "2026-11-20T10:00:00Z",
      "2026-11-20T10:00:00.123-0500",
      "2026-11-20T10:00:00+01",
      "2026-11-20T10:00-05",
    ];
    const bad = [
      "2026-11-20T10:00:00+1",
      "2026-11-20T10:00:00+24",
      "2026-11-20T10:00:00+01:",
      "2026-11-20T10:00:00",
      "2026-11-20",
      "2026-11-31T10:00:00Z",
      "2026-11-20T24:00:00Z",
    ];
    expect(good.filter((text) => !isOffsetDateTime(text))).toEqual([]);
    expect(bad.filter(isOffsetDateTime)).toEqual([]);
    expect(instantOf("2026-11-20T10:00:00.123-0500")).toBe(Date.parse("2026-11-20T15:00:00.123Z"));
  });

  test("is the same instant in each form of ISO 8601; a leap second is the second before it", () => {
    const forms = [
      ...["2026-12-31T23:59:59+01:00", "2026-12-31T23:59:60+01:00", "2026-12-31T23:59:60+0100"],
      ...["2026-12-31T22:59:60Z", "2026-12-31t22:59:59z", "2026-12-31T17:59:60-05:00"],
      ...["2026-12-31T23:59:59+01", "2026-12-31T17:59:60,000-05", "2026-12-31t23:59:59+0100"],
    ];
    expect(forms.filter((form) => !isOffsetDateTime(form))).toEqual([]);
    expect([...new Set(forms.map(instantOf))]).toEqual([Date.parse("2026-12-31T22:59:59Z")]);
    for (const fraction of [".5", ",5", ",5000", ",500000000"]) {
      expect(instantOf(`2026-12-31T22:59:59${fraction}Z`)).toBe(
        Date.parse("2026-12-31T22:59:59.500Z"),
      );
    }
  });
});

test("a day some months before is the same day, or the last one of a shorter month", () => {
  const cases = [
    ["2026-11-23", 2, "2026-09-23"],
    ["2026-03-31", 1, "2026-02-28"],
    ["2028-03-31", 1, "2028-02-29"],
    ["2026-01-31", 2, "2025-11-30"],
    ["2026-06-30", 24, "2024-06-30"],
  ] as const;
  for (const [day, months, before] of cases) expect(monthsBefore(day, months)).toBe(before);
});

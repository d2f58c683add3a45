/** The small pure rules, each with the section it comes from. */
import { describe, expect, test } from "bun:test";
import {
  areaOfCap,
  isItalianCap,
  leadDays,
  transitDays,
  weightBand,
} from "#core/benchmarks/rules/lane.ts";
import {
  instantOf,
  isOffsetDateTime,
  monthsBefore,
  parseRomeDateTime,
  romeDateTime,
  romeIso,
} from "#core/platform/time/rome-time.ts";
import { planningOf } from "#core/shipments/rules/shipment.ts";
import { parseRetryAfter, retryWaitMs } from "#core/webhooks/rules/retry-schedule.ts";
import { sign, verifySignature, verifySignatureAside } from "#core/webhooks/rules/signature.ts";
import { decide } from "#core/webhooks/rules/trigger.ts";
import { faultOfWebhookUrl, WEBHOOK_URL_LENGTH } from "#core/webhooks/rules/webhook-url.ts";

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

describe("signature (documents 2 and 3)", () => {
  const body = new TextEncoder().encode('{"a":1}');
  const now = 1_800_000_000_000;

  test("is t and one v1 a secret, newest first, and verifies with either", () => {
    const header = sign(["new", "old"], body, now);
    expect(header).toMatch(/^t=1800000000,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
    for (const secret of ["new", "old"]) {
      expect(verifySignature(header, [secret], body, now)).toBe("valid");
    }
    expect(verifySignature(header, ["other"], body, now)).toBe("mismatch");
  });

  test("is judged alike by the event loop and by the thread pool", async () => {
    const large = new Uint8Array(300_000).fill(97);
    const header = sign(["new", "old"], large, now);
    for (const [text, secrets, atMs] of [
      [header, ["old"], now],
      [header, ["other", "new"], now],
      [header, ["other"], now],
      [header, [], now],
      [header, ["new"], now + 301_000],
      ["t=1", ["new"], now],
    ] as const) {
      const verdict = verifySignature(text, secrets, large, atMs);
      expect(await verifySignatureAside(text, secrets, large, atMs)).toBe(verdict);
    }
    expect(await verifySignatureAside(header, ["new"], large.fill(98, -1), now)).toBe("mismatch");
  });

  test("is refused more than 5 minutes from the clock, both ways, and when malformed", () => {
    const header = sign(["s"], body, now);
    for (const [offset, verdict] of [
      [300_000, "valid"],
      [-300_000, "valid"],
      [301_000, "expired"],
      [-301_000, "expired"],
    ] as const) {
      expect(verifySignature(header, ["s"], body, now + offset)).toBe(verdict);
    }
    for (const text of ["", "t=1", "v1=00", `t=x,v1=${"0".repeat(64)}`]) {
      expect(verifySignature(text, ["s"], body, now)).toBe("malformed");
    }
  });
});

describe("retry schedule (document 3, Limits)", () => {
  test("waits are the table's with plus or minus 20 percent, and none follows attempt 8", () => {
    const minutes = [1, 5, 15, 60, 180, 360, 720];
    minutes.forEach((minute, at) => {
      expect(retryWaitMs(at + 1, 0, null)).toBe(minute * 48_000);
      expect(retryWaitMs(at + 1, 0.5, null)).toBe(minute * 60_000);
      expect(retryWaitMs(at + 1, 0.9999999999, null)).toBe(minute * 72_000);
    });
    expect(retryWaitMs(8, 0.5, null)).toBeNull();
  });

  test("Retry-After only lengthens, up to 12 hours, and adds no attempt", () => {
    expect(retryWaitMs(1, 0.5, 10_000)).toBe(60_000);
    expect(retryWaitMs(1, 0.5, 90_000)).toBe(90_000);
    expect(retryWaitMs(1, 0.5, 99 * 3_600_000)).toBe(12 * 3_600_000);
    expect(retryWaitMs(8, 0.5, 90_000)).toBeNull();
  });

  test("Retry-After is read as seconds and as HTTP date", () => {
    const now = Date.parse("2026-11-20T10:00:00Z");
    expect(parseRetryAfter("120", now)).toBe(120_000);
    for (const digits of ["9".repeat(10), "9".repeat(400)]) {
      expect(retryWaitMs(1, 0.5, parseRetryAfter(digits, now))).toBe(12 * 3_600_000);
    }
    expect(parseRetryAfter("Fri, 20 Nov 2026 10:05:00 GMT", now)).toBe(300_000);
    for (const text of [undefined, "", "soon", "-5", "Fri, 20 Nov 2026 09:00:00 GMT"]) {
      expect(parseRetryAfter(text, now)).toBeNull();
    }
  });
});

describe("triggers (document 3, Trigger semantics)", () => {
  const base = { statuses: [], active: true } as const;
  const change = { status: "IN_TRANSIT", changed: false, firstOccurrence: false } as const;

  test("status_change fires when the pair changes, first_occurrence on a new pair, every_event always", () => {
    const table = [
      [false, false, "trigger_not_met", "trigger_not_met", "send"],
      [true, false, "send", "trigger_not_met", "send"],
      [true, true, "send", "send", "send"],
      [false, true, "trigger_not_met", "trigger_not_met", "send"],
    ] as const;
    for (const [changed, firstOccurrence, ...verdicts] of table) {
      const triggers = ["status_change", "first_occurrence", "every_event"] as const;
      triggers.forEach((trigger, at) => {
        const input = { ...change, changed, firstOccurrence };
        expect(decide({ ...base, trigger }, input)).toBe(verdicts[at] ?? "send");
      });
    }
  });

  test("the filter comes after the trigger; disabled and unmapped send nothing", () => {
    const subscription = { ...base, trigger: "every_event", statuses: ["DELIVERED"] } as const;
    expect(decide(subscription, change)).toBe("filtered");
    expect(decide(subscription, { ...change, status: "DELIVERED" })).toBe("send");
    expect(decide(subscription, { ...change, status: null })).toBe("unmapped");
    expect(decide({ ...subscription, active: false }, change)).toBe("disabled");
  });
});

describe("endpoint url (document 3, Endpoint configuration)", () => {
  test("is https, without credentials, of at most 2048 characters", () => {
    expect(WEBHOOK_URL_LENGTH).toBe(2_048);
    const long = (length: number) => `https://a.example/${"x".repeat(length - 18)}`;
    expect(faultOfWebhookUrl("https://merchant.example/hook")).toBeNull();
    expect(faultOfWebhookUrl(long(WEBHOOK_URL_LENGTH))).toBeNull();
    for (const url of [
      "http://merchant.example/hook",
      "https://user:secret@merchant.example/",
      "https://user@merchant.example/",
      "merchant.example",
      "https://merchant.example/a b",
      "https://merchant.example/\u0000",
      "https:\\\\merchant.example/",
      "https:/merchant.example/",
      "https:///merchant.example/",
      long(WEBHOOK_URL_LENGTH + 1),
    ]) {
      expect(faultOfWebhookUrl(url)).toBeString();
    }
  });
});

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

  test("a weight on a bound belongs to the lower band", () => {
    expect([0.1, 1, 1.01, 5, 30, 50, 50.1].map(weightBand)).toEqual([
      "0-1",
      "0-1",
      "1-3",
      "3-5",
      "20-30",
      "30-50",
      "50+",
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

import { describe, expect, test } from "bun:test";
import { parseRetryAfter, retryWaitMs } from "#core/webhooks/rules/retry-schedule.ts";

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

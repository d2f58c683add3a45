import { describe, expect, test } from "bun:test";
import {
  CONCURRENCY_LIFE_MS,
  concurrencyChange,
  DEFAULT_MAX_CONCURRENCY,
  loadSignOf,
  PAUSE_LIMIT_MS,
  pauseMs,
  rateBucket,
  readConcurrency,
  START_CONCURRENCY,
} from "#core/webhooks/rules/concurrency.ts";
import { afterAnswer, newLatencyTrend } from "#core/webhooks/rules/latency-trend.ts";

describe("what an attempt tells about the load", () => {
  test.each([
    ["a success", 200, null, "good"],
    ["429", 429, "status 429", "overloaded"],
    ["503", 503, "status 503", "overloaded"],
    ["a timeout", null, "timeout", "overloaded"],
    ["500", 500, "status 500", null],
    ["a refused connection", null, "connection: ECONNREFUSED", null],
    ["400", 400, "status 400", null],
  ])("%s", (_, httpStatus, error, sign) => {
    expect(loadSignOf({ httpStatus, error }, false)).toBe(sign as ReturnType<typeof loadSignOf>);
  });

  test("an answer that takes longer than usual is a sign of its own, and an overload is the stronger one", () => {
    expect(loadSignOf({ httpStatus: 200, error: null }, true)).toBe("slower");
    expect(loadSignOf({ httpStatus: 429, error: "status 429" }, true)).toBe("overloaded");
  });
});

describe("what attempts do to the concurrency together", () => {
  test("successes let it grow", () => {
    const signs = [{ sign: "good", atMs: 1 } as const, { sign: null, atMs: 2 }];
    expect(concurrencyChange(signs)).toEqual({ good: 1, factor: null, fallAtMs: null });
  });

  test("one overload outweighs all successes, and counts from its latest request", () => {
    const overloads = [5, 9, 7].map((atMs) => ({ sign: "overloaded" as const, atMs }));
    const signs = [...overloads, { sign: "good" as const, atMs: 20 }];
    expect(concurrencyChange(signs)).toEqual({ good: 0, factor: 0.5, fallAtMs: 9 });
  });

  test("answers that take longer let it fall by less", () => {
    expect(concurrencyChange([{ sign: "slower", atMs: 3 }]).factor).toBe(0.8);
  });
});

describe("the stored concurrency", () => {
  test("is forgotten after ten minutes without use", () => {
    const stored = "40.5 256.000 0 1000";
    expect(readConcurrency(stored, DEFAULT_MAX_CONCURRENCY, 1_000 + CONCURRENCY_LIFE_MS)).toBe(40);
    const later = readConcurrency(stored, DEFAULT_MAX_CONCURRENCY, 1_001 + CONCURRENCY_LIFE_MS);
    expect(later).toBe(START_CONCURRENCY);
  });

  test("is never more than the endpoint's limit", () => {
    expect(readConcurrency("40.5 256.000 0 1000", 12, 1_000)).toBe(12);
    expect(readConcurrency(null, 2, 1_000)).toBe(2);
  });

  test("is never less than an endpoint begins with, where its limit was less until now", () => {
    expect(readConcurrency("1.000 1.000 0 1000", 12, 1_000)).toBe(START_CONCURRENCY);
  });
});

describe("the rate", () => {
  test.each([1, 7, 20, 39, 40, 100, 10_000])(
    "a second at %i sees no more, the burst included",
    (most) => {
      const { burst, perSecond } = rateBucket(most);
      // The burst, and what gathers within less than a second.
      expect(burst + Math.ceil(perSecond) - 1).toBe(most);
    },
  );

  test("less than one a second is kept too", () => {
    expect(rateBucket(0.5)).toEqual({ burst: 1, perSecond: 0.5 });
  });
});

describe("Retry-After", () => {
  test("pauses the endpoint with 429 alone, for an hour at most", () => {
    expect(pauseMs(429, PAUSE_LIMIT_MS)).toBe(PAUSE_LIMIT_MS);
    expect(pauseMs(429, PAUSE_LIMIT_MS + 1)).toBe(PAUSE_LIMIT_MS);
    expect(pauseMs(429, null)).toBe(0);
    expect(pauseMs(503, 1_000)).toBe(0);
  });
});

describe("answers that take longer", () => {
  const SECOND_MS = 1_000;

  /** Seconds of sixteen answers each. @returns in which of them it was said that they take longer */
  function slowerIn(secondsMs: readonly number[]): number[] {
    let trend = newLatencyTrend(0);
    return secondsMs.flatMap((tookMs, second) => {
      let isSlower = false;
      for (let n = 1; n <= 16; n += 1) {
        const after = afterAnswer(trend, tookMs, second * SECOND_MS + (n * SECOND_MS) / 16);
        trend = after.trend;
        isSlower ||= after.isSlower;
      }
      return isSlower ? [second] : [];
    });
  }

  test("twice the usual time is not longer, more than that is", () => {
    expect(slowerIn([200, 200, 400, 401])).toEqual([3]);
  });

  test("quick answers may vary by a tenth of a second", () => {
    expect(slowerIn([5, 5, 105, 106])).toEqual([3]);
  });

  test("a receiver that has become slower for good is usual after two minutes", () => {
    const slower = slowerIn([200, ...Array.from({ length: 180 }, () => 1_000)]);
    expect(slower.length).toBeGreaterThan(60);
    expect(Math.max(...slower)).toBeLessThan(125);
  });

  test("a few answers tell nothing", () => {
    let trend = newLatencyTrend(0);
    for (const tookMs of [10, ...Array.from({ length: 14 }, () => 10_000)]) {
      const after = afterAnswer(trend, tookMs, 60_000);
      trend = after.trend;
      expect(after.isSlower).toBe(false);
    }
  });
});

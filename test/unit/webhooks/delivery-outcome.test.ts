import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { errorOf, meaningOf, outcomeOf } from "#core/webhooks/rules/delivery-outcome.ts";

const NOW = Date.UTC(2026, 10, 20);
const answered = (httpStatus: number, retryAfter?: string) => ({
  kind: "answered" as const,
  httpStatus,
  ...(retryAfter !== undefined && { retryAfter }),
});

describe("document 3, Errors: what an answer means", () => {
  test("every 2xx is a delivery", () => {
    fc.assert(
      fc.property(fc.integer({ min: 200, max: 299 }), (status) => {
        expect(meaningOf(answered(status))).toBe("delivered");
      }),
    );
  });

  test("408, 429 and every 5xx are tried again", () => {
    const retried = fc.oneof(fc.constantFrom(408, 429), fc.integer({ min: 500, max: 599 }));
    fc.assert(fc.property(retried, (status) => expect(meaningOf(answered(status))).toBe("retry")));
  });

  test("every 3xx and other 4xx is final", () => {
    const final = fc
      .integer({ min: 300, max: 499 })
      .filter((status) => status !== 408 && status !== 429);
    fc.assert(fc.property(final, (status) => expect(meaningOf(answered(status))).toBe("failed")));
  });

  test("no answer is tried again; a non-public address is final", () => {
    expect(meaningOf({ kind: "unreachable", error: "timeout" })).toBe("retry");
    expect(meaningOf({ kind: "refused", error: "not public" })).toBe("failed");
  });
});

describe("document 3, Delivery: where a delivery goes", () => {
  test("attempts 1 to 7 lead to a retry at the time of the schedule", () => {
    const waits = [1, 2, 3, 4, 5, 6, 7].map((attempt) => {
      const outcome = outcomeOf(answered(503), attempt, 0.5, NOW);
      return outcome.state === "waiting" ? (outcome.dueMs - NOW) / 60_000 : null;
    });
    expect(waits).toEqual([1, 5, 15, 60, 180, 360, 720]);
  });

  test("attempt 8 is the last", () => {
    const outcome = outcomeOf(answered(503, "60"), 8, 0.5, NOW);
    expect(outcome).toEqual({ state: "failed", reason: "attempts used up" });
  });

  test("Retry-After counts only where the delivery is tried again", () => {
    expect(outcomeOf(answered(400, "60"), 1, 0.5, NOW)).toMatchObject({ state: "failed" });
    expect(outcomeOf(answered(503, "3600"), 1, 0.5, NOW)).toEqual({
      state: "waiting",
      dueMs: NOW + 3_600_000,
    });
  });
});

test("the error of an answer is a phrase of ours", () => {
  expect(errorOf(answered(204))).toBeNull();
  expect(errorOf(answered(500))).toBe("status 500");
  expect(errorOf(answered(302))).toBe("status 302, redirects are not followed");
  expect(errorOf({ kind: "unreachable", error: "timeout" })).toBe("timeout");
});

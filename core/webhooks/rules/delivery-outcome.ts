/** What a receiver's answer means for a delivery (document 3, "Delivery" and "Errors"). */
import { parseRetryAfter, retryWaitMs } from "./retry-schedule.ts";

/** What came of one request. */
export type Answer =
  | { readonly kind: "answered"; readonly httpStatus: number; readonly retryAfter?: string }
  /** Timeout, connection or TLS error, DNS not answering. */
  | { readonly kind: "unreachable"; readonly error: string }
  /** The host resolves to a non-public address. */
  | { readonly kind: "refused"; readonly error: string };

export type Meaning = "delivered" | "retry" | "failed";

/**
 * | answer                                              | meaning   |
 * |-----------------------------------------------------|-----------|
 * | 2xx                                                 | delivered |
 * | timeout, connection or TLS error, DNS not answering | retry     |
 * | 408, 429, 5xx                                       | retry     |
 * | 3xx, other 4xx                                      | failed    |
 * | non-public address                                  | failed    |
 *
 * A status outside 200-599 is no HTTP answer: like a connection error.
 */
export function meaningOf(answer: Answer): Meaning {
  if (answer.kind !== "answered") return answer.kind === "refused" ? "failed" : "retry";
  const { httpStatus } = answer;
  if (httpStatus >= 200 && httpStatus <= 299) return "delivered";
  if (httpStatus === 408 || httpStatus === 429) return "retry";
  return httpStatus >= 300 && httpStatus <= 499 ? "failed" : "retry";
}

export type DeliveryOutcome =
  | { readonly state: "delivered" }
  | { readonly state: "waiting"; readonly dueMs: number }
  | { readonly state: "failed"; readonly reason: string };

/**
 * Where a delivery goes after an attempt.
 * @param attempt from 1
 * @param random a number in [0, 1), the source of the jitter
 * @param meaning of the answer, where it is not that of v2
 */
export function outcomeOf(
  answer: Answer,
  attempt: number,
  random: number,
  nowMs: number,
  meaning: Meaning = meaningOf(answer),
): DeliveryOutcome {
  if (meaning === "delivered") return { state: "delivered" };
  if (meaning === "failed") return { state: "failed", reason: errorOf(answer) ?? "refused" };
  const header = answer.kind === "answered" ? answer.retryAfter : undefined;
  const waitMs = retryWaitMs(attempt, random, parseRetryAfter(header, nowMs));
  return waitMs === null
    ? { state: "failed", reason: "attempts used up" }
    : { state: "waiting", dueMs: nowMs + waitMs };
}

/** One phrase for the delivery log; null when delivered. Never the receiver's own words. */
export function errorOf(answer: Answer): string | null {
  if (answer.kind !== "answered") return answer.error;
  if (meaningOf(answer) === "delivered") return null;
  const { httpStatus } = answer;
  return httpStatus >= 300 && httpStatus <= 399
    ? `status ${httpStatus}, redirects are not followed`
    : `status ${httpStatus}`;
}

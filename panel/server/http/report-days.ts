/** `?days=` of a report on how couriers report. */
import { Problem } from "#core/platform/errors/problem.ts";

export const DAYS_LIMIT = 90;

/** @throws {Problem} 422 */
export function daysOf(text: string): number {
  const days = Number(text);
  if (/^\d+$/.test(text) && days >= 1 && days <= DAYS_LIMIT) return days;
  const message = `A whole number from 1 to ${DAYS_LIMIT}.`;
  const violations = [{ path: "days", code: "NOT_ALLOWED", message }];
  throw new Problem(422, "INVALID_QUERY", `days: ${message}`, { members: { violations } });
}

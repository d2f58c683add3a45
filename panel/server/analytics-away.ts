import { Problem } from "#core/platform/errors/problem.ts";

/**
 * For what a page shows besides the rest of it: the page answers without it while ClickHouse cannot be asked.
 * @returns null in place of rows
 */
export function unlessAnalyticsAway(error: unknown): null {
  if (error instanceof Problem && error.code === "ANALYTICS_UNAVAILABLE") return null;
  throw error;
}

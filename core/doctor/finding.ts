/** What the settings doctor says of one thing that it has examined. */
import { limit } from "#core/platform/schema/limit.ts";

export interface Finding {
  /** Names the check where its words are in another language. */
  readonly code: string;
  readonly check: string;
  readonly ok: boolean;
  readonly found: string;
  readonly wanted: string;
  /** What to do where it is not ok; empty where it is. */
  readonly advice: string;
}

/** Difference between our clock and that of a store, from which on leases and expiries are off. */
export const CLOCK_LIMIT_MS = limit(
  2_000,
  "difference between the clocks of a process and of Redis",
  "the examination of the stores reports it",
);

export function finding(code: string, found: Omit<Finding, "code">): Finding {
  return { code, ...found, advice: found.ok ? "" : found.advice };
}

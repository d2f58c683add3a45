/** What a test has measured, for `npm run tool -- reliability`; `npm run test:slow` runs the same tests for as short as they can be. */
import { appendFile } from "node:fs/promises";
import { productEnv } from "#test/support/product/product.ts";

export const SECTIONS = [
  "Kill everything",
  "Hurt everything",
  "Overload",
  "Bad input",
  "Nobody in",
  "Alarms",
  "Personal data",
  "Backup and restore",
] as const;

/** One row of docs/reliability.md. What was not measured is absent. */
export interface Measured {
  readonly section: (typeof SECTIONS)[number];
  readonly name: string;
  readonly seconds: number;
  readonly kills?: number;
  readonly faults?: number;
  /** Events, requests or bodies, as the name says. */
  readonly inputs?: number;
  readonly lost?: number;
  readonly doubled?: number;
  /** Of each kill or fault: until the next event was accepted. */
  readonly recoverySeconds?: readonly number[];
  /** Further figures, by what they count. */
  readonly further?: Readonly<Record<string, number>>;
  /** Goals of its figures that were not reached, each as a phrase; the test fails by them. */
  readonly missed?: readonly string[];
  /** Series that were sampled during a soak: how fast each of them grows. */
  readonly slopes?: readonly Slope[];
  /** Why it was not done here. */
  readonly skipped?: string;
}

export interface Slope {
  /** With its unit. */
  readonly what: string;
  readonly median: number;
  /** Of the straight line with the least squares, in the unit per minute. */
  readonly perMinute: number;
}

/** How long the tests of a file go on, at least; 0 = as short as they can be. */
export const RUN_MS = Number(productEnv()["FAULT_MINUTES"] ?? 0) * 60_000;

/** Whether this is `npm run tool -- reliability`. */
export const IS_MEASURED = Boolean(productEnv()["RELIABILITY_FILE"]);
/** Inputs that the fuzzing in bulk sends at least. */
export const INPUTS_DUE = Number(productEnv()["RELIABILITY_INPUTS"] ?? 0);

export interface Measuring {
  /** Notes a recovery. @param sinceMs `performance.now()` of the kill or of the end of the fault */
  readonly recovered: (sinceMs: number) => void;
  readonly done: (figures: Omit<Measured, "section" | "name" | "seconds">) => Promise<void>;
}

/** @param name what was done, as a row of the page says it */
export function startMeasuring(section: Measured["section"], name: string): Measuring {
  const fromMs = performance.now();
  const recoverySeconds: number[] = [];
  return {
    recovered: (sinceMs) => void recoverySeconds.push(secondsSince(sinceMs)),
    async done(figures) {
      const file = productEnv()["RELIABILITY_FILE"];
      if (!file) return;
      const recovery = recoverySeconds.length > 0 && { recoverySeconds };
      const row: Measured = {
        section,
        name,
        seconds: secondsSince(fromMs),
        ...recovery,
        ...figures,
      };
      await appendFile(file, `${JSON.stringify(row)}\n`);
    },
  };
}

/** For the page: what this machine or clone does not allow. */
export async function noteSkipped(
  section: Measured["section"],
  name: string,
  skipped: string,
): Promise<void> {
  const file = productEnv()["RELIABILITY_FILE"];
  const row: Measured = { section, name, seconds: 0, skipped };
  if (file) await appendFile(file, `${JSON.stringify(row)}\n`);
}

function secondsSince(ms: number): number {
  return Math.round(performance.now() - ms) / 1_000;
}

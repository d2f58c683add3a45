/** Runs the parts of the benchmark one after the other: one that fails costs its own rows only. */
import type { Report } from "./table.ts";

export interface PartRun {
  /** Its file and flags. */
  readonly name: string;
  /** @throws when it fails or prints no report */
  readonly measure: () => Promise<Report>;
}

/**
 * @param tell called when a part begins, and with its time or failure when it ends
 * @returns the reports, and a line for each part that failed
 */
export async function everyPart(runs: readonly PartRun[], tell: (line: string) => void) {
  const reports: Report[] = [];
  const failures: string[] = [];
  for (const { name, measure } of runs) {
    tell(name);
    const startMs = performance.now();
    try {
      reports.push(await measure());
      tell(`${name}: ${Math.round((performance.now() - startMs) / 1_000)} s`);
    } catch (error) {
      const failure = `${name} FAILED: ${error instanceof Error ? error.message : error}`;
      failures.push(failure);
      tell(failure);
    }
  }
  return { reports, failures };
}

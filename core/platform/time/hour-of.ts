const HOUR_MS = 3_600_000;

/** Hours since 1970, by which counts and statistics are kept. */
export function hourOf(atMs: number): number {
  return Math.floor(atMs / HOUR_MS);
}

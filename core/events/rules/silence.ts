/** Whether a courier has fallen silent: far fewer events than the same hours of the week brought before. */

/** Fewer expected events than this prove nothing. */
const EXPECTED_AT_LEAST = 20;
/** Of the expected ones; less is silence. */
const SHARE_AT_LEAST = 0.1;

export function isSilent(expected: number, seen: number): boolean {
  return expected >= EXPECTED_AT_LEAST && seen < expected * SHARE_AT_LEAST;
}

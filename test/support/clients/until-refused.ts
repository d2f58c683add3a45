/** A limit that refills while it is tried. */
import { expect } from "bun:test";

interface Limit {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * Asks until the answer is 429, and expects as many others before it as the burst and the time since the first one allow.
 * @param status of those others
 * @returns the answer that is 429
 */
export async function untilRefused<T extends { readonly status: number }>(
  { perSecond, burst }: Limit,
  status: number,
  ask: (at: number) => Promise<T>,
): Promise<T> {
  const sinceMs = performance.now();
  for (let allowed = 0; ; allowed += 1) {
    const answer = await ask(allowed);
    const refilled = Math.ceil(((performance.now() - sinceMs) / 1_000) * perSecond);
    if (answer.status !== status) {
      expect([answer.status, allowed >= burst]).toEqual([429, true]);
      return answer;
    }
    expect(allowed).toBeLessThan(burst + refilled);
  }
}

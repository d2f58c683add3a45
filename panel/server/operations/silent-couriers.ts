/** Couriers that have fallen silent, for the overview: asked for in the background, since the overview comes every 2 seconds. */
import type { Insights } from "#analytics/insights.ts";

/** The figures are of whole hours. */
const EVERY_MS = 60_000;

/** @returns the codes as they were found last; none before that, and while the analytics cannot be asked */
export function watchSilence(
  insights: Pick<Insights, "silence"> | undefined,
  now: () => number,
): () => readonly string[] {
  let codes: readonly string[] = [];
  let askedAtMs = Number.NEGATIVE_INFINITY;
  const ask = async () => {
    const rows = (await insights?.silence(now()).catch(() => null)) ?? [];
    codes = rows.filter(({ silent }) => silent).map(({ courier }) => courier);
  };
  return () => {
    if (performance.now() - askedAtMs >= EVERY_MS) {
      askedAtMs = performance.now();
      void ask();
    }
    return codes;
  };
}

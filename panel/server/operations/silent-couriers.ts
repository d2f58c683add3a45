/** Couriers that have fallen silent, for the overview: asked for in the background, since the overview comes every 2 seconds. */
import type { Insights } from "#analytics/insights.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";

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

type AskSilence = Insights["silence"];

/**
 * Silence as it was found first in an hour: the figures are of whole hours, and every question keeps the embedded ClickHouse awake. While a
 * courier is silent they are asked for each time, since rows that come late end it.
 */
export function silenceByHour(ask: AskSilence): AskSilence {
  let known: { readonly hour: number; readonly rows: Awaited<ReturnType<AskSilence>> } | null =
    null;
  return async (nowMs) => {
    const hour = hourOf(nowMs);
    if (known?.hour === hour) return known.rows;
    const rows = await ask(nowMs);
    known = rows.some(({ silent }) => silent) ? null : { hour, rows };
    return rows;
  };
}

/** Whether a receiver's answers have begun to take longer than they usually do: the first sign that it is overloaded. */

/** Answers and time that make one mean. */
const WINDOW_ANSWERS = 16;
const WINDOW_MS = 1_000;
/** Longer by this factor and this much at least: the times of quick answers vary with the network and with our own load. */
const FACTOR = 2;
const SLACK_MS = 100;
/** What is usual is the lowest mean of one to two of these: a receiver that has become slower for good is usual after that. */
const USUAL_MS = 60_000;

export interface LatencyTrend {
  readonly count: number;
  readonly sumMs: number;
  readonly windowFromMs: number;
  /** Lowest means of the present and of the previous minute; null = none yet. */
  readonly lowest: number | null;
  readonly lowestBefore: number | null;
  readonly minuteFromMs: number;
}

export function newLatencyTrend(nowMs: number): LatencyTrend {
  const times = { windowFromMs: nowMs, minuteFromMs: nowMs };
  return { ...times, count: 0, sumMs: 0, lowest: null, lowestBefore: null };
}

/** @returns the trend with one more answer, and whether this answer completes a mean that is too long */
export function afterAnswer(
  trend: LatencyTrend,
  tookMs: number,
  nowMs: number,
): { readonly trend: LatencyTrend; readonly isSlower: boolean } {
  const [count, sumMs] = [trend.count + 1, trend.sumMs + tookMs];
  if (count < WINDOW_ANSWERS || nowMs < trend.windowFromMs + WINDOW_MS) {
    const { windowFromMs, lowest, lowestBefore, minuteFromMs } = trend;
    const next = { count, sumMs, windowFromMs, lowest, lowestBefore, minuteFromMs };
    return { trend: next, isSlower: false };
  }
  const mean = sumMs / count;
  const isNewMinute = nowMs >= trend.minuteFromMs + USUAL_MS;
  const lowestBefore = isNewMinute ? trend.lowest : trend.lowestBefore;
  const lowest = isNewMinute || trend.lowest === null ? mean : Math.min(trend.lowest, mean);
  const usual = Math.min(lowest, lowestBefore ?? lowest);
  const next = {
    count: 0,
    sumMs: 0,
    windowFromMs: nowMs,
    lowest,
    lowestBefore,
    minuteFromMs: isNewMinute ? nowMs : trend.minuteFromMs,
  };
  return { trend: next, isSlower: mean > Math.max(FACTOR * usual, usual + SLACK_MS) };
}

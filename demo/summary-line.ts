/** The demo's live line: rewritten in place on a terminal, printed now and then elsewhere. */
import type { Lag } from "#core/platform/log/streams.ts";
import type { Outcomes } from "./courier-client.ts";

const ON_TERMINAL_EVERY_MS = 1_000;
const ELSEWHERE_EVERY_MS = 5_000;
/** The rate is taken over the last so many milliseconds. */
const RATE_OVER_MS = 5_000;
const DEFAULT_COLUMNS = 120;
const STARTING = "the couriers are setting out …";
const CLEAR_LINE = "\r\u001b[K";

export interface Figures {
  readonly outcomes: Readonly<Outcomes>;
  readonly webhooks: { readonly verified: number; readonly unverified: number };
  readonly lags: readonly Lag[];
}

export interface SummaryLine {
  readonly stop: () => void;
}

export function showSummaryLine(read: () => Promise<Figures>): SummaryLine {
  const { stdout } = process;
  const samples: Sample[] = [{ atMs: performance.now(), events: 0 }];
  let isStopped = false;
  let isUnderWay = false;

  async function show(): Promise<void> {
    const figures = await read().catch(() => null);
    if (figures === null || isStopped) return;
    isUnderWay ||= meansSomething(figures);
    if (!isUnderWay) {
      if (stdout.isTTY) stdout.write(`${CLEAR_LINE}${STARTING}`);
      return;
    }
    const events = Object.values(figures.outcomes).reduce((sum, count) => sum + count, 0);
    const line = summaryText(
      figures,
      eventsPerSecond(samples, { atMs: performance.now(), events }),
    );
    if (!stdout.isTTY) stdout.write(`${line}\n`);
    else stdout.write(`${CLEAR_LINE}${line.slice(0, (stdout.columns || DEFAULT_COLUMNS) - 1)}`);
  }

  const everyMs = stdout.isTTY ? ON_TERMINAL_EVERY_MS : ELSEWHERE_EVERY_MS;
  const timer = setInterval(() => void show(), everyMs);
  return {
    stop() {
      isStopped = true;
      clearInterval(timer);
      if (stdout.isTTY) stdout.write("\n");
    },
  };
}

/**
 * At first the couriers have sent nothing, and the lag is that of the shipments of the days before, which are all created at once.
 */
export function meansSomething({ outcomes, webhooks, lags }: Figures): boolean {
  const isCaughtUp = lags.every(({ entries }) => entries <= outcomes.accepted);
  return outcomes.accepted > 0 && webhooks.verified > 0 && isCaughtUp;
}

interface Sample {
  readonly atMs: number;
  readonly events: number;
}

/** Keeps `samples` as short as the rate needs. */
function eventsPerSecond(samples: Sample[], latest: Sample): number {
  samples.push(latest);
  while (samples.length > 2 && latest.atMs - (samples[1]?.atMs ?? 0) >= RATE_OVER_MS) {
    samples.shift();
  }
  const [first = latest] = samples;
  return ((latest.events - first.events) * 1_000) / Math.max(1, latest.atMs - first.atMs);
}

export function summaryText({ outcomes, webhooks, lags }: Figures, perSecond: number): string {
  const number = (value: number) => value.toLocaleString("en-US");
  const rate = perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond);
  const lag = lags.reduce((sum, { entries }) => sum + entries, 0);
  const refused = webhooks.unverified > 0 ? `, ${number(webhooks.unverified)} unverified` : "";
  const invalid = outcomes.invalid > 0 ? `  invalid ${number(outcomes.invalid)}` : "";
  return [
    `${rate} events/s`,
    `accepted ${number(outcomes.accepted)}`,
    `duplicates ${number(outcomes.duplicate)}`,
    `unknown ${number(outcomes.unknownTracking)}${invalid}`,
    `webhooks ${number(webhooks.verified)} delivered and verified${refused}`,
    `lag ${number(lag)}`,
  ].join("  ");
}

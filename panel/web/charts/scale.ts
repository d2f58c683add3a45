/** Where values and instants stand on a chart, and which of them are named beside it. */
import { parseRomeDateTime, romeDate, romeDateTime } from "#core/platform/time/rome-time.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Of 1, 10, 100 and so on. */
const STEPS = [1, 2, 5, 10];

/** From 0 to at least `max`, in round steps: at most about `count` of them. */
export function valueTicks(max: number, count: number): readonly number[] {
  if (!(max > 0)) return [0, 1];
  const power = 10 ** Math.floor(Math.log10(max / count));
  const step = power * (STEPS.find((one) => one * power * count >= max) ?? 10);
  const steps = Math.ceil(max / step - 1e-9);
  return Array.from({ length: steps + 1 }, (_, at) => Number((at * step).toPrecision(12)));
}

export interface TimeTicks {
  readonly at: readonly number[];
  readonly unit: "second" | "hour" | "day" | "month";
}

const MINUTE_STEPS = [1, 2, 5, 10, 15, 30];
const HOUR_STEPS = [1, 2, 3, 4, 6, 12];
const DAY_STEPS = [1, 2, 7];
const MONTH_STEPS = [1, 2, 3, 6];
const MONTH_HOURS = 730;

/** Full minutes, hours, days or months of Europe/Rome between two instants, at most `count`. */
export function timeTicks(from: number, to: number, count: number): TimeTicks {
  const hours = (to - from) / HOUR_MS;
  const minutes = MINUTE_STEPS.find((step) => (hours * 60) / step <= count);
  if (minutes !== undefined) return { at: everyMs(from, to, minutes * 60_000), unit: "second" };
  const hourly = HOUR_STEPS.find((step) => hours / step <= count);
  if (hourly !== undefined) {
    const all = everyMs(from, to, HOUR_MS);
    return { at: all.filter((at) => Number(hourText(at)) % hourly === 0), unit: "hour" };
  }
  const daily = DAY_STEPS.find((step) => hours / 24 / step <= count);
  const days = daysOf(from, to);
  if (daily !== undefined) {
    return {
      at: midnights(
        days.filter((_, at) => at % daily === 0),
        from,
      ),
      unit: "day",
    };
  }
  const monthly = MONTH_STEPS.find((step) => hours / MONTH_HOURS / step <= count) ?? 12;
  const firsts = days.filter((day) => {
    const [, month, date] = day.split("-").map(Number);
    return date === 1 && ((month ?? 0) - 1) % monthly === 0;
  });
  return { at: midnights(firsts, from), unit: "month" };
}

/** `HH` in Rome. */
function hourText(at: number): string {
  return romeDateTime(at).slice(11, 13);
}

/** `YYYY-MM-DD` of every day of Rome from one instant to another. */
function daysOf(from: number, to: number): readonly string[] {
  const noon = Date.parse(`${romeDate(from)}T12:00:00Z`);
  const last = romeDate(to);
  const length = Math.ceil((to - noon) / DAY_MS) + 1;
  return Array.from({ length }, (_, at) =>
    new Date(noon + at * DAY_MS).toISOString().slice(0, 10),
  ).filter((day) => day <= last);
}

function midnights(days: readonly string[], from: number): readonly number[] {
  return days
    .flatMap((day) => parseRomeDateTime(`${day} 00:00:00`) ?? [])
    .filter((at) => at >= from);
}

function everyMs(from: number, to: number, step: number): readonly number[] {
  const first = Math.ceil(from / step) * step;
  const length = Math.max(0, Math.floor((to - first) / step) + 1);
  return Array.from({ length }, (_, at) => first + at * step);
}

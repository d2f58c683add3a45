/**
 * When a shipment will probably arrive: what is left for deliveries like it, in working days (`working-days.ts`), from counts alone.
 *
 *   alike     = deliveries of the courier in the finest cell of the lane with at least 20 of them that were in the same status for
 *               at least as long, and had not left it before the same working day
 *   p50       = the median of what was left for them (nearest rank), as a date
 *   p10, p90  = their 10 % and 90 % quantile. Days are whole, so either quantile lies between two of them; of the four ways to round
 *               both, the one whose days hold a share of deliveries closest to 80 %, the wider one if two are equal
 *
 * Example: of 20 deliveries that were DEPARTED on the day asked, 2 arrived on the next working day, 10 two days later, 6 after three
 * and 2 after four. p50 is 2. p10 may be 1 or 2, p90 3 or 4: 1 to 3 hold 18 of 20, 2 to 3 hold 16 = 80 %, 2 to 4 hold 18. So p10 is 2 and
 * p90 is 3.
 */
import { romeDate } from "#core/platform/time/rome-time.ts";
import { workingDay, workingDayNumber } from "#core/platform/time/working-days.ts";
import { isStatus, type Status } from "#core/statuses/rules/status.ts";
import { type DayCounts, percentileDays, sampleSize, sumCounts } from "./day-counts.ts";
import { GRAINS, type Grain, MIN_SAMPLE } from "./lane.ts";

/** What p10 and p90 hold between them. */
const SHARE = 0.8;
const [LOW, HIGH] = [0.1, 0.9];
/** Shares that differ by rounding alone are equal. */
const EQUAL = 1e-9;

/** What a shipment waits in before its first mapped event: since its ship date. */
export const NO_STATUS = "";
export type Stage = Status | typeof NO_STATUS;

export function isStage(text: string): text is Stage {
  return text === NO_STATUS || isStatus(text);
}

/** So many deliveries stayed `stayed` working days in a status and arrived `total` working days after they had entered it. */
export type Stay = readonly [stayed: number, total: number, deliveries: number];

export interface StayCell {
  readonly grain: Grain;
  readonly stage: Stage;
  readonly stays: readonly Stay[];
}

/** Whole working days from now. */
export interface DaysLeft {
  readonly p10: number;
  readonly p50: number;
  readonly p90: number;
}

/** Dates `YYYY-MM-DD`. */
export interface ExpectedDates {
  readonly p10: string;
  readonly p50: string;
  readonly p90: string;
}

export interface Expectation extends ExpectedDates {
  readonly grain: Grain;
  readonly sampleSize: number;
}

/** What deliveries needed from a day, in the finest grain that has a sample of 20. */
export interface Left {
  readonly grain: Grain;
  readonly counts: DayCounts;
}

export interface Waiting {
  readonly stage: Stage;
  /** When it entered the stage, `YYYY-MM-DD`. */
  readonly since: string;
  readonly today: string;
}

/** @param cells of the shipment's own lane: of every grain, its own origin and weight only */
export function expectDelivery(cells: readonly StayCell[], waiting: Waiting): Expectation | null {
  const left = leftFor(cells, waiting);
  if (!left) return null;
  const dates = datesFrom(waiting.today, quantilesOf(left.counts));
  return { ...dates, grain: left.grain, sampleSize: sampleSize(left.counts) };
}

/** What was left for deliveries that had been in the stage for as long; null where no grain has 20 of them. */
export function leftFor(cells: readonly StayCell[], { stage, since, today }: Waiting): Left | null {
  const elapsed = Math.max(0, workingDayNumber(today) - workingDayNumber(since));
  for (const grain of GRAINS) {
    const cell = cells.find((one) => one.grain === grain && one.stage === stage);
    const counts = cell ? leftAfter(cell.stays, elapsed) : [];
    if (sampleSize(counts) >= MIN_SAMPLE) return { grain, counts };
  }
  return null;
}

function leftAfter(stays: readonly Stay[], elapsed: number): DayCounts {
  const alike = stays.filter(([stayed]) => stayed >= elapsed);
  return sumCounts([alike.map(([, total, deliveries]) => [total - elapsed, deliveries])]);
}

/** @param counts of at least one delivery */
export function quantilesOf(counts: DayCounts): DaysLeft {
  const p50 = percentileDays(counts, 50) ?? 0;
  let best = { p10: p50, p90: p50, distance: Number.POSITIVE_INFINITY };
  for (const p10 of lowEnds(counts).filter((day) => day <= p50)) {
    for (const p90 of highEnds(counts).filter((day) => day >= p50)) {
      const distance = Math.abs(shareWithin(counts, p10, p90) - SHARE);
      if (distance < best.distance - EQUAL) best = { p10, p90, distance };
    }
  }
  return { p10: best.p10, p50, p90: best.p90 };
}

/** The day in which the 10 % quantile lies, and the one after it. */
function lowEnds(counts: DayCounts): number[] {
  const size = sampleSize(counts);
  let before = 0;
  const at = counts.findIndex(([, deliveries]) => {
    before += deliveries;
    return before >= LOW * size - EQUAL;
  });
  return daysOf(counts.slice(at, at + 2));
}

/** The day in which the 90 % quantile lies, and the one before it; the wider interval first. */
function highEnds(counts: DayCounts): number[] {
  const size = sampleSize(counts);
  let until = 0;
  const at = counts.findIndex(([, deliveries]) => {
    until += deliveries;
    return until >= HIGH * size - EQUAL;
  });
  return daysOf(counts.slice(Math.max(0, at - 1), at + 1)).reverse();
}

function daysOf(counts: DayCounts): number[] {
  return counts.map(([days]) => days);
}

function shareWithin(counts: DayCounts, low: number, high: number): number {
  const within = counts.filter(([days]) => days >= low && days <= high);
  return sampleSize(within) / sampleSize(counts);
}

/** Working days from a day on; day 0 is the day itself, or the next working day. */
export function datesFrom(today: string, { p10, p50, p90 }: DaysLeft): ExpectedDates {
  const now = workingDayNumber(today);
  return { p10: workingDay(now + p10), p50: workingDay(now + p50), p90: workingDay(now + p90) };
}

/** The share that arrives by a day, 0 to 1. */
export function shareBy({ counts }: Left, today: string, deadline: string): number {
  // A deadline on a Saturday is met on the Friday before it.
  const days = workingDayNumber(nextDay(deadline)) - 1 - workingDayNumber(today);
  const inTime = counts.filter(([left]) => left <= days);
  return sampleSize(inTime) / sampleSize(counts);
}

function nextDay(date: string): string {
  return new Date(Date.parse(date) + 86_400_000).toISOString().slice(0, 10);
}

export interface StageFact {
  /** Null while the courier's code is not mapped. */
  readonly status: Status | null;
  readonly atMs: number;
}

/**
 * The stage a shipment is in and since when: the latest facts of one status in a row.
 * @param facts in the order in which they happened
 */
export function stageOf(shipDate: string, facts: readonly StageFact[]): Omit<Waiting, "today"> {
  let current: Omit<Waiting, "today"> = { stage: NO_STATUS, since: shipDate };
  for (const { status, atMs } of facts) {
    if (status !== null && status !== current.stage) {
      current = { stage: status, since: romeDate(atMs) };
    }
  }
  return current;
}

/** What the panel draws: events, delays and webhook attempts over time, and a company's own deliveries. */
import { type DayMap, dayCounts } from "#analytics/queries/lane-cells.ts";
import {
  type DayInterval,
  meanDays,
  medianInterval,
  percentileDays,
  sampleSize,
} from "#core/benchmarks/rules/day-counts.ts";
import { MIN_SAMPLE, windowStart } from "#core/benchmarks/rules/lane.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import companyCouriersSql from "./queries/company-couriers.sql" with { type: "text" };
import courierDelaysSql from "./queries/courier-delays.sql" with { type: "text" };
import courierHoursSql from "./queries/courier-hours.sql" with { type: "text" };
import lanesP90Sql from "./queries/lanes-p90.sql" with { type: "text" };
import webhookAnswersSql from "./queries/webhook-answers.sql" with { type: "text" };
import webhookPeriodsSql from "./queries/webhook-periods.sql" with { type: "text" };

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Full hours, and the one that has begun. */
const HOURS_SHOWN = 24;
const DELAY_DAYS = 30;
const MONTH_DAYS = 30;

export interface CourierHour {
  readonly courier: string;
  /** UTC milliseconds: its begin. */
  readonly at: number;
  readonly events: number;
}

/** Seconds from what happened to its receipt. */
export interface CourierDelay {
  readonly courier: string;
  /** `YYYY-MM-DD` in Europe/Rome. */
  readonly day: string;
  readonly events: number;
  readonly p50: number;
  readonly p95: number;
}

export interface WebhookPeriod {
  /** UTC milliseconds. */
  readonly begin: number;
  readonly attempts: number;
  readonly succeeded: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p95: number;
}

export interface WebhookAnswer {
  /** 0 = none came. */
  readonly status: number;
  readonly error: string;
  readonly attempts: number;
  readonly endpoints: number;
}

export interface LaneP90 {
  readonly courier: string;
  readonly destCap: string;
  readonly deliveries: number;
  /** Calendar days. */
  readonly p90: number;
}

export interface CompanyCourier {
  readonly courier: string;
  readonly deliveries: number;
  readonly leadMedian: number;
  readonly leadMedianInterval: DayInterval | null;
  readonly leadMean: number;
  readonly leadP90: number;
  readonly troubleShare: number;
}

interface WebhooksAsked {
  /** Empty = all. */
  readonly endpoints: readonly string[];
  readonly sinceMs: number;
  readonly stepMs: number;
}

export interface Pictures {
  /** The last 24 full hours. */
  courierHours(nowMs: number): Promise<CourierHour[]>;
  /** The last 30 days. */
  courierDelays(nowMs: number): Promise<CourierDelay[]>;
  webhookPeriods(asked: WebhooksAsked): Promise<WebhookPeriod[]>;
  webhookAnswers(asked: Omit<WebhooksAsked, "stepMs">): Promise<WebhookAnswer[]>;
  /** Of lanes with a sample of 20. */
  lanesP90(caps: readonly string[], nowMs: number): Promise<LaneP90[]>;
  /** @param company as its keyed hash; the last 30 days */
  companyCouriers(company: string, nowMs: number): Promise<CompanyCourier[]>;
}

type AskRows = <T>(query: string, params: Record<string, unknown>) => Promise<T[]>;

function lastHour(nowMs: number): number {
  return Math.floor(nowMs / HOUR_MS) * HOUR_MS;
}

export function pictures(rows: AskRows): Pictures {
  return {
    courierHours(nowMs) {
      const until = lastHour(nowMs);
      return rows(courierHoursSql, {
        since: (until - HOURS_SHOWN * HOUR_MS) / 1_000,
        until: until / 1_000,
      });
    },
    courierDelays: (nowMs) =>
      rows(courierDelaysSql, { since: lastHour(nowMs - DELAY_DAYS * DAY_MS) / 1_000 }),
    webhookPeriods: ({ endpoints, sinceMs, stepMs }) =>
      rows(webhookPeriodsSql, { endpoints, since: sinceMs / 1_000, step: stepMs / 1_000 }),
    webhookAnswers: ({ endpoints, sinceMs }) =>
      rows(webhookAnswersSql, { endpoints, since: sinceMs / 1_000 }),
    lanesP90: (caps, nowMs) =>
      rows(lanesP90Sql, { caps, since: windowStart(nowMs), sample: MIN_SAMPLE }),
    async companyCouriers(company, nowMs) {
      const since = romeDate(nowMs - MONTH_DAYS * DAY_MS);
      const found = await rows<CompanyRow>(companyCouriersSql, { company, since });
      return found.map(companyCourier);
    },
  };
}

interface CompanyRow {
  readonly courier: string;
  readonly leads: DayMap;
  readonly troubles: number;
}

function companyCourier({ courier, leads, troubles }: CompanyRow): CompanyCourier {
  const counts = dayCounts(leads);
  const deliveries = sampleSize(counts);
  return {
    courier,
    deliveries,
    leadMedian: percentileDays(counts, 50) ?? 0,
    leadMedianInterval: medianInterval(counts),
    leadMean: meanDays(counts) ?? 0,
    leadP90: percentileDays(counts, 90) ?? 0,
    troubleShare: troubles / Math.max(1, deliveries),
  };
}

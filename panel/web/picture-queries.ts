/** Questions whose answers are drawn. Their routes are left out of an app without analytics, so their answers are typed here. */
import { queryOptions } from "@tanstack/react-query";
import type { CompanyCourier } from "#analytics/insights.ts";
import { type CallOptions, send } from "./api/call.ts";

const FRESH_MS = 60_000;

function answerOf<T>(path: string, options: CallOptions = {}) {
  return queryOptions({
    queryKey: ["pictures", path, options],
    queryFn: async ({ signal }) =>
      (await (await send("get", path, { ...options, signal })).json()) as T,
    staleTime: FRESH_MS,
    refetchInterval: FRESH_MS,
  });
}

interface CourierHours {
  /** UTC milliseconds. */
  readonly from: number;
  readonly to: number;
  readonly items: ReadonlyArray<{
    readonly courier: string;
    readonly at: number;
    readonly events: number;
  }>;
  /** False while the analytics cannot be asked. */
  readonly isComplete: boolean;
}

export const courierHoursQuery = answerOf<CourierHours>("/panel/api/analytics/courier-hours");

export interface CourierDelay {
  readonly courier: string;
  readonly day: string;
  readonly events: number;
  /** Seconds. */
  readonly p50: number;
  readonly p95: number;
}

export const courierDelaysQuery = answerOf<{ readonly items: readonly CourierDelay[] }>(
  "/panel/api/analytics/courier-delays",
);

export interface WebhookPicture {
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
  readonly periods: ReadonlyArray<{
    readonly begin: number;
    readonly attempts: number;
    readonly succeeded: number;
    /** Milliseconds. */
    readonly p50: number;
    readonly p95: number;
  }>;
  readonly answers: ReadonlyArray<{
    readonly status: number;
    readonly error: string;
    readonly attempts: number;
    readonly endpoints: number;
  }>;
  readonly isComplete: boolean;
}

export const webhookPictureQuery = (period: string) =>
  answerOf<WebhookPicture>("/panel/api/analytics/webhooks", { query: { period } });

export interface Home {
  readonly ages: ReadonlyArray<{ readonly status: string; readonly counts: readonly number[] }>;
  readonly compared: number;
  readonly lateTotal: number;
  readonly late: ReadonlyArray<{
    readonly id: number;
    readonly trackingNumber: string;
    readonly courier: string;
    readonly status: string;
    readonly statusDetail: number;
    readonly days: number;
    readonly p90: number;
    readonly sample: number;
  }>;
  readonly couriers: readonly CompanyCourier[];
}

export const homeQuery = (code: string) =>
  answerOf<Home>("/panel/api/companies/:code/home", { params: { code } });

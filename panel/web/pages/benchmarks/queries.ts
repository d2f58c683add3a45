/** Questions about delivery times and about how couriers report. */
import { queryOptions } from "@tanstack/react-query";
import type {
  CourierQuality,
  LaneInsight,
  ProvinceInsight,
  Silence,
  TrendInsight,
  WeightInsight,
} from "#analytics/insights.ts";
import { type Query, send } from "#panel/web/api/call.ts";

const FRESH_MS = 60_000;

/** The analytics' routes are left out of an app without analytics, so their answers are typed here. */
function itemsOf<T>(name: string, query: Query = {}) {
  return queryOptions({
    queryKey: ["analytics", name, query],
    queryFn: async ({ signal }) => {
      const answer = await send("get", `/panel/api/analytics/${name}`, { query, signal });
      return ((await answer.json()) as { readonly items: readonly T[] }).items;
    },
    staleTime: FRESH_MS,
  });
}

export interface LaneQuestion {
  readonly destCap: string;
  readonly originCap: string;
  readonly weightKg: string;
}

export const laneQuery = (question: LaneQuestion) => itemsOf<LaneInsight>("lane", { ...question });

export const provincesQuery = (courier: string) =>
  itemsOf<ProvinceInsight>("provinces", { courier });

export const trendQuery = (destCap: string) => itemsOf<TrendInsight>("trend", { destCap });

export const weightsQuery = (destCap: string) => itemsOf<WeightInsight>("weights", { destCap });

export const qualityQuery = (days: number) => itemsOf<CourierQuality>("quality", { days });

export const silenceQuery = itemsOf<Omit<Silence, "lastHourMs">>("silence");

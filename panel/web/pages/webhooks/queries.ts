/** Questions about webhook endpoints. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import type { ReplayState } from "#panel/web/api/routes.ts";

const HEALTH_EVERY_MS = 10_000;
const PROGRESS_EVERY_MS = 1_000;
const LOG_EVERY_MS = 5_000;
const UNDER_WAY_MS = 2_000;
/** It reads many deliveries after a long outage. */
const MISSED_EVERY_MS = 30_000;

export const channelsQuery = queryOptions({
  queryKey: ["channels"],
  queryFn: ({ signal }) => call("get", "/panel/api/channels", { signal }),
});

export const endpointsQuery = (channelCode: string) =>
  queryOptions({
    queryKey: ["channels", channelCode, "webhooks"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/channels/:channelCode/webhooks", { params: { channelCode }, signal }),
  });

export const endpointQuery = (endpointId: string) =>
  queryOptions({
    queryKey: ["webhooks", endpointId],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/webhooks/:endpointId", { params: { endpointId }, signal }),
    refetchInterval: HEALTH_EVERY_MS,
  });

const HOUR_MS = 3_600_000;

/** @param hours back from now; the server counts whole hours */
export const statsQuery = (endpointId: string, hours: number) =>
  queryOptions({
    queryKey: ["webhooks", endpointId, "stats", hours],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/webhooks/:endpointId/stats", {
        params: { endpointId },
        query: { from: new Date(Date.now() - hours * HOUR_MS).toISOString() },
        signal,
      }),
    placeholderData: keepPreviousData,
    refetchInterval: HEALTH_EVERY_MS,
  });

/** What was given up and can be sent again. */
export const missedQuery = (endpointId: string) =>
  queryOptions({
    queryKey: ["webhooks", endpointId, "missed"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/webhooks/:endpointId/missed", { params: { endpointId }, signal }),
    refetchInterval: MISSED_EVERY_MS,
  });

/** The latest replays of windows: whoever began one finds it again. */
export const replaysQuery = (endpointId: string) =>
  queryOptions({
    queryKey: ["webhooks", endpointId, "replays"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/webhooks/:endpointId/replays", { params: { endpointId }, signal }),
    refetchInterval: ({ state }) =>
      state.data?.items.some(isRunning) ? PROGRESS_EVERY_MS : HEALTH_EVERY_MS,
  });

export function isRunning({ state }: ReplayState): boolean {
  return state === "running";
}

export interface LogFilter {
  readonly state: string;
  /** Days. */
  readonly from: string;
  readonly to: string;
  readonly eventId: string;
  readonly trackingNumber: string;
}

export const deliveriesQuery = (endpointId: string, filter: LogFilter) =>
  infiniteQueryOptions({
    queryKey: ["webhooks", endpointId, "deliveries", filter],
    queryFn: ({ signal, pageParam }) =>
      call("get", "/panel/api/webhooks/:endpointId/deliveries", {
        params: { endpointId },
        query: { ...filter, cursor: pageParam },
        signal,
      }),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? LOG_EVERY_MS : false),
  });

export const deliveryQuery = (deliveryId: string) =>
  queryOptions({
    queryKey: ["deliveries", deliveryId],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/deliveries/:deliveryId", { params: { deliveryId }, signal }),
    refetchInterval: ({ state: { data } }) =>
      data?.state === "queued" || data?.state === "waiting" ? UNDER_WAY_MS : false,
  });

/** Questions about companies and channels. */
import { queryOptions } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";

export const companyQuery = (code: string) =>
  queryOptions({
    queryKey: ["companies", code],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/companies/:code", { params: { code }, signal }),
  });

export const channelQuery = (channelCode: string) =>
  queryOptions({
    queryKey: ["channels", channelCode, "detail"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/channels/:channelCode", { params: { channelCode }, signal }),
  });

const USAGE_EVERY_MS = 10_000;
const STEPS_EVERY_MS = 5_000;

export const channelStepsQuery = (channelCode: string) =>
  queryOptions({
    queryKey: ["channels", channelCode, "onboarding"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/channels/:channelCode/onboarding", {
        params: { channelCode },
        signal,
      }),
    refetchInterval: STEPS_EVERY_MS,
  });

export const usageQuery = (channelCode: string) =>
  queryOptions({
    queryKey: ["channels", channelCode, "usage"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/channels/:channelCode/usage", { params: { channelCode }, signal }),
    refetchInterval: USAGE_EVERY_MS,
  });

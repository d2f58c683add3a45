/** Questions about couriers. */
import { queryOptions } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";

const CODES_SHOWN = 1_000;
const REMAP_EVERY_MS = 1_500;
/** A mapping is applied, or taken back, shipment by shipment. */
const UNMAPPED_EVERY_MS = 3_000;

export const couriersQuery = queryOptions({
  queryKey: ["couriers"],
  queryFn: ({ signal }) => call("get", "/panel/api/couriers", { signal }),
});

export const courierQuery = (code: string) =>
  queryOptions({
    queryKey: ["couriers", code],
    queryFn: ({ signal }) => call("get", "/panel/api/couriers/:code", { params: { code }, signal }),
  });

export const catalogueQuery = (code: string) =>
  queryOptions({
    queryKey: ["couriers", code, "catalogue"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/couriers/:code/catalogue", { params: { code }, signal }),
  });

export const qualityLinksQuery = (code: string) =>
  queryOptions({
    queryKey: ["couriers", code, "quality-links"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/couriers/:code/quality-links", { params: { code }, signal }),
  });

export const remapsQuery = (code: string) =>
  queryOptions({
    queryKey: ["couriers", code, "remaps"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/couriers/:code/remaps", {
        params: { code },
        query: { limit: 20 },
        signal,
      }),
    refetchInterval: ({ state }) =>
      state.data?.items.some((remap) => remap.state !== "done") ? REMAP_EVERY_MS : false,
  });

export const unmappedQuery = queryOptions({
  queryKey: ["unmapped-codes"],
  queryFn: ({ signal }) =>
    call("get", "/panel/api/unmapped-codes", { query: { limit: CODES_SHOWN }, signal }),
  refetchInterval: UNMAPPED_EVERY_MS,
});

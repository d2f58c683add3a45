/** One search for whatever a parcel is known by, with filters. What is asked for stands in the address. */
import { Badge, Card, Group } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { call } from "#panel/web/api/call.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { SavedViews } from "./saved-views.tsx";
import { ExportShipments, ShipmentFilters, type ShipmentSearch } from "./shipment-filters.tsx";
import { ShipmentTable } from "./shipment-table.tsx";

const PAGE_ROWS = 100;

export function ShipmentsPage() {
  const { t } = useText();
  const f = useFormat();
  const search: ShipmentSearch = useSearch({ strict: false });
  const list = useShipments(search);
  const rows = useMemo(() => list.data?.pages.flatMap(({ items }) => items) ?? [], [list.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const first = list.data?.pages[0];
  const couriers = useMemo(() => [...new Set(rows.map(({ courier }) => courier))], [rows]);
  return (
    <>
      <PageHead title={t.shipments.title} lead={t.shipments.lead}>
        <SavedViews />
        <ExportShipments search={search} />
      </PageHead>
      <Card padding={0}>
        <ShipmentFilters search={search} couriers={couriers} />
        <Group px="sm" pb="sm" gap="sm" role="status">
          {first && <Badge color="gray">{t.shipments.found(f.whole(first.total))}</Badge>}
          {first?.isComplete === false && <Badge color="yellow">{t.shipments.notComplete}</Badge>}
        </Group>
        <ProblemNote error={list.error} />
        <ShipmentTable rows={rows} isLoading={list.isPending} onEnd={onEnd} />
      </Card>
    </>
  );
}

function useShipments({ channel: channelCode, ...search }: ShipmentSearch) {
  const query = { ...search, ...(channelCode && { channelCode }) };
  return useInfiniteQuery({
    queryKey: ["shipments", query],
    queryFn: ({ signal, pageParam }) =>
      call("get", "/panel/api/shipments", {
        query: { ...query, limit: PAGE_ROWS, cursor: pageParam },
        signal,
      }),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    placeholderData: keepPreviousData,
  });
}

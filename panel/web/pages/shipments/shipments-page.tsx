/** One search box for every number that a parcel is known by, and the lists of a company. */
import { Anchor, Badge, Card, Group, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { keepPreviousData, useInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { createColumnHelper } from "@tanstack/react-table";
import { useCallback, useEffect, useMemo, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { ShipmentItem } from "#panel/web/api/routes.ts";
import { en } from "#panel/web/i18n/en.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { channelsQuery } from "#panel/web/pages/webhooks/queries.ts";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";

const TYPING_MS = 300;

interface ListSearch {
  readonly q?: string;
  readonly channel?: string;
  readonly status?: string;
}
const PAGE_ROWS = 100;

export function ShipmentsPage() {
  const { t } = useText();
  const f = useFormat();
  const channels = useSuspenseQuery(channelsQuery).data.items;
  const kept: ListSearch = useSearch({ strict: false });
  const [search, setSearch] = useState(kept.q ?? "");
  const [q] = useDebouncedValue(search.trim(), TYPING_MS);
  const [channelCode, setChannelCode] = useState(kept.channel ?? channels[0]?.code ?? "");
  const [status, setStatus] = useState(kept.status ?? "");
  useKept({ q, channel: channelCode, status });
  const query = q === "" ? { channelCode, status } : { q };
  const list = useShipments(query);
  const rows = useMemo(() => list.data?.pages.flatMap(({ items }) => items) ?? [], [list.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const first = list.data?.pages[0];
  return (
    <>
      <PageHead title={t.shipments.title} lead={t.shipments.lead} />
      <Card padding={0}>
        <Group p="sm" gap="sm" align="end">
          <TextInput
            aria-label={t.common.search}
            description={t.shipments.searchHint}
            leftSection={<IconSearch size={16} aria-hidden />}
            value={search}
            onChange={(event) => setSearch(event.currentTarget.value)}
            flex="1 1 260px"
          />
          <Select
            aria-label={t.shipments.channel}
            data={channels.map(({ code, name }) => ({ value: code, label: name }))}
            value={channelCode}
            onChange={(value) => setChannelCode(value ?? "")}
            allowDeselect={false}
            disabled={q !== ""}
          />
          <Select
            aria-label={t.shipments.status}
            data={[
              { value: "", label: t.shipments.anyStatus },
              ...Object.keys(en.statuses).map((value) => ({
                value,
                label: t.statuses[value as keyof typeof en.statuses],
              })),
            ]}
            value={status}
            onChange={(value) => setStatus(value ?? "")}
            allowDeselect={false}
            disabled={q !== ""}
          />
          {first && (
            <Badge color="gray" role="status">
              {t.shipments.found(f.whole(first.total))}
            </Badge>
          )}
        </Group>
        <ProblemNote error={list.error} />
        <ShipmentTable rows={rows} isLoading={list.isPending} onEnd={onEnd} />
      </Card>
    </>
  );
}

/** In the address, so that whoever comes back from a shipment, or reloads, finds the same list. */
function useKept({ q, channel, status }: Readonly<Record<"q" | "channel" | "status", string>>) {
  const navigate = useNavigate();
  useEffect(() => {
    const search = { ...(q && { q }), channel, ...(status && { status }) };
    void navigate({ to: ".", search, replace: true, resetScroll: false });
  }, [navigate, q, channel, status]);
}

function useShipments(query: Readonly<Record<string, string>>) {
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

interface ShipmentTableProps {
  readonly rows: readonly ShipmentItem[];
  readonly isLoading: boolean;
  readonly onEnd: () => void;
}

function ShipmentTable({ rows, isLoading, onEnd }: ShipmentTableProps) {
  const { t } = useText();
  const columns = useMemo(() => {
    const column = createColumnHelper<ShipmentItem>();
    return [
      column.accessor("trackingNumber", {
        header: t.shipments.number,
        cell: ({ row: { original } }) => (
          <Anchor component={Link} to={`/shipments/${original.id}`} size="sm" fw={600}>
            {original.trackingNumber === "" ? original.id : original.trackingNumber}
          </Anchor>
        ),
      }),
      column.accessor("status", {
        header: t.shipments.status,
        cell: ({ row: { original } }) => (
          <StatusBadge status={original.status} detail={original.statusDetail} />
        ),
      }),
      column.accessor("statusUpdatedAt", {
        header: t.shipments.updatedAt,
        cell: ({ getValue }) => <Instant at={getValue()} />,
      }),
      column.accessor("courier", { header: t.shipments.courier }),
      column.accessor("reference", {
        header: t.shipments.reference,
        cell: ({ getValue }) => getValue() ?? "–",
      }),
      column.accessor("channelCode", { header: t.shipments.channel }),
    ];
  }, [t]);
  return (
    <DataTable
      label={t.shipments.title}
      rows={rows}
      columns={columns}
      idOf={({ id }) => String(id)}
      isLoading={isLoading}
      emptyText={t.common.emptySearch}
      onEnd={onEnd}
      minWidth={820}
    />
  );
}

import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo } from "react";
import type { ShipmentItem } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";

interface ShipmentTableProps {
  readonly rows: readonly ShipmentItem[];
  readonly isLoading: boolean;
  readonly onEnd: () => void;
}

export function ShipmentTable({ rows, isLoading, onEnd }: ShipmentTableProps) {
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

/** The couriers, and the codes of theirs that nobody has mapped yet. */
import { Anchor, Card, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo } from "react";
import type { Courier } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";
import { AcceptingBadge } from "./accepting-badge.tsx";
import { NewCourier } from "./new-courier.tsx";
import { couriersQuery } from "./queries.ts";
import { UnmappedCodes } from "./unmapped-codes.tsx";

export function CouriersPage() {
  const { t } = useText();
  const { data, error, isPending } = useQuery(couriersQuery);
  const mayCreate = useMay("couriers:write");
  return (
    <>
      <PageHead title={t.couriers.title} lead={t.couriers.lead}>
        {mayCreate && <NewCourier />}
      </PageHead>
      <Stack gap="lg">
        <ProblemNote error={error} />
        <Card padding={0}>
          <CourierTable rows={data?.items ?? []} isLoading={isPending} />
        </Card>
        <UnmappedCodes />
      </Stack>
    </>
  );
}

interface CourierTableProps {
  readonly rows: readonly Courier[];
  readonly isLoading: boolean;
}

function CourierTable({ rows, isLoading }: CourierTableProps) {
  const { t } = useText();
  const columns = useMemo(() => {
    const column = createColumnHelper<Courier>();
    return [
      column.accessor("name", {
        header: t.couriers.courier,
        cell: ({ row: { original } }) => (
          <Anchor component={Link} to={`/carriers/${original.code}`} fw={600} size="sm">
            {original.name}
          </Anchor>
        ),
      }),
      column.accessor("code", { header: t.couriers.code }),
      column.accessor("acceptingEvents", {
        header: t.couriers.state,
        cell: ({ getValue }) => <AcceptingBadge isAccepting={getValue()} />,
      }),
      column.accessor("signatureRequired", {
        header: t.couriers.signature,
        cell: ({ getValue }) => (getValue() ? t.couriers.required : t.couriers.optional),
      }),
      column.accessor(({ tokens }) => tokens.length, {
        id: "tokens",
        header: t.couriers.tokens,
        meta: { align: "right" },
      }),
    ];
  }, [t]);
  return (
    <DataTable
      label={t.couriers.title}
      rows={rows}
      columns={columns}
      idOf={({ code }) => code}
      isLoading={isLoading}
    />
  );
}

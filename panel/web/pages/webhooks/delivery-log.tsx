/** The delivery log of an endpoint, the newest first, with each attempt on request. */
import { Card, Group, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useCallback, useMemo, useState } from "react";
import type { Delivery } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";
import { DeliveryBadge } from "./delivery-badge.tsx";
import { DeliveryDrawer } from "./delivery-drawer.tsx";
import { deliveriesQuery } from "./queries.ts";

const STATES = ["", "queued", "waiting", "delivered", "failed"] as const;
type State = (typeof STATES)[number];
const TYPING_MS = 300;

export function DeliveryLog({ endpointId }: { readonly endpointId: string }) {
  const { t } = useText();
  const [state, setState] = useState<State>("");
  const [search, setSearch] = useState("");
  const [typed] = useDebouncedValue(search.trim(), TYPING_MS);
  const [shown, setShown] = useState<string | null>(null);
  const isEvent = typed.startsWith("evt_");
  const filter = { state, eventId: isEvent ? typed : "", trackingNumber: isEvent ? "" : typed };
  const log = useInfiniteQuery(deliveriesQuery(endpointId, filter));
  const rows = useMemo(() => log.data?.pages.flatMap(({ items }) => items) ?? [], [log.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = log;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return (
    <Card padding={0}>
      <Group p="sm" gap="sm">
        <TextInput
          aria-label={t.common.search}
          placeholder={t.webhooks.searchLog}
          leftSection={<IconSearch size={16} aria-hidden />}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          flex="1 1 220px"
        />
        <StateFilter state={state} onChange={setState} />
      </Group>
      <ProblemNote error={log.error} />
      <DeliveryTable
        rows={rows}
        isLoading={log.isFetching && rows.length === 0}
        onEnd={onEnd}
        onShow={setShown}
      />
      <DeliveryDrawer deliveryId={shown} onClose={() => setShown(null)} />
    </Card>
  );
}

interface StateFilterProps {
  readonly state: State;
  readonly onChange: (state: State) => void;
}

/** All of them at a glance, or as a list where they have no room beside each other. */
function StateFilter({ state, onChange }: StateFilterProps) {
  const { t } = useText();
  const shared = {
    "aria-label": t.webhooks.state,
    value: state,
    data: STATES.map((value) => ({
      value,
      label: t.webhooks.logStates[value === "" ? "all" : value],
    })),
  };
  return (
    <>
      <SegmentedControl
        {...shared}
        visibleFrom="sm"
        size="xs"
        onChange={(value) => onChange(value as State)}
      />
      <Select
        {...shared}
        hiddenFrom="sm"
        allowDeselect={false}
        onChange={(value) => onChange((value ?? "") as State)}
      />
    </>
  );
}

interface DeliveryTableProps {
  readonly rows: readonly Delivery[];
  readonly isLoading: boolean;
  readonly onEnd: () => void;
  readonly onShow: (deliveryId: string) => void;
}

function DeliveryTable({ rows, isLoading, onEnd, onShow }: DeliveryTableProps) {
  const { t } = useText();
  const f = useFormat();
  const columns = useMemo(() => {
    const column = createColumnHelper<Delivery>();
    return [
      column.accessor("createdAt", {
        header: t.webhooks.createdAt,
        cell: ({ getValue }) => <Instant at={getValue()} precise />,
      }),
      column.accessor("state", {
        header: t.webhooks.state,
        cell: ({ getValue }) => <DeliveryBadge state={getValue()} />,
      }),
      column.accessor("statusCode", {
        header: t.webhooks.event,
        cell: ({ getValue }) => <StatusBadge status={getValue() ?? "–"} />,
      }),
      column.accessor("shipmentId", { header: t.webhooks.shipment }),
      column.accessor(({ attempts }) => attempts.length, {
        id: "attempts",
        header: t.webhooks.attempts,
        meta: { align: "right" },
      }),
      column.accessor(({ attempts }) => answerOf(attempts.at(-1)), {
        id: "answer",
        header: t.webhooks.answer,
      }),
      column.accessor(({ attempts }) => attempts.at(-1)?.durationMs ?? null, {
        id: "took",
        header: t.webhooks.took,
        meta: { align: "right" },
        cell: ({ getValue }) => {
          const ms = getValue();
          return f.duration(ms === null ? null : ms / 1_000);
        },
      }),
      column.display({
        id: "show",
        header: "",
        cell: ({ row: { original } }) => (
          <RowButton
            action={t.common.details}
            subject={original.eventId}
            onClick={() => onShow(original.deliveryId)}
          />
        ),
      }),
    ];
  }, [t, f, onShow]);
  return (
    <DataTable
      label={t.webhooks.log}
      rows={rows}
      columns={columns}
      idOf={({ deliveryId }) => deliveryId}
      isLoading={isLoading}
      onEnd={onEnd}
      minWidth={860}
    />
  );
}

function answerOf(attempt: Delivery["attempts"][number] | undefined): string {
  if (!attempt) return "–";
  return attempt.error ?? `HTTP ${attempt.httpStatus}`;
}

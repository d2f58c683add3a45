/** The delivery log of an endpoint, the newest first, with each attempt on request. */
import { Anchor, Card, Group, SegmentedControl, Select, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { createColumnHelper } from "@tanstack/react-table";
import { useCallback, useMemo, useState } from "react";
import type { Delivery } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { DayInput } from "#panel/web/parts/day-input.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";
import { useTyped } from "#panel/web/parts/use-typed.ts";
import { DeliveryBadge } from "./delivery-badge.tsx";
import { DeliveryDrawer } from "./delivery-drawer.tsx";
import { FailureGroups } from "./failure-groups.tsx";
import { deliveriesQuery } from "./queries.ts";
import {
  ResendBar,
  SelectAll,
  type Selection,
  SelectOne,
  useSelection,
} from "./resend-selected.tsx";

const STATES = ["", "queued", "waiting", "delivered", "failed"] as const;
type State = (typeof STATES)[number];

/** As in the address. */
interface LogSearch {
  readonly state?: string;
  readonly q?: string;
  /** Days, by when the deliveries were created. */
  readonly from?: string;
  readonly to?: string;
  /** The one that stands open. */
  readonly delivery?: string;
}

export function DeliveryLog({ endpointId }: { readonly endpointId: string }) {
  const { t } = useText();
  const [asked, change] = useLogSearch();
  const { q = "", from = "", to = "" } = asked;
  const state = STATES.find((one) => one === asked.state) ?? "";
  const isEvent = q.startsWith("evt_");
  const filter = { state, from, to, eventId: isEvent ? q : "", trackingNumber: isEvent ? "" : q };
  const log = useInfiniteQuery(deliveriesQuery(endpointId, filter));
  const rows = useMemo(() => log.data?.pages.flatMap(({ items }) => items) ?? [], [log.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = log;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const onShow = useCallback((delivery: string) => change({ delivery }), [change]);
  const selection = useSelection(rows);
  return (
    <Card padding={0}>
      <Group p="sm" gap="sm" align="end">
        <SearchLog asked={q} onChange={(text) => change({ q: text })} />
        <DayInput label={t.common.from} value={from} onChange={(day) => change({ from: day })} />
        <DayInput label={t.common.to} value={to} onChange={(day) => change({ to: day })} />
        <StateFilter state={state} onChange={(one) => change({ state: one })} />
      </Group>
      <FailureGroups endpointId={endpointId} from={from} to={to} selection={selection} />
      <ResendBar endpointId={endpointId} selection={selection} />
      <ProblemNote error={log.error} />
      <DeliveryTable
        rows={rows}
        isLoading={log.isFetching && rows.length === 0}
        onEnd={onEnd}
        onShow={onShow}
        selection={selection}
      />
      <DeliveryDrawer
        deliveryId={asked.delivery ?? null}
        onClose={() => change({ delivery: "" })}
      />
    </Card>
  );
}

/** A link shows the same deliveries, and the same one open. */
function useLogSearch() {
  const search: LogSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (more: LogSearch) => {
      void navigate({
        to: ".",
        search: (before: object) =>
          Object.fromEntries(Object.entries({ ...before, ...more }).filter(([, value]) => value)),
        replace: true,
        resetScroll: false,
      });
    },
    [navigate],
  );
  return [search, change] as const;
}

interface SearchLogProps {
  readonly asked: string;
  readonly onChange: (text: string) => void;
}

function SearchLog({ asked, onChange }: SearchLogProps) {
  const { t } = useText();
  const [text, setText] = useState(asked);
  const ask = useTyped(onChange);
  return (
    <TextInput
      aria-label={t.common.search}
      placeholder={t.webhooks.searchLog}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        ask(event.currentTarget.value.trim());
      }}
      flex="1 1 220px"
    />
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
  readonly selection: Selection;
}

function DeliveryTable({ rows, isLoading, onEnd, onShow, selection }: DeliveryTableProps) {
  const { t } = useText();
  const f = useFormat();
  const mayResend = useMay("webhooks:replay");
  const columns = useMemo(() => {
    const column = createColumnHelper<Delivery>();
    return [
      ...(mayResend
        ? [
            column.display({
              id: "select",
              header: () => <SelectAll selection={selection} />,
              cell: ({ row: { original } }) => (
                <SelectOne delivery={original} selection={selection} />
              ),
            }),
          ]
        : []),
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
      column.accessor("shipmentId", {
        header: t.webhooks.shipment,
        cell: ({ row: { original } }) => (
          <Anchor component={Link} to={`/shipments/${original.shipmentId}`} size="sm">
            {original.trackingNumber || original.shipmentId}
          </Anchor>
        ),
      }),
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
  }, [t, f, onShow, mayResend, selection]);
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

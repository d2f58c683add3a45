import { Badge, Button } from "@mantine/core";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo } from "react";
import type { InboxItem } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";

const COLOURS = { DUPLICATE: "gray", UNKNOWN_TRACKING: "yellow", INVALID: "red" } as const;

interface Rule {
  readonly outcome: string;
  readonly code: string;
  readonly path: string;
}

/** A broken rule in plain words. */
export function useRuleText() {
  const { t } = useText();
  return ({ outcome, code, path }: Rule): string => {
    if (code === "") return t.inbox.outcomes[outcome as keyof typeof t.inbox.outcomes];
    const words = t.inbox.reasons[code as keyof typeof t.inbox.reasons] ?? code;
    return path === "" ? words : `${path}: ${words}`;
  };
}

interface InboxTableProps {
  readonly rows: readonly InboxItem[];
  readonly isLoading: boolean;
  readonly onEnd: () => void;
  readonly onOpen: (item: InboxItem) => void;
}

export function InboxTable({ rows, isLoading, onEnd, onOpen }: InboxTableProps) {
  const { t } = useText();
  const ruleText = useRuleText();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the words of a rule change with the language alone
  const columns = useMemo(() => {
    const column = createColumnHelper<InboxItem>();
    return [
      column.accessor("receivedAt", {
        header: t.couriers.received,
        cell: ({ getValue }) => <Instant at={getValue()} precise />,
      }),
      column.accessor("trackingNumber", {
        header: t.shipments.number,
        cell: ({ getValue }) => <span className="break">{getValue() ?? "–"}</span>,
      }),
      column.accessor("outcome", {
        header: t.couriers.outcome,
        cell: ({ getValue }) => (
          <Badge color={COLOURS[getValue()]}>{t.inbox.outcomes[getValue()]}</Badge>
        ),
      }),
      column.accessor("errors", {
        header: t.couriers.reasons,
        cell: ({ row: { original } }) =>
          original.errors
            .map((error) => ruleText({ outcome: original.outcome, ...error }))
            .join("; ") || "–",
      }),
      column.accessor("eventId", {
        header: t.couriers.eventId,
        cell: ({ getValue }) => <span className="mono break">{getValue() ?? "–"}</span>,
      }),
      column.accessor("event", {
        header: t.inbox.payload,
        cell: ({ row: { original } }) => (
          <Button variant="subtle" size="compact-xs" onClick={() => onOpen(original)}>
            {t.inbox.show}
          </Button>
        ),
      }),
    ];
  }, [t, onOpen]);
  return (
    <DataTable
      label={t.inbox.title}
      rows={rows}
      columns={columns}
      idOf={({ receivedAt, messageId, place }) => `${receivedAt} ${messageId} ${place}`}
      isLoading={isLoading}
      emptyText={t.inbox.none}
      onEnd={onEnd}
      minWidth={920}
    />
  );
}

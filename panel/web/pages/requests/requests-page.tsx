/** API calls of the last 7 days that were refused or failed: a quoted request id leads here. */
import { Badge, Button, Card, Group, TextInput } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { RefusedCall } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { JsonDialog } from "#panel/web/parts/json-dialog.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { usePaged } from "#panel/web/parts/use-paged.ts";
import { useTyped } from "#panel/web/parts/use-typed.ts";

const EVERY_MS = 10_000;
const SERVER_ERROR = 500;
const FIELDS = ["requestId", "status", "route"] as const;

interface RequestsSearch {
  readonly requestId?: string;
  readonly status?: string;
  readonly route?: string;
}

export function RequestsPage() {
  const { t } = useText();
  const navigate = useNavigate();
  const search: RequestsSearch = useSearch({ strict: false });
  const [texts, setTexts] = useState(search);
  const [open, setOpen] = useState<RefusedCall | null>(null);
  const ask = useTyped((asked: RequestsSearch) => {
    const given = Object.entries(asked).filter(([, value]) => value.trim() !== "");
    void navigate({ to: "/requests", search: Object.fromEntries(given), replace: true });
  });
  const list = usePaged(
    ["requests", search],
    (cursor, signal) =>
      call("get", "/panel/api/requests", { query: { ...search, cursor }, signal }),
    EVERY_MS,
  );
  return (
    <>
      <PageHead title={t.requests.title} lead={t.requests.lead} />
      <Card padding={0}>
        <Group p="sm" gap="sm">
          {FIELDS.map((name) => (
            <TextInput
              key={name}
              label={t.requests[name]}
              placeholder={name === "status" ? "4xx" : ""}
              value={texts[name] ?? ""}
              onChange={(event) => {
                const after = { ...texts, [name]: event.currentTarget.value };
                setTexts(after);
                ask(after);
              }}
            />
          ))}
        </Group>
        <ProblemNote error={list.error} />
        <CallTable
          rows={list.rows}
          isLoading={list.isLoading}
          onEnd={list.onEnd}
          onOpen={setOpen}
        />
      </Card>
      <JsonDialog
        title={t.requests.body}
        isOpen={open !== null}
        value={open?.body}
        onClose={() => setOpen(null)}
      />
    </>
  );
}

interface CallTableProps {
  readonly rows: readonly RefusedCall[];
  readonly isLoading: boolean;
  readonly onEnd: () => void;
  readonly onOpen: (call: RefusedCall) => void;
}

function CallTable({ rows, isLoading, onEnd, onOpen }: CallTableProps) {
  const { t } = useText();
  const columns = useMemo(() => {
    const column = createColumnHelper<RefusedCall>();
    return [
      column.accessor("at", {
        header: t.requests.at,
        cell: ({ getValue }) => <Instant at={getValue()} precise />,
      }),
      column.accessor("status", {
        header: t.requests.status,
        cell: ({ getValue }) => (
          <Badge color={getValue() < SERVER_ERROR ? "yellow" : "red"}>{getValue()}</Badge>
        ),
      }),
      column.accessor("code", { header: t.requests.code }),
      column.accessor(({ method, route }) => `${method} ${route || "?"}`, {
        id: "route",
        header: t.requests.route,
        cell: ({ getValue }) => <span className="mono break">{getValue()}</span>,
      }),
      column.accessor("tenant", {
        header: t.requests.tenant,
        cell: ({ getValue }) => getValue() || t.requests.nobody,
      }),
      column.accessor("key", {
        header: t.requests.key,
        cell: ({ getValue }) => getValue() ?? "–",
      }),
      column.accessor("requestId", {
        header: t.requests.requestId,
        cell: ({ getValue }) => <span className="mono break">{getValue()}</span>,
      }),
      column.accessor("body", {
        header: t.requests.body,
        cell: ({ row: { original } }) =>
          original.body === null ? (
            "–"
          ) : (
            <Button variant="subtle" size="compact-xs" onClick={() => onOpen(original)}>
              {t.inbox.show}
            </Button>
          ),
      }),
    ];
  }, [t, onOpen]);
  return (
    <DataTable
      label={t.requests.title}
      rows={rows}
      columns={columns}
      idOf={({ at, requestId }) => `${at} ${requestId}`}
      isLoading={isLoading}
      emptyText={t.requests.none}
      onEnd={onEnd}
      minWidth={1100}
    />
  );
}

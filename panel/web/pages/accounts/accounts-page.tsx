/** Who may log in, with which role, and who has been invited. */
import { Badge, Button, Card, Text } from "@mantine/core";
import { IconUserPlus } from "@tabler/icons-react";
import { useSuspenseQuery } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Account } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { SecretOnce } from "#panel/web/parts/secret-once.tsx";
import { usePaged } from "#panel/web/parts/use-paged.ts";
import { meQuery } from "#panel/web/queries.ts";
import { ChangeAccount } from "./change-account.tsx";
import { InviteDialog } from "./invite-dialog.tsx";

const COLOURS = { invited: "blue", active: "teal", disabled: "gray" } as const;

export function AccountsPage() {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const mayChange = capabilities.includes("accounts:write");
  const [isInviting, setIsInviting] = useState(false);
  const [link, setLink] = useState<string | null>(null);
  const [changedId, setChangedId] = useState<string | null>(null);
  const { rows, error, isLoading, onEnd } = usePaged(["accounts"], (cursor, signal) =>
    call("get", "/panel/api/accounts", { query: { cursor }, signal }),
  );
  const changed = rows.find(({ id }) => id === changedId);
  return (
    <>
      <PageHead title={t.accounts.title} lead={t.accounts.lead}>
        {mayChange && (
          <Button
            leftSection={<IconUserPlus size={16} aria-hidden />}
            onClick={() => setIsInviting(true)}
          >
            {t.accounts.invite}
          </Button>
        )}
      </PageHead>
      <ProblemNote error={error} />
      <Card padding={0}>
        <AccountTable
          rows={rows}
          isLoading={isLoading}
          onEnd={onEnd}
          onChange={mayChange ? setChangedId : null}
        />
      </Card>
      {isInviting && (
        <InviteDialog
          onClose={() => setIsInviting(false)}
          onInvited={(one) => {
            setIsInviting(false);
            setLink(one);
          }}
        />
      )}
      <SecretOnce title={t.accounts.link} secret={link} onClose={() => setLink(null)} />
      {changed && <ChangeAccount account={changed} onClose={() => setChangedId(null)} />}
    </>
  );
}

interface AccountTableProps {
  readonly rows: readonly Account[];
  readonly isLoading: boolean;
  readonly onEnd: () => void;
  /** Null = the visitor may only read. */
  readonly onChange: ((id: string) => void) | null;
}

function AccountTable({ rows, isLoading, onEnd, onChange }: AccountTableProps) {
  const { t } = useText();
  const { email: own } = useSuspenseQuery(meQuery).data;
  const columns = useMemo(() => {
    const column = createColumnHelper<Account>();
    return [
      column.accessor("name", {
        header: t.accounts.person,
        cell: ({ row: { original } }) => (
          <>
            <Text size="sm" fw={600}>
              {original.name}
            </Text>
            <Text size="xs" c="dimmed">
              {original.email ?? "–"}
            </Text>
          </>
        ),
      }),
      column.accessor("kind", {
        header: t.accounts.worksFor,
        cell: ({ row: { original } }) =>
          original.companyCode ?? original.courierCode ?? t.accounts.kinds[original.kind],
      }),
      column.accessor("role", {
        header: t.accounts.role,
        cell: ({ getValue }) => t.accounts.roles[getValue()],
      }),
      column.accessor("state", {
        header: t.accounts.state,
        cell: ({ getValue }) => (
          <Badge color={COLOURS[getValue()]}>{t.accounts.states[getValue()]}</Badge>
        ),
      }),
      column.accessor("totp", {
        header: t.accounts.secondFactor,
        cell: ({ getValue }) => (getValue() ? t.common.yes : t.common.no),
      }),
      column.accessor("createdAt", {
        header: t.accounts.since,
        cell: ({ getValue }) => <Instant at={getValue()} />,
      }),
      column.display({
        id: "change",
        header: "",
        meta: { align: "right" },
        cell: ({ row: { original } }) =>
          onChange &&
          (own === null || original.email !== own) && (
            <RowButton
              action={t.accounts.change}
              subject={original.email ?? original.name}
              onClick={() => onChange(original.id)}
            />
          ),
      }),
    ];
  }, [t, onChange, own]);
  return (
    <DataTable
      label={t.accounts.title}
      rows={rows}
      columns={columns}
      idOf={({ id }) => id}
      isLoading={isLoading}
      onEnd={onEnd}
      minWidth={860}
    />
  );
}

/** Who changed what, the newest first. */
import { Alert, Box, Card, Code, Group, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { AuditEntry } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { usePaged } from "#panel/web/parts/use-paged.ts";
import { auditText } from "./audit-text.ts";

const TYPING_MS = 300;

export function AuditPage() {
  const { t } = useText();
  const [filter, setFilter] = useState({ tenant: "", actor: "", target: "" });
  const [asked] = useDebouncedValue(filter, TYPING_MS);
  const { rows, pages, error, isLoading, onEnd } = usePaged(["audit", asked], (cursor, signal) =>
    call("get", "/panel/api/audit", { query: { ...asked, cursor }, signal }),
  );
  return (
    <>
      <PageHead title={t.audit.title} lead={t.audit.lead} />
      <ProblemNote error={error} />
      {pages?.some(({ isPartial }) => isPartial) && (
        <Alert color="orange" mb="md" role="status">
          {t.audit.partial}
        </Alert>
      )}
      <Card padding={0}>
        <Group p="sm" gap="sm">
          {(["tenant", "actor", "target"] as const).map((name) => (
            <TextInput
              key={name}
              label={t.audit[name]}
              value={filter[name]}
              onChange={({ currentTarget }) => {
                const { value } = currentTarget;
                setFilter((now) => ({ ...now, [name]: value }));
              }}
              flex="1 1 200px"
            />
          ))}
        </Group>
        <AuditTable rows={rows} isLoading={isLoading} onEnd={onEnd} />
      </Card>
    </>
  );
}

interface AuditTableProps {
  readonly rows: readonly AuditEntry[];
  readonly isLoading: boolean;
  readonly onEnd: () => void;
}

function AuditTable({ rows, isLoading, onEnd }: AuditTableProps) {
  const { t } = useText();
  const columns = useMemo(() => {
    const column = createColumnHelper<AuditEntry>();
    return [
      column.accessor("at", {
        header: t.audit.at,
        cell: ({ getValue }) => <Instant at={getValue()} precise />,
      }),
      column.accessor("actor", {
        header: t.audit.actor,
        cell: ({ row: { original } }) => (
          <>
            <Text size="sm" className="break">
              {original.actor}
            </Text>
            <Text size="xs" c="dimmed" className="break">
              {original.tenant}
            </Text>
          </>
        ),
      }),
      column.accessor("target", {
        header: t.audit.target,
        cell: ({ row: { original } }) => <What {...original} />,
      }),
      column.display({
        id: "change",
        header: t.audit.change,
        cell: ({ row: { original } }) => <Change {...original} />,
      }),
    ];
  }, [t]);
  return (
    <DataTable
      label={t.audit.title}
      rows={rows}
      columns={columns}
      idOf={({ id }) => id}
      isLoading={isLoading}
      onEnd={onEnd}
      minWidth={960}
    />
  );
}

/** The call itself is for whoever writes programs: it stands under the pointer. */
function What({ action, target }: Pick<AuditEntry, "action" | "target">) {
  const { t } = useText();
  const { done, what } = auditText(t.audit, action, target);
  return (
    <Box miw={{ sm: 180 }} data-wide title={`${action} (${target})`}>
      <Text size="sm" className="break">
        {what}
      </Text>
      <Text size="xs" c="dimmed">
        {done}
      </Text>
    </Box>
  );
}

const NOTHING = "–";

/** Only the members that differ, where both sides have members. */
function Change({ before, after }: Pick<AuditEntry, "before" | "after">) {
  const { t } = useText();
  const names = new Set([...Object.keys(membersOf(before)), ...Object.keys(membersOf(after))]);
  const differing = [...names].flatMap((name) => {
    const [old, now] = [membersOf(before)[name], membersOf(after)[name]].map(written);
    if (old === now) return [];
    return old === NOTHING ? [`${name}: ${now}`] : [`${name}: ${old} → ${now}`];
  });
  if (differing.length === 0) return <>{t.audit.noChange}</>;
  return (
    <Code
      block
      className="break"
      miw={{ sm: 260 }}
      maw={640}
      data-wide
      style={{ whiteSpace: "pre-wrap" }}
    >
      {differing.join("\n")}
    </Code>
  );
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  if (value === null || value === undefined) return {};
  return typeof value === "object" ? { ...value } : { value };
}

function written(value: unknown): string {
  return value === undefined ? NOTHING : JSON.stringify(value);
}

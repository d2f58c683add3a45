/** Log entries that our own code could not process. */
import { Button, Card, Code } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useInfiniteQuery, useMutation, useSuspenseQuery } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useCallback, useMemo, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { DeadLetter } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { meQuery, queries } from "#panel/web/queries.ts";

const KEY = ["dead-letters"];

export function DeadLettersPage() {
  const { t } = useText();
  const f = useFormat();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const mayChange = capabilities.includes("dead-letters:write");
  const [isAsking, setIsAsking] = useState(false);
  const list = useInfiniteQuery({
    queryKey: KEY,
    queryFn: ({ signal, pageParam }) =>
      call("get", "/panel/api/dead-letters", { query: { cursor: pageParam }, signal }),
    initialPageParam: "",
    getNextPageParam: ({ cursor }) => cursor ?? undefined,
  });
  const rows = useMemo(() => list.data?.pages.flatMap(({ items }) => items) ?? [], [list.data]);
  const all = useMutation({
    mutationFn: () => call("post", "/panel/api/dead-letters/redrive"),
    onError: tellProblem,
    async onSuccess({ redriven, remaining }) {
      setIsAsking(false);
      tell(t.deadLetters.redriven(f.whole(redriven), f.whole(remaining)));
      await queries.invalidateQueries({ queryKey: KEY });
    },
  });
  const { hasNextPage, fetchNextPage } = list;
  const onEnd = useCallback(() => {
    if (hasNextPage) void fetchNextPage();
  }, [hasNextPage, fetchNextPage]);
  return (
    <>
      <PageHead title={t.deadLetters.title} lead={t.deadLetters.lead}>
        {mayChange && rows.length > 0 && (
          <Button
            leftSection={<IconRefresh size={16} aria-hidden />}
            onClick={() => setIsAsking(true)}
          >
            {t.deadLetters.redriveAll}
          </Button>
        )}
      </PageHead>
      <ProblemNote error={list.error} />
      <Card padding={0}>
        <LetterTable rows={rows} isLoading={list.isPending} onEnd={onEnd} mayChange={mayChange} />
      </Card>
      <Confirm
        opened={isAsking}
        onClose={() => setIsAsking(false)}
        title={t.deadLetters.redriveAll}
        text={t.deadLetters.redriveAllText}
        action={t.deadLetters.redriveAll}
        color="indigo"
        isPending={all.isPending}
        onConfirm={() => all.mutate()}
      />
    </>
  );
}

interface LetterTableProps {
  readonly rows: readonly DeadLetter[];
  readonly isLoading: boolean;
  readonly onEnd: () => void;
  readonly mayChange: boolean;
}

function LetterTable({ rows, isLoading, onEnd, mayChange }: LetterTableProps) {
  const { t } = useText();
  const columns = useMemo(() => {
    const column = createColumnHelper<DeadLetter>();
    return [
      column.accessor("parkedAt", {
        header: t.deadLetters.parkedAt,
        cell: ({ getValue }) => <Instant at={getValue()} precise />,
      }),
      column.accessor("group", { header: t.deadLetters.group }),
      column.accessor("reason", { header: t.deadLetters.reason }),
      column.accessor("fields", {
        header: t.deadLetters.entry,
        cell: ({ getValue }) => (
          <Code className="break">{JSON.stringify(getValue()).slice(0, 240)}</Code>
        ),
      }),
      column.display({
        id: "redrive",
        header: "",
        cell: ({ row: { original } }) => mayChange && <Redrive id={original.id} />,
      }),
    ];
  }, [t, mayChange]);
  return (
    <DataTable
      label={t.deadLetters.title}
      rows={rows}
      columns={columns}
      idOf={({ id }) => id}
      isLoading={isLoading}
      emptyText={t.deadLetters.empty}
      onEnd={onEnd}
      minWidth={860}
    />
  );
}

function Redrive({ id }: { readonly id: string }) {
  const { t } = useText();
  const redriving = useMutation({
    mutationFn: () => call("post", "/panel/api/dead-letters/:id/redrive", { params: { id } }),
    onError: tellProblem,
    onSuccess: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  return (
    <Button
      size="compact-xs"
      variant="default"
      loading={redriving.isPending}
      onClick={() => redriving.mutate()}
    >
      {t.deadLetters.redrive}
    </Button>
  );
}

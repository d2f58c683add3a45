/** Log entries that our own code could not process. */
import { Button, Card, Text } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
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
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries } from "#panel/web/queries.ts";
import { DEAD_LETTERS, DeadLetterDrawer } from "./dead-letter-drawer.tsx";

/** What is redriven and fails again comes back. */
const ASK_EVERY_MS = 5_000;

export function DeadLettersPage() {
  const { t } = useText();
  const f = useFormat();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const mayChange = capabilities.includes("dead-letters:write");
  const [isAsking, setIsAsking] = useState(false);
  const [shown, setShown] = useState<DeadLetter | null>(null);
  const list = useInfiniteQuery({
    queryKey: DEAD_LETTERS,
    queryFn: ({ signal, pageParam }) =>
      call("get", "/panel/api/dead-letters", { query: { cursor: pageParam }, signal }),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? ASK_EVERY_MS : false),
  });
  const rows = useMemo(() => list.data?.pages.flatMap(({ items }) => items) ?? [], [list.data]);
  const all = useAction({
    mutationFn: () => call("post", "/panel/api/dead-letters/redrive"),
    onError: tellProblem,
    async onSuccess({ redriven, remaining }) {
      setIsAsking(false);
      tell(t.deadLetters.redriven(f.whole(redriven), f.whole(remaining)));
      await queries.invalidateQueries({ queryKey: DEAD_LETTERS });
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
        <LetterTable rows={rows} isLoading={list.isPending} onEnd={onEnd} onShow={setShown} />
      </Card>
      <DeadLetterDrawer letter={shown} mayChange={mayChange} onClose={() => setShown(null)} />
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
  readonly onShow: (letter: DeadLetter) => void;
}

function LetterTable({ rows, isLoading, onEnd, onShow }: LetterTableProps) {
  const { t } = useText();
  const columns = useMemo(() => {
    const column = createColumnHelper<DeadLetter>();
    return [
      column.accessor("parkedAt", {
        header: t.deadLetters.parkedAt,
        cell: ({ getValue }) => <Instant at={getValue()} precise />,
      }),
      column.accessor("group", { header: t.deadLetters.group }),
      column.accessor("log", { header: t.deadLetters.log }),
      column.accessor("reason", {
        header: t.deadLetters.reason,
        cell: ({ getValue }) => (
          <Text size="sm" lineClamp={2} className="break">
            {getValue()}
          </Text>
        ),
      }),
      column.display({
        id: "show",
        header: "",
        cell: ({ row: { original } }) => (
          <RowButton
            action={t.common.details}
            subject={original.id}
            onClick={() => onShow(original)}
          />
        ),
      }),
    ];
  }, [t, onShow]);
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

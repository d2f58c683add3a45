/** Imports, those under way and those that have ended. */
import { Badge, Card, Progress } from "@mantine/core";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Job } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { usePaged } from "#panel/web/parts/use-paged.ts";
import { JobFailures } from "./job-failures.tsx";

const ASK_EVERY_MS = 3_000;
const COLOURS = { processing: "blue", completed: "teal", failed: "red" } as const;
/** As many as a page of the list may have. */
const JOBS_ASKED = 200;

export function JobsPage() {
  const { t } = useText();
  const { rows, error, isLoading, onEnd } = usePaged(
    ["jobs"],
    (cursor, signal) =>
      call("get", "/panel/api/jobs", { query: { limit: JOBS_ASKED, cursor }, signal }),
    ASK_EVERY_MS,
  );
  const [shown, setShown] = useState<Job | null>(null);
  const columns = useColumns(setShown);
  return (
    <>
      <PageHead title={t.jobs.title} lead={t.jobs.lead} />
      <ProblemNote error={error} />
      <Card padding={0}>
        <DataTable
          label={t.jobs.title}
          rows={rows}
          columns={columns}
          idOf={({ jobId }) => jobId}
          isLoading={isLoading}
          onEnd={onEnd}
          emptyText={t.jobs.empty}
          minWidth={960}
        />
      </Card>
      {shown && <JobFailures job={shown} onClose={() => setShown(null)} />}
    </>
  );
}

function useColumns(onShow: (job: Job) => void) {
  const { t } = useText();
  const f = useFormat();
  return useMemo(() => {
    const column = createColumnHelper<Job>();
    const right = { align: "right" } as const;
    return [
      column.accessor("createdAt", {
        header: t.jobs.createdAt,
        cell: ({ getValue }) => <Instant at={getValue()} precise />,
      }),
      column.accessor("channelCode", {
        header: t.jobs.channel,
        cell: ({ getValue }) => <span className="nowrap">{getValue()}</span>,
      }),
      column.accessor("jobId", {
        header: t.jobs.job,
        cell: ({ getValue }) => <span className="mono">{getValue()}</span>,
      }),
      column.accessor("state", {
        header: t.jobs.state,
        cell: ({ row: { original } }) => (
          <Badge color={COLOURS[original.state]} title={original.error ?? undefined}>
            {t.jobs.states[original.state]}
          </Badge>
        ),
      }),
      column.accessor("processedItems", {
        header: t.jobs.processed,
        meta: right,
        cell: ({ row: { original } }) => (
          <>
            {f.whole(original.processedItems)} / {f.whole(original.totalItems)}
            {original.state === "processing" && (
              <Progress
                aria-label={`${t.jobs.progress} ${original.jobId}`}
                value={(100 * original.processedItems) / Math.max(1, original.totalItems)}
              />
            )}
          </>
        ),
      }),
      column.accessor("failedItems", {
        header: t.jobs.failed,
        meta: right,
        cell: ({ row: { original } }) =>
          original.failedItems === 0 ? (
            f.whole(0)
          ) : (
            <RowButton
              action={f.whole(original.failedItems)}
              subject={t.jobs.failures(original.jobId)}
              onClick={() => onShow(original)}
            />
          ),
      }),
      column.accessor("completedAt", {
        header: t.jobs.took,
        meta: right,
        cell: ({ row: { original } }) => {
          const { createdAt, completedAt } = original;
          if (completedAt === null) return "–";
          return f.duration((Date.parse(completedAt) - Date.parse(createdAt)) / 1_000);
        },
      }),
    ];
  }, [t, f, onShow]);
}

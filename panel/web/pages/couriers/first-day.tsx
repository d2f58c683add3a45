/** The first-day comparison: a file of what another tracking says of the courier's parcels, beside what the courier has sent. */
import { Badge, Button, FileInput, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Courier, FirstDayAnswer } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { FileErrors } from "./file-errors.tsx";
import { courierQuery } from "./queries.ts";

export function FirstDay({ courier }: { readonly courier: Courier }) {
  const { t } = useText();
  const { code, comparison } = courier;
  const [file, setFile] = useState<File | null>(null);
  const comparing = useAction({
    mutationFn: (chosen: File) =>
      call("post", "/panel/api/couriers/:code/comparison", { params: { code }, body: chosen }),
    onSuccess: () => queries.invalidateQueries({ queryKey: courierQuery(code).queryKey }),
  });
  return (
    <Section title={t.firstDay.title} lead={t.firstDay.lead}>
      <Stack>
        {comparison && (
          <Text size="sm" component="div">
            {t.firstDay.last} <Instant at={comparison.at} />:{" "}
            <Share same={comparison.same} lines={comparison.lines} />
          </Text>
        )}
        <Group align="end" gap="sm">
          <FileInput
            label={t.couriers.file}
            description={t.firstDay.fileHelp}
            placeholder={t.couriers.chooseFile}
            accept=".csv,text/csv"
            clearable
            clearButtonProps={{ "aria-label": t.common.remove }}
            flex="1 1 260px"
            value={file}
            onChange={(chosen) => {
              setFile(chosen);
              comparing.reset();
            }}
          />
          <Button
            disabled={file === null}
            loading={comparing.isPending}
            onClick={() => file && comparing.mutate(file)}
          >
            {t.firstDay.compare}
          </Button>
        </Group>
        <ProblemNote error={comparing.error} />
        {comparing.data && <Compared answer={comparing.data} />}
      </Stack>
    </Section>
  );
}

function Share({ same, lines }: { readonly same: number; readonly lines: number }) {
  const { t } = useText();
  const f = useFormat();
  return <>{t.firstDay.share(f.whole(same), f.whole(lines))}</>;
}

const COLOURS = {
  same: "teal",
  otherTime: "yellow",
  otherCode: "orange",
  notReceived: "red",
  unknownNumber: "grape",
  further: "blue",
} as const;
const RESULTS = Object.keys(COLOURS) as (keyof typeof COLOURS)[];

function Compared({
  answer: { errors, sums, lines, further },
}: {
  readonly answer: FirstDayAnswer;
}) {
  const { t } = useText();
  const f = useFormat();
  const [shown, setShown] = useState("differences");
  const rows = useMemo(
    () => [
      ...lines,
      ...further.map(({ trackingNumber, ...received }) => ({
        line: null,
        trackingNumber,
        code: null,
        occurredAt: null,
        result: "further" as const,
        received,
      })),
    ],
    [lines, further],
  );
  const columns = useColumns();
  if (sums === null) {
    return <FileErrors title={t.firstDay.errors(f.whole(errors.length))} errors={errors} />;
  }
  const wanted = shown === "all" ? rows : rows.filter(({ result }) => result !== "same");
  return (
    <Stack role="status">
      <Text fw={600}>
        <Share same={sums.same} lines={sums.lines} />
      </Text>
      <Facts rows={RESULTS.map((name) => [t.firstDay.results[name], f.whole(sums[name])])} />
      <SegmentedControl
        aria-label={t.firstDay.shown}
        data={[
          { value: "differences", label: t.firstDay.differences },
          { value: "all", label: t.firstDay.all },
        ]}
        value={shown}
        onChange={setShown}
      />
      <DataTable
        label={t.firstDay.title}
        rows={wanted}
        columns={columns}
        idOf={({ line, received }) => `${line} ${received?.eventId}`}
        emptyText={t.firstDay.none}
        minWidth={860}
      />
    </Stack>
  );
}

interface Row {
  /** Null = received, and no line says it. */
  readonly line: number | null;
  readonly trackingNumber: string;
  readonly code: string | null;
  readonly occurredAt: string | null;
  readonly result: (typeof RESULTS)[number];
  readonly received: {
    readonly code: string;
    readonly occurredAt: string;
    readonly eventId: string;
  } | null;
}

function useColumns() {
  const { t } = useText();
  return useMemo(() => {
    const column = createColumnHelper<Row>();
    return [
      column.accessor("line", {
        header: t.couriers.line,
        meta: { align: "right" },
        cell: ({ getValue }) => getValue() ?? "–",
      }),
      column.accessor("trackingNumber", {
        header: t.firstDay.number,
        cell: ({ getValue }) => <span className="mono break">{getValue()}</span>,
      }),
      column.accessor("result", {
        header: t.couriers.outcome,
        cell: ({ getValue }) => (
          <Badge color={COLOURS[getValue()]}>{t.firstDay.results[getValue()]}</Badge>
        ),
      }),
      column.display({
        id: "file",
        header: t.firstDay.inFile,
        cell: ({ row: { original } }) => <Scan code={original.code} at={original.occurredAt} />,
      }),
      column.display({
        id: "received",
        header: t.firstDay.received,
        cell: ({ row: { original } }) => (
          <Scan code={original.received?.code ?? null} at={original.received?.occurredAt ?? null} />
        ),
      }),
      column.display({
        id: "eventId",
        header: t.couriers.eventId,
        cell: ({ row: { original } }) => (
          <span className="mono break">{original.received?.eventId ?? "–"}</span>
        ),
      }),
    ];
  }, [t]);
}

function Scan({ code, at }: { readonly code: string | null; readonly at: string | null }) {
  if (code === null || at === null) return <>–</>;
  return (
    <>
      <span className="mono">{code}</span> <Instant at={at} precise />
    </>
  );
}

/** A courier's codes with what they mean, and the latest changes, each of which can be taken back. */
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { CatalogueEntry, Remap } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries } from "#panel/web/queries.ts";
import { CatalogueFile } from "./catalogue-file.tsx";
import { PreviewNote } from "./preview-note.tsx";
import { catalogueQuery, remapsQuery } from "./queries.ts";

/** Of a change with many codes. */
const CODES_NAMED = 5;

export function Catalogue({ code }: { readonly code: string }) {
  const { t } = useText();
  const { data, isPending } = useQuery(catalogueQuery(code));
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const rows = (data?.items ?? []).filter((one) =>
    `${one.code} ${one.description}`.toLowerCase().includes(wanted),
  );
  return (
    <>
      <Remaps code={code} />
      <Section
        title={t.couriers.catalogue}
        lead={t.couriers.catalogueLead}
        aside={
          <Group gap="xs">
            <TextInput
              aria-label={t.common.search}
              placeholder={t.common.search}
              size="xs"
              value={search}
              onChange={(event) => setSearch(event.currentTarget.value)}
            />
            <CatalogueFile code={code} />
          </Group>
        }
      >
        <EntryTable rows={rows} isLoading={isPending} />
      </Section>
    </>
  );
}

interface EntryTableProps {
  readonly rows: readonly CatalogueEntry[];
  readonly isLoading: boolean;
}

function EntryTable({ rows, isLoading }: EntryTableProps) {
  const { t } = useText();
  const columns = useMemo(() => {
    const column = createColumnHelper<CatalogueEntry>();
    return [
      column.accessor("code", { header: t.couriers.code }),
      column.accessor("description", { header: t.couriers.description }),
      column.accessor("status", {
        header: t.couriers.status,
        cell: ({ row: { original } }) =>
          original.status ? (
            <StatusBadge status={original.status} detail={original.statusDetail ?? 0} />
          ) : (
            t.couriers.notMapped
          ),
      }),
      column.accessor("terminal", {
        header: t.couriers.terminalShort,
        cell: ({ getValue }) => (getValue() ? t.common.yes : t.common.no),
      }),
    ];
  }, [t]);
  return (
    <DataTable
      label={t.couriers.catalogue}
      rows={rows}
      columns={columns}
      idOf={({ code }) => code}
      isLoading={isLoading}
    />
  );
}

function Remaps({ code }: { readonly code: string }) {
  const { t } = useText();
  const { data } = useQuery(remapsQuery(code));
  const remaps = data?.items ?? [];
  if (remaps.length === 0) return null;
  return (
    <Section title={t.couriers.changes} lead={t.couriers.changesLead}>
      <Stack gap="xs">
        {remaps.map((remap) => (
          <RemapLine
            key={remap.id}
            remap={remap}
            isReverted={remaps.some(({ reverts }) => reverts === remap.id)}
          />
        ))}
      </Stack>
    </Section>
  );
}

interface RemapLineProps {
  readonly remap: Remap;
  readonly isReverted: boolean;
}

function RemapLine({ remap, isReverted }: RemapLineProps) {
  const { t } = useText();
  const f = useFormat();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const { id, courier, entries, progress, state, reverts } = remap;
  const previewing = useAction({
    mutationFn: () =>
      call("post", "/panel/api/remaps/:id/revert", {
        params: { id },
        query: { preview: "true" },
      }),
    onError: tellProblem,
  });
  const seen = previewing.data && "preview" in previewing.data ? previewing.data.preview : null;
  const reverting = useAction({
    mutationFn: () => call("post", "/panel/api/remaps/:id/revert", { params: { id } }),
    onError: tellProblem,
    async onSuccess() {
      previewing.reset();
      tell(t.couriers.takenBack);
      await queries.invalidateQueries({ queryKey: ["couriers", courier] });
      await queries.invalidateQueries({ queryKey: ["unmapped-codes"] });
    },
  });
  const mayRevert = capabilities.includes("catalogue:write") && !isReverted && reverts === null;
  return (
    <Group justify="space-between" gap="xs">
      <Group gap="xs">
        <Instant at={remap.createdAt} />
        <Text size="sm" fw={600}>
          {entries
            .slice(0, CODES_NAMED)
            .map((entry) => entry.code)
            .join(", ")}
          {remap.codes > CODES_NAMED &&
            ` ${t.couriers.andMore(f.whole(remap.codes - CODES_NAMED))}`}
        </Text>
        {(remap.codes === 1 ? entries : []).map(({ code, after }) =>
          after?.status ? (
            <StatusBadge key={code} status={after.status} />
          ) : (
            <Text key={code} size="sm">
              {t.couriers.notMapped}
            </Text>
          ),
        )}
        <Text size="sm" c="dimmed">
          {state === "done"
            ? t.couriers.remapped(f.whole(progress.shipments), f.whole(progress.statesChanged))
            : t.couriers.remapping}
        </Text>
      </Group>
      {mayRevert && (
        <Button
          size="compact-xs"
          variant="default"
          loading={previewing.isPending}
          onClick={() => previewing.mutate()}
        >
          {t.couriers.takeBack}
        </Button>
      )}
      <Confirm
        opened={seen !== null}
        title={t.couriers.takeBack}
        text={seen && <PreviewNote preview={seen} />}
        action={t.couriers.takeBack}
        isPending={reverting.isPending}
        onConfirm={() => reverting.mutate()}
        onClose={() => previewing.reset()}
      />
    </Group>
  );
}

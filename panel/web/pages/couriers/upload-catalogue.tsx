/** Uploading a catalogue: a file, what it would change or what is wrong in it, and applying it. */
import {
  Alert,
  Button,
  Checkbox,
  FileInput,
  Group,
  Modal,
  Stack,
  Table,
  Text,
} from "@mantine/core";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { CatalogueChanges, CatalogueEntry, CatalogueUpload } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { FileErrors } from "./file-errors.tsx";
import { PreviewNote } from "./preview-note.tsx";

/** Of each kind; the figures above tell how many there are. */
const ROWS_SHOWN = 100;

interface UploadProps {
  readonly code: string;
  readonly onClose: () => void;
}

interface Wanted {
  readonly file: File;
  readonly isComplete: boolean;
}

export function UploadCatalogue({ code, onClose }: UploadProps) {
  const { t } = useText();
  const [file, setFile] = useState<File | null>(null);
  const [isComplete, setComplete] = useState(false);
  const { previewing, applying } = useUpload(code, onClose);
  const look = (wanted: File | null, complete: boolean) => {
    applying.reset();
    if (wanted) previewing.mutate({ file: wanted, isComplete: complete });
    else previewing.reset();
  };
  const seen = previewing.data ?? null;
  const isReady = file !== null && seen?.changes != null && sizeOf(seen.changes) > 0;
  return (
    <Modal
      opened
      onClose={onClose}
      title={t.couriers.upload}
      size="xl"
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <Stack>
        <FileInput
          label={t.couriers.file}
          description={t.couriers.fileHelp}
          placeholder={t.couriers.chooseFile}
          accept=".csv,text/csv"
          clearable
          clearButtonProps={{ "aria-label": t.common.remove }}
          value={file}
          onChange={(chosen) => {
            setFile(chosen);
            look(chosen, isComplete);
          }}
        />
        <Checkbox
          label={t.couriers.removeMissing}
          checked={isComplete}
          onChange={({ currentTarget: { checked } }) => {
            setComplete(checked);
            look(file, checked);
          }}
        />
        <ProblemNote error={previewing.error ?? applying.error} />
        {seen && <Seen seen={seen} />}
        <Group justify="end">
          <Button variant="default" onClick={onClose}>
            {t.common.cancel}
          </Button>
          <Button
            disabled={!isReady}
            loading={applying.isPending || previewing.isPending}
            onClick={() => file && applying.mutate({ file, isComplete, base: seen?.base ?? "" })}
          >
            {t.couriers.apply}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function useUpload(code: string, onDone: () => void) {
  const { t } = useText();
  const post = ({ file, isComplete }: Wanted, more: Readonly<Record<string, string>>) =>
    call("post", "/panel/api/couriers/:code/catalogue/import", {
      params: { code },
      query: { missing: isComplete ? "remove" : "keep", ...more },
      body: file,
    });
  const previewing = useAction({
    mutationFn: (wanted: Wanted) => post(wanted, { preview: "true" }),
  });
  const applying = useAction({
    mutationFn: ({ base, ...wanted }: Wanted & { readonly base: string }) => post(wanted, { base }),
    async onSuccess() {
      tell(t.couriers.uploaded);
      onDone();
      await queries.invalidateQueries({ queryKey: ["unmapped-codes"] });
      await queries.invalidateQueries({ queryKey: ["couriers", code] });
    },
  });
  return { previewing, applying };
}

function sizeOf({ added, changed, removed }: CatalogueChanges): number {
  return added.length + changed.length + removed.length;
}

function Seen({ seen: { errors, changes, preview } }: { readonly seen: CatalogueUpload }) {
  const { t } = useText();
  const f = useFormat();
  if (changes === null)
    return <FileErrors title={t.couriers.fileErrors(f.whole(errors.length))} errors={errors} />;
  return (
    <Stack>
      {sizeOf(changes) === 0 && <Alert role="status">{t.couriers.nothingToApply}</Alert>}
      <Counts changes={changes} />
      {preview && <PreviewNote preview={preview} />}
      <ChangeTable changes={changes} />
    </Stack>
  );
}

function Counts({ changes }: { readonly changes: CatalogueChanges }) {
  const { t } = useText();
  const f = useFormat();
  const { added, changed, removed, unchanged, kept } = changes;
  return (
    <Facts
      rows={[
        [t.couriers.added, f.whole(added.length)],
        [t.couriers.changed, f.whole(changed.length)],
        [t.couriers.removed, f.whole(removed.length)],
        [t.couriers.unchanged, f.whole(unchanged)],
        [t.couriers.kept, f.whole(kept)],
      ]}
    />
  );
}

function ChangeTable({
  changes: { added, changed, removed },
}: {
  readonly changes: CatalogueChanges;
}) {
  const { t } = useText();
  const rows = [
    ...added.slice(0, ROWS_SHOWN).map((after) => ({ before: null, after })),
    ...changed.slice(0, ROWS_SHOWN),
    ...removed.slice(0, ROWS_SHOWN).map((before) => ({ before, after: null })),
  ];
  if (rows.length === 0) return null;
  return (
    <ScrollTable label={t.couriers.changed} minWidth={560}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t.couriers.code}</Table.Th>
          <Table.Th>{t.couriers.before}</Table.Th>
          <Table.Th>{t.couriers.after}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(({ before, after }) => (
          <Table.Tr key={(after ?? before)?.code}>
            <Table.Th scope="row" className="mono">
              {(after ?? before)?.code}
            </Table.Th>
            <Table.Td>
              <Meaning entry={before} />
            </Table.Td>
            <Table.Td>
              <Meaning entry={after} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrollTable>
  );
}

function Meaning({ entry }: { readonly entry: CatalogueEntry | null }) {
  const { t } = useText();
  if (entry === null) return <>—</>;
  return (
    <Group gap={6}>
      {entry.status ? (
        <StatusBadge status={entry.status} detail={entry.statusDetail ?? 0} />
      ) : (
        <Text size="sm">{t.couriers.notMapped}</Text>
      )}
      <Text size="sm" c="dimmed">
        {entry.description}
      </Text>
    </Group>
  );
}

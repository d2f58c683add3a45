/** Mapping a code: what it means, what would change by it, and applying it. */
import {
  Alert,
  Button,
  Checkbox,
  Group,
  Modal,
  NumberInput,
  Select,
  Stack,
  Text,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import type { MappingPreview } from "#panel/web/api/routes.ts";
import { en } from "#panel/web/i18n/en.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { queries } from "#panel/web/queries.ts";

interface MapCodeProps {
  readonly courier: string;
  readonly code: string;
  readonly description: string;
  readonly onClose: () => void;
}

interface Meaning {
  readonly status: string;
  readonly statusDetail: number;
  readonly terminal: boolean;
}

export function MapCode({ courier, code, description, onClose }: MapCodeProps) {
  const { t } = useText();
  const form = useForm<Meaning>({
    initialValues: { status: "IN_TRANSIT", statusDetail: 0, terminal: false },
    onValuesChange: () => previewing.reset(),
  });
  const put = (preview: boolean) =>
    call("put", "/panel/api/couriers/:code/catalogue/:statusCode", {
      params: { code: courier, statusCode: code },
      query: preview ? { preview: "true" } : {},
      body: { ...form.getValues(), description },
    });
  const previewing = useMutation({ mutationFn: () => put(true) });
  const applying = useMutation({
    mutationFn: () => put(false),
    async onSuccess() {
      tell(t.carriers.applied);
      onClose();
      await queries.invalidateQueries({ queryKey: ["unmapped-codes"] });
      await queries.invalidateQueries({ queryKey: ["couriers", courier] });
    },
  });
  const seen = previewing.data && "preview" in previewing.data ? previewing.data.preview : null;
  return (
    <Modal
      opened
      onClose={onClose}
      title={`${t.carriers.map} ${code}`}
      size="lg"
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <Stack>
        <Text size="sm">
          {courier} · {description}
        </Text>
        <Select
          label={t.carriers.status}
          data={Object.keys(en.statuses).map((value) => ({
            value,
            label: t.statuses[value as keyof typeof en.statuses],
          }))}
          allowDeselect={false}
          searchable
          {...form.getInputProps("status")}
        />
        <NumberInput
          label={t.carriers.detail}
          min={0}
          allowDecimal={false}
          {...form.getInputProps("statusDetail")}
        />
        <Checkbox
          label={t.carriers.terminal}
          {...form.getInputProps("terminal", { type: "checkbox" })}
        />
        <ProblemNote error={previewing.error ?? applying.error} />
        {seen && <PreviewNote preview={seen} />}
        <Group justify="end">
          <Button
            variant="default"
            loading={previewing.isPending}
            onClick={() => previewing.mutate()}
          >
            {t.carriers.preview}
          </Button>
          <Button loading={applying.isPending} onClick={() => applying.mutate()}>
            {t.carriers.apply}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function PreviewNote({ preview }: { readonly preview: MappingPreview }) {
  const { t } = useText();
  const f = useFormat();
  const sent = preview.webhooks
    .filter(({ verdict }) => verdict === "send")
    .reduce((sum, { count }) => sum + count, 0);
  return (
    <Alert
      color="blue"
      role="status"
      title={t.carriers.wouldChange(f.whole(preview.events), f.whole(preview.shipments))}
    >
      <Stack gap={6}>
        {preview.states.map(({ before, after, shipments }) => (
          <Group key={JSON.stringify([before, after])} gap={6}>
            <StatusBadge status={before.status} detail={before.detail} />
            <span aria-hidden>→</span>
            <StatusBadge status={after.status} detail={after.detail} />
            <Text size="sm">{f.whole(shipments)}</Text>
          </Group>
        ))}
        <Text size="sm">{t.carriers.wouldSend(f.whole(sent))}</Text>
        {!preview.complete && <Text size="sm">{t.carriers.notAll(f.whole(preview.examined))}</Text>}
      </Stack>
    </Alert>
  );
}

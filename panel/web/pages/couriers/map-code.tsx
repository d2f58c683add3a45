/** Mapping a code: what it means, what would change by it, and applying it. */
import { Button, Checkbox, Group, Modal, NumberInput, Select, Stack, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { call } from "#panel/web/api/call.ts";
import { en } from "#panel/web/i18n/en.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { PreviewNote } from "./preview-note.tsx";
import { type MappingSuggestion, SuggestionNote } from "./suggestion.tsx";

interface MapCodeProps {
  readonly courier: string;
  readonly code: string;
  readonly description: string;
  /** Fills the form in; null = there is none. */
  readonly suggestion: MappingSuggestion;
  readonly onClose: () => void;
}

interface Meaning {
  readonly status: string;
  readonly statusDetail: number;
  readonly terminal: boolean;
}

/** Statuses that end a shipment. */
const ENDS: ReadonlySet<string> = new Set(["DELIVERED", "RETURNED"]);

export function MapCode({ courier, code, description, suggestion, onClose }: MapCodeProps) {
  const { t } = useText();
  const form = useForm<Meaning>({
    initialValues: {
      status: suggestion?.status ?? "IN_TRANSIT",
      statusDetail: suggestion?.statusDetail ?? 0,
      terminal: ENDS.has(suggestion?.status ?? ""),
    },
    onValuesChange: () => previewing.reset(),
  });
  const put = (preview: boolean) =>
    call("put", "/panel/api/couriers/:code/catalogue/:statusCode", {
      params: { code: courier, statusCode: code },
      query: preview ? { preview: "true" } : {},
      body: { ...form.getValues(), description },
    });
  const previewing = useAction({ mutationFn: () => put(true) });
  const applying = useAction({
    mutationFn: () => put(false),
    async onSuccess() {
      tell(t.couriers.applied);
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
      title={`${t.couriers.map} ${code}`}
      size="lg"
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <Stack>
        <Text size="sm">
          {courier} · {description}
        </Text>
        <SuggestionNote suggestion={suggestion} />
        <Select
          label={t.couriers.status}
          data={Object.keys(en.statuses).map((value) => ({
            value,
            label: t.statuses[value as keyof typeof en.statuses],
          }))}
          allowDeselect={false}
          searchable
          {...form.getInputProps("status")}
        />
        <NumberInput
          label={t.couriers.detail}
          min={0}
          allowDecimal={false}
          {...form.getInputProps("statusDetail")}
        />
        <Checkbox
          label={t.couriers.terminal}
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
            {t.couriers.preview}
          </Button>
          <Button loading={applying.isPending} onClick={() => applying.mutate()}>
            {t.couriers.apply}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** The boxes of a company: a parcel that names one has its measures. */
import { Group, NumberInput, SimpleGrid, Table, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Box } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { AddButton } from "#panel/web/parts/add-button.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { FormDialog } from "#panel/web/parts/form-dialog.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { useMay } from "#panel/web/parts/use-may.ts";
import { queries } from "#panel/web/queries.ts";

interface BoxesProps {
  readonly companyCode: string;
  readonly boxes: readonly Box[];
}

const NEW = { code: "", length: 30, width: 20, height: 10 };
const MEASURES = ["length", "width", "height"] as const;

export function Boxes({ companyCode, boxes }: BoxesProps) {
  const { t } = useText();
  const mayChange = useMay("shipping:write");
  const [edited, setEdited] = useState<Box | null>(null);
  return (
    <Section
      title={t.merchants.boxes}
      lead={t.merchants.boxesLead}
      aside={mayChange && <AddButton label={t.merchants.newBox} onClick={() => setEdited(NEW)} />}
    >
      {boxes.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t.common.empty}
        </Text>
      ) : (
        <BoxTable companyCode={companyCode} boxes={boxes} onEdit={mayChange ? setEdited : null} />
      )}
      {edited && (
        <BoxDialog companyCode={companyCode} box={edited} onClose={() => setEdited(null)} />
      )}
    </Section>
  );
}

interface BoxTableProps extends BoxesProps {
  /** Null = the visitor may only read. */
  readonly onEdit: ((box: Box) => void) | null;
}

function BoxTable({ companyCode, boxes, onEdit }: BoxTableProps) {
  const { t } = useText();
  const f = useFormat();
  const [removed, setRemoved] = useState<string | null>(null);
  const removing = useAction({
    mutationFn: (boxCode: string) =>
      call("delete", "/panel/api/companies/:code/boxes/:boxCode", {
        params: { code: companyCode, boxCode },
      }),
    onError: tellProblem,
    async onSuccess() {
      setRemoved(null);
      await queries.invalidateQueries({ queryKey: ["companies"] });
    },
  });
  return (
    <>
      <ScrollTable label={t.merchants.boxes} minWidth={420}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.merchants.code}</Table.Th>
            <Table.Th>{t.merchants.measures}</Table.Th>
            {onEdit && <Table.Th />}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {boxes.map((box) => (
            <Table.Tr key={box.code}>
              <Table.Th scope="row" className="mono">
                {box.code}
              </Table.Th>
              <Table.Td>{MEASURES.map((name) => f.decimal(box[name])).join(" × ")} cm</Table.Td>
              {onEdit && (
                <Table.Td>
                  <Group gap="xs" justify="end" wrap="nowrap">
                    <RowButton
                      action={t.merchants.change}
                      subject={box.code}
                      onClick={() => onEdit(box)}
                    />
                    <RowButton
                      action={t.common.remove}
                      subject={box.code}
                      onClick={() => setRemoved(box.code)}
                    />
                  </Group>
                </Table.Td>
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrollTable>
      <Confirm
        opened={removed !== null}
        onClose={() => setRemoved(null)}
        title={t.common.remove}
        text={t.merchants.removeBoxText(removed ?? "")}
        action={t.common.remove}
        isPending={removing.isPending}
        onConfirm={() => removed !== null && removing.mutate(removed)}
      />
    </>
  );
}

interface BoxDialogProps {
  readonly companyCode: string;
  readonly box: Box;
  readonly onClose: () => void;
}

function BoxDialog({ companyCode, box, onClose }: BoxDialogProps) {
  const { t } = useText();
  const isNew = box.code === "";
  const form = useForm({ initialValues: { ...box } });
  const saving = useAction({
    mutationFn: ({ code, ...body }: Box) =>
      call("put", "/panel/api/companies/:code/boxes/:boxCode", {
        params: { code: companyCode, boxCode: code },
        body,
      }),
    async onSuccess() {
      tell(t.common.saved);
      onClose();
      await queries.invalidateQueries({ queryKey: ["companies"] });
    },
  });
  return (
    <FormDialog
      title={isNew ? t.merchants.newBox : box.code}
      action={t.common.save}
      error={saving.error}
      isPending={saving.isPending}
      onSubmit={form.onSubmit((values) => saving.mutate(values))}
      onClose={onClose}
    >
      {isNew && (
        <TextInput
          label={t.merchants.code}
          description={t.merchants.boxCodeHint}
          required
          maxLength={50}
          data-autofocus
          {...form.getInputProps("code")}
          error={faultOf(saving.error, "boxCode")}
        />
      )}
      <SimpleGrid cols={3}>
        {MEASURES.map((name) => (
          <NumberInput
            key={name}
            label={t.merchants[name]}
            suffix=" cm"
            min={0.1}
            decimalScale={1}
            required
            {...form.getInputProps(name)}
            error={faultOf(saving.error, name)}
          />
        ))}
      </SimpleGrid>
    </FormDialog>
  );
}

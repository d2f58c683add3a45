/** The boxes of a company: a parcel that names one has its measures. */
import { NumberInput, SimpleGrid, TextInput } from "@mantine/core";
import { call } from "#panel/web/api/call.ts";
import type { Box } from "#panel/web/api/routes.ts";
import { EditableList } from "#panel/web/forms/editable-list.tsx";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";

interface BoxesProps {
  readonly companyCode: string;
  readonly boxes: readonly Box[];
}

const NEW = { code: "", length: 30, width: 20, height: 10, version: null };
const MEASURES = ["length", "width", "height"] as const;

export function Boxes({ companyCode, boxes }: BoxesProps) {
  const { t } = useText();
  const f = useFormat();
  const mayChange = useMay("shipping:write");
  const pathOf = (boxCode: string) => ({ params: { code: companyCode, boxCode } });
  return (
    <EditableList
      title={t.merchants.boxes}
      lead={t.merchants.boxesLead}
      rows={boxes}
      nameOf={({ code }) => code}
      columns={[
        [t.merchants.code, ({ code }) => code],
        [
          t.merchants.measures,
          (box) => `${MEASURES.map((name) => f.decimal(box[name])).join(" × ")} cm`,
        ],
      ]}
      minWidth={420}
      emptyText={t.common.empty}
      queryKey={["companies"]}
      add={mayChange && { label: t.merchants.newBox }}
      change={mayChange && t.merchants.change}
      removal={
        mayChange && {
          action: t.common.remove,
          text: t.merchants.removeBoxText,
          call: ({ code }) =>
            call("delete", "/panel/api/companies/:code/boxes/:boxCode", pathOf(code)),
        }
      }
      dialogOf={(box, ends) => {
        const { version, ...initial } = box ?? NEW;
        return (
          <FormDialog
            title={box?.code ?? t.merchants.newBox}
            initial={initial}
            version={version}
            send={({ code, ...whole }, { code: _, ...touched }, match) =>
              call("put", "/panel/api/companies/:code/boxes/:boxCode", {
                ...pathOf(code),
                body: box ? touched : whole,
                match,
              })
            }
            onDone={ends.onSaved}
            reread={ends.reread}
            onClose={ends.onClose}
          >
            {(inputOf) => (
              <>
                {box === null && (
                  <TextInput
                    label={t.merchants.code}
                    description={t.merchants.boxCodeHint}
                    required
                    maxLength={50}
                    data-autofocus
                    {...inputOf("code", { path: "boxCode" })}
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
                      {...inputOf(name)}
                    />
                  ))}
                </SimpleGrid>
              </>
            )}
          </FormDialog>
        );
      }}
    />
  );
}

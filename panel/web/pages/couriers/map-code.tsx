/** Mapping a code: what it means, what would change by it, and applying it. */
import { Button, Checkbox, NumberInput, Select, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import type { Reply } from "#panel/web/api/routes.ts";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { statusChoices } from "#panel/web/parts/status-badge.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { PreviewNote } from "./preview-note.tsx";
import { catalogueQuery } from "./queries.ts";
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

export function MapCode(props: MapCodeProps) {
  const { data } = useQuery(catalogueQuery(props.courier));
  return data ? <MapCodeDialog {...props} catalogue={data} /> : null;
}

interface MapCodeDialogProps extends MapCodeProps {
  readonly catalogue: Reply<"get", "/panel/api/couriers/:code/catalogue">;
}

function MapCodeDialog(props: MapCodeDialogProps) {
  const { courier, code, description, suggestion, catalogue, onClose } = props;
  const { t } = useText();
  const known = catalogue.items.find((one) => one.code === code);
  const pathOf = { params: { code: courier, statusCode: code } };
  const put = "/panel/api/couriers/:code/catalogue/:statusCode";
  const previewing = useAction({
    mutationFn: (meaning: Meaning) =>
      call("put", put, {
        ...pathOf,
        query: { preview: "true" },
        body: { ...meaning, description },
      }),
  });
  const seen = previewing.data && "preview" in previewing.data ? previewing.data.preview : null;
  return (
    <FormDialog
      title={`${t.couriers.map} ${code}`}
      action={t.couriers.apply}
      size="lg"
      initial={meaningOf(known)}
      start={meaningOf(suggestion ?? { status: "IN_TRANSIT" })}
      version={catalogue.version}
      send={(meaning, _, match) =>
        call("put", put, { ...pathOf, body: { ...meaning, description }, match })
      }
      onDone={async () => {
        tell(t.couriers.applied);
        onClose();
        await queries.invalidateQueries({ queryKey: ["unmapped-codes"] });
        await queries.invalidateQueries({ queryKey: ["couriers", courier] });
      }}
      reread={() => queries.invalidateQueries({ queryKey: catalogueQuery(courier).queryKey })}
      onClose={onClose}
      onChange={() => previewing.reset()}
    >
      {(inputOf, { values }) => (
        <>
          <Text size="sm">
            {courier} · {description}
          </Text>
          <SuggestionNote suggestion={suggestion} />
          <Select
            label={t.couriers.status}
            data={statusChoices(t)}
            allowDeselect={false}
            searchable
            {...inputOf("status")}
          />
          <NumberInput
            label={t.couriers.detail}
            min={0}
            allowDecimal={false}
            {...inputOf("statusDetail")}
          />
          <Checkbox label={t.couriers.terminal} {...inputOf("terminal", { type: "checkbox" })} />
          <ProblemNote error={previewing.error} />
          {seen && <PreviewNote preview={seen} />}
          <Button
            variant="default"
            loading={previewing.isPending}
            onClick={() => previewing.mutate(values)}
          >
            {t.couriers.preview}
          </Button>
        </>
      )}
    </FormDialog>
  );
}

/** What a code means; an unmapped one means nothing yet. */
function meaningOf(
  entry: {
    readonly status?: string;
    readonly statusDetail?: number;
    readonly terminal?: boolean;
  } = {},
): Meaning {
  const { status = "", statusDetail = 0, terminal = ENDS.has(status) } = entry;
  return { status, statusDetail, terminal };
}

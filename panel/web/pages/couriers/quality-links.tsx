/** Links by which people without an account read the courier's quality report. */
import { NumberInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import { EditableList } from "#panel/web/forms/editable-list.tsx";
import { FormDialog } from "#panel/web/forms/form-dialog.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { qualityLinksQuery } from "./queries.ts";

const DAYS = 30;
const DAYS_MOST = 366;

export function QualityLinks({ code }: { readonly code: string }) {
  const { t } = useText();
  const { data, error } = useQuery(qualityLinksQuery(code));
  return (
    <EditableList
      title={t.couriers.links}
      lead={t.couriers.linksLead}
      rows={data?.items ?? []}
      nameOf={({ id }) => id}
      columns={[
        [t.couriers.id, ({ id }) => id],
        [t.couriers.madeBy, ({ createdBy }) => createdBy],
        [t.couriers.madeAt, ({ createdAt }) => <Instant at={createdAt} />],
        [t.couriers.worksUntil, ({ expiresAt }) => <Instant at={expiresAt} />],
      ]}
      minWidth={560}
      emptyText={t.couriers.noLinks}
      queryKey={qualityLinksQuery(code).queryKey}
      add={{ label: t.couriers.newLink }}
      removal={{
        action: t.couriers.revoke,
        text: () => t.couriers.revokeLinkText,
        call: ({ id }) =>
          call("delete", "/panel/api/couriers/:code/quality-links/:id", { params: { code, id } }),
      }}
      secretTitle={t.couriers.link}
      dialogOf={(_row, { onClose, onIssued }) => (
        <FormDialog
          title={t.couriers.newLink}
          action={t.couriers.makeLink}
          initial={{ expiresInDays: DAYS }}
          send={(body) =>
            call("post", "/panel/api/couriers/:code/quality-links", { params: { code }, body })
          }
          onDone={({ url }) => onIssued(url)}
          onClose={onClose}
        >
          {(inputOf) => (
            <NumberInput
              label={t.couriers.linkDays}
              min={1}
              max={DAYS_MOST}
              allowDecimal={false}
              {...inputOf("expiresInDays")}
            />
          )}
        </FormDialog>
      )}
    >
      <ProblemNote error={error} />
    </EditableList>
  );
}

/** Links by which people without an account read the courier's quality report. */
import { NumberInput, Table, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { AddSecret } from "#panel/web/parts/add-secret.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { FormDialog } from "#panel/web/parts/form-dialog.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { qualityLinksQuery } from "./queries.ts";

const DAYS = 30;
const DAYS_MOST = 366;

export function QualityLinks({ code }: { readonly code: string }) {
  const { t } = useText();
  const { data, error } = useQuery(qualityLinksQuery(code));
  const links = data?.items ?? [];
  return (
    <Section
      title={t.couriers.links}
      lead={t.couriers.linksLead}
      aside={
        <AddSecret
          label={t.couriers.newLink}
          title={t.couriers.link}
          dialogOf={(onClose, onMade) => (
            <LinkDialog code={code} onClose={onClose} onMade={onMade} />
          )}
        />
      }
    >
      <ProblemNote error={error} />
      {links.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t.couriers.noLinks}
        </Text>
      ) : (
        <LinkTable code={code} links={links} />
      )}
    </Section>
  );
}

interface LinkDialogProps {
  readonly code: string;
  readonly onClose: () => void;
  readonly onMade: (url: string) => void;
}

function LinkDialog({ code, onClose, onMade }: LinkDialogProps) {
  const { t } = useText();
  const form = useForm({ initialValues: { expiresInDays: DAYS } });
  const making = useAction({
    mutationFn: (body: object) =>
      call("post", "/panel/api/couriers/:code/quality-links", { params: { code }, body }),
    async onSuccess(made) {
      onMade(made.url);
      await queries.invalidateQueries({ queryKey: ["couriers", code, "quality-links"] });
    },
  });
  return (
    <FormDialog
      title={t.couriers.newLink}
      action={t.couriers.makeLink}
      error={making.error}
      isPending={making.isPending}
      onSubmit={form.onSubmit((values) => making.mutate(values))}
      onClose={onClose}
    >
      <NumberInput
        label={t.couriers.linkDays}
        min={1}
        max={DAYS_MOST}
        allowDecimal={false}
        {...form.getInputProps("expiresInDays")}
        error={faultOf(making.error, "expiresInDays")}
      />
    </FormDialog>
  );
}

interface LinkTableProps {
  readonly code: string;
  readonly links: ReadonlyArray<{
    readonly id: string;
    readonly createdBy: string;
    readonly createdAt: string;
    readonly expiresAt: string;
  }>;
}

function LinkTable({ code, links }: LinkTableProps) {
  const { t } = useText();
  const [revoked, setRevoked] = useState<string | null>(null);
  const revoking = useAction({
    mutationFn: (id: string) =>
      call("delete", "/panel/api/couriers/:code/quality-links/:id", { params: { code, id } }),
    onError: tellProblem,
    async onSuccess() {
      setRevoked(null);
      await queries.invalidateQueries({ queryKey: ["couriers", code, "quality-links"] });
    },
  });
  return (
    <>
      <ScrollTable label={t.couriers.links} minWidth={560}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.couriers.id}</Table.Th>
            <Table.Th>{t.couriers.madeBy}</Table.Th>
            <Table.Th>{t.couriers.madeAt}</Table.Th>
            <Table.Th>{t.couriers.worksUntil}</Table.Th>
            <Table.Th aria-label={t.couriers.revoke} />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {links.map(({ id, createdBy, createdAt, expiresAt }) => (
            <Table.Tr key={id}>
              <Table.Th scope="row" className="mono">
                {id}
              </Table.Th>
              <Table.Td>{createdBy}</Table.Td>
              <Table.Td>
                <Instant at={createdAt} />
              </Table.Td>
              <Table.Td>
                <Instant at={expiresAt} />
              </Table.Td>
              <Table.Td ta="right">
                <RowButton action={t.couriers.revoke} subject={id} onClick={() => setRevoked(id)} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrollTable>
      <Confirm
        opened={revoked !== null}
        onClose={() => setRevoked(null)}
        title={t.couriers.revoke}
        text={t.couriers.revokeLinkText}
        action={t.couriers.revoke}
        isPending={revoking.isPending}
        onConfirm={() => revoked !== null && revoking.mutate(revoked)}
      />
    </>
  );
}

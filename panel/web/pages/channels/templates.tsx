/** Mail templates of a channel by event and language. */
import { Group, Table, Text } from "@mantine/core";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Channel, Template } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { AddButton } from "#panel/web/parts/add-button.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { languageName } from "./choices.ts";
import { TemplateEditor } from "./template-editor.tsx";
import { useMayChange } from "./use-may-change.ts";

export function Templates({ channel }: { readonly channel: Channel }) {
  const { t } = useText();
  const mayChange = useMayChange("templates:write", channel.code);
  const [edited, setEdited] = useState<Template | null>(null);
  const { templates } = channel.emails;
  const first: Template = { event: "", language: channel.language, subject: "", body: "" };
  return (
    <Section
      title={t.merchants.templates}
      lead={t.merchants.templatesLead}
      aside={
        mayChange && <AddButton label={t.merchants.newTemplate} onClick={() => setEdited(first)} />
      }
    >
      {templates.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t.merchants.noTemplates}
        </Text>
      ) : (
        <TemplateTable channel={channel} mayChange={mayChange} onOpen={setEdited} />
      )}
      {edited && (
        <TemplateEditor
          channel={channel}
          template={edited}
          mayChange={mayChange}
          onClose={() => setEdited(null)}
        />
      )}
    </Section>
  );
}

interface TemplateTableProps {
  readonly channel: Channel;
  readonly mayChange: boolean;
  readonly onOpen: (template: Template) => void;
}

function TemplateTable({ channel, mayChange, onOpen }: TemplateTableProps) {
  const { t, language: own } = useText();
  const [removed, setRemoved] = useState<Template | null>(null);
  const removing = useAction({
    mutationFn: ({ event, language }: Template) =>
      call("delete", "/panel/api/channels/:channelCode/templates/:event/:language", {
        params: { channelCode: channel.code, event, language },
      }),
    onError: tellProblem,
    async onSuccess() {
      setRemoved(null);
      await queries.invalidateQueries({ queryKey: ["channels", channel.code] });
    },
  });
  const templates = channel.emails.templates.toSorted(
    (one, other) =>
      one.event.localeCompare(other.event) || one.language.localeCompare(other.language),
  );
  return (
    <>
      <ScrollTable label={t.merchants.templates} minWidth={560}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.merchants.event}</Table.Th>
            <Table.Th>{t.merchants.language}</Table.Th>
            <Table.Th>{t.merchants.subject}</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {templates.map((one) => {
            const name = `${one.event} ${one.language}`;
            const action = mayChange ? t.merchants.change : t.merchants.show;
            return (
              <Table.Tr key={name}>
                <Table.Th scope="row" className="mono">
                  {one.event}
                </Table.Th>
                <Table.Td>{languageName(one.language, own)}</Table.Td>
                <Table.Td className="break">{one.subject}</Table.Td>
                <Table.Td>
                  <Group gap="xs" justify="end" wrap="nowrap">
                    <RowButton action={action} subject={name} onClick={() => onOpen(one)} />
                    {mayChange && (
                      <RowButton
                        action={t.common.remove}
                        subject={name}
                        onClick={() => setRemoved(one)}
                      />
                    )}
                  </Group>
                </Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </ScrollTable>
      <Confirm
        opened={removed !== null}
        onClose={() => setRemoved(null)}
        title={t.common.remove}
        text={t.merchants.removeTemplateText(removed?.event ?? "")}
        action={t.common.remove}
        isPending={removing.isPending}
        onConfirm={() => removed && removing.mutate(removed)}
      />
    </>
  );
}

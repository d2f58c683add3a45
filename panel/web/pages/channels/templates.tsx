/** Mail templates of a channel by event and language. */
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { EditableList } from "#panel/web/forms/editable-list.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { languageName } from "./choices.ts";
import { TemplateEditor } from "./template-editor.tsx";
import { useMayChange } from "./use-may-change.ts";

export function Templates({ channel }: { readonly channel: Channel }) {
  const { t, language: own } = useText();
  const mayChange = useMayChange("templates:write", channel.code);
  const first = { event: "", language: channel.language, subject: "", body: "", version: null };
  return (
    <EditableList
      title={t.merchants.templates}
      lead={t.merchants.templatesLead}
      rows={channel.emails.templates.toSorted(
        (one, other) =>
          one.event.localeCompare(other.event) || one.language.localeCompare(other.language),
      )}
      nameOf={({ event, language }) => `${event} ${language}`}
      columns={[
        [t.merchants.event, ({ event }) => event],
        [t.merchants.language, ({ language }) => languageName(language, own)],
        [t.merchants.subject, ({ subject }) => <span className="break">{subject}</span>],
      ]}
      minWidth={560}
      emptyText={t.merchants.noTemplates}
      queryKey={["channels", channel.code]}
      add={mayChange && { label: t.merchants.newTemplate }}
      change={mayChange ? t.merchants.change : t.merchants.show}
      removal={
        mayChange && {
          action: t.common.remove,
          text: (_name, { event }) => t.merchants.removeTemplateText(event),
          call: ({ event, language }) =>
            call("delete", "/panel/api/channels/:channelCode/templates/:event/:language", {
              params: { channelCode: channel.code, event, language },
            }),
        }
      }
      dialogOf={(template, ends) => (
        <TemplateEditor
          channel={channel}
          template={template ?? first}
          mayChange={mayChange}
          ends={ends}
        />
      )}
    />
  );
}

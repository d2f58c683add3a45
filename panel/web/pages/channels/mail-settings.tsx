/** Who sends a channel's mails, in whose name, and about which statuses. */
import { MultiSelect, Switch, TextInput } from "@mantine/core";
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { EditForm } from "#panel/web/forms/edit-form.tsx";
import { useEdit } from "#panel/web/forms/use-edit.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { statusChoices } from "#panel/web/parts/status-badge.tsx";
import { useChannelEnds } from "./use-channel-ends.ts";
import { useMayChange } from "./use-may-change.ts";

export function MailSettings({ channel }: { readonly channel: Channel }) {
  const { t } = useText();
  const mayChange = useMayChange("templates:write", channel.code);
  const maySend = useMayChange("channels:write", channel.code);
  const { managed, from, statusNotifications } = channel.emails;
  const edit = useEdit({
    initial: { managed, from: from ?? "", statuses: statusNotifications },
    version: channel.version,
    send: async (_, { statuses, from: sender, ...sending }, match) => {
      const params = { channelCode: channel.code };
      const body = { ...sending, ...(sender !== undefined && { from: sender || null }) };
      if (Object.keys(body).length > 0) {
        await call("put", "/panel/api/channels/:channelCode/emails", { params, body, match });
      }
      if (!statuses) return;
      const path = "/panel/api/channels/:channelCode/status-notifications";
      await call("put", path, { params, body: { statuses }, match });
    },
    ...useChannelEnds(channel.code),
  });
  const { inputOf, values } = edit;
  return (
    <Section title={t.merchants.mailSettings} lead={t.merchants.mailSettingsLead}>
      <EditForm edit={edit} mayChange={mayChange}>
        <Switch
          label={t.merchants.managed}
          disabled={!maySend}
          {...inputOf("managed", { type: "checkbox" })}
        />
        <TextInput
          label={t.merchants.from}
          placeholder={t.merchants.fromDefault}
          disabled={!maySend}
          {...inputOf("from")}
        />
        <MultiSelect
          label={t.merchants.notified}
          description={t.merchants.notifiedHint}
          placeholder={values.statuses.length === 0 ? t.merchants.none : ""}
          data={statusChoices(t)}
          searchable
          disabled={!mayChange}
          {...inputOf("statuses")}
        />
      </EditForm>
    </Section>
  );
}

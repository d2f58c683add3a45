/** Who sends a channel's mails, in whose name, and about which statuses. */
import { MultiSelect, Stack, Switch, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { en } from "#panel/web/i18n/en.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { SaveButton } from "#panel/web/parts/save-button.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { useMayChange } from "./use-may-change.ts";

export function MailSettings({ channel }: { readonly channel: Channel }) {
  const { t } = useText();
  const mayChange = useMayChange("templates:write", channel.code);
  const maySend = useMayChange("channels:write", channel.code);
  const { managed, from, statusNotifications } = channel.emails;
  const form = useForm({
    initialValues: { managed, from: from ?? "", statuses: statusNotifications },
  });
  const saving = useAction({
    mutationFn: async ({ statuses, ...sending }: typeof form.values) => {
      const params = { channelCode: channel.code };
      if (maySend) {
        const body = { managed: sending.managed, from: sending.from || null };
        await call("put", "/panel/api/channels/:channelCode/emails", { params, body });
      }
      const path = "/panel/api/channels/:channelCode/status-notifications";
      await call("put", path, { params, body: { statuses } });
    },
    onError: tellProblem,
    async onSuccess() {
      tell(t.common.saved);
      await queries.invalidateQueries({ queryKey: ["channels", channel.code] });
    },
  });
  return (
    <Section title={t.merchants.mailSettings} lead={t.merchants.mailSettingsLead}>
      <form onSubmit={form.onSubmit((values) => saving.mutate(values))}>
        <Stack>
          <Switch
            label={t.merchants.managed}
            disabled={!maySend}
            {...form.getInputProps("managed", { type: "checkbox" })}
          />
          <TextInput
            label={t.merchants.from}
            placeholder={t.merchants.fromDefault}
            disabled={!maySend}
            {...form.getInputProps("from")}
            error={faultOf(saving.error, "from")}
          />
          <MultiSelect
            label={t.merchants.notified}
            description={t.merchants.notifiedHint}
            placeholder={form.values.statuses.length === 0 ? t.merchants.none : ""}
            data={Object.keys(en.statuses).map((value) => ({
              value,
              label: t.statuses[value as keyof typeof en.statuses],
            }))}
            searchable
            disabled={!mayChange}
            {...form.getInputProps("statuses")}
            error={faultOf(saving.error, "statuses")}
          />
          {mayChange && <SaveButton isPending={saving.isPending} />}
        </Stack>
      </form>
    </Section>
  );
}

/** The settings of the channel that are one value each, and webhooks v1. */
import { Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { Fragment } from "react";
import { channelForm } from "#core/configuration/rules/settings.ts" with { type: "macro" };
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { SaveButton } from "#panel/web/parts/save-button.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { isShadow } from "./choices.ts";
import { inputType, SettingField, useSettingText } from "./setting-field.tsx";
import { useMayChange } from "./use-may-change.ts";

const FIELDS = channelForm();
type Settings = Pick<Channel, (typeof FIELDS)[number]["name"]>;
const NO_WEBHOOK = { url: "", acknowledgement: '{"result":"OK"}' };

interface OwnSettingsProps {
  readonly channel: Channel;
}

export function OwnSettings({ channel }: OwnSettingsProps) {
  const { t } = useText();
  // A shadow has the settings of its channel, and is changed there.
  const mayChange = useMayChange("channels:write", channel.code);
  return (
    <Section title={t.merchants.ownSettings} lead={mayChange && t.merchants.ownSettingsLead}>
      {mayChange ? <OwnSettingsForm channel={channel} /> : <OwnSettingsFacts channel={channel} />}
    </Section>
  );
}

function OwnSettingsFacts({ channel }: OwnSettingsProps) {
  const { t } = useText();
  const textOf = useSettingText();
  return (
    <Stack>
      <Facts
        rows={FIELDS.map((field) => [
          t.merchants.channelSettings[field.name].label,
          field.name === "webhookV1"
            ? (channel.webhookV1?.url ?? "–")
            : textOf(field, channel[field.name]),
        ])}
      />
      <Text size="sm" c="dimmed">
        {isShadow(channel.code) ? t.merchants.shadowSettings : t.merchants.askOperators}
      </Text>
    </Stack>
  );
}

function OwnSettingsForm({ channel }: OwnSettingsProps) {
  const { t } = useText();
  const own = Object.fromEntries(FIELDS.map(({ name }) => [name, channel[name]])) as Settings;
  const webhookV1 = own.webhookV1 ?? NO_WEBHOOK;
  const form = useForm({ initialValues: { ...own, webhookV1 } });
  const saving = useAction({
    mutationFn: (values: typeof form.values) => {
      const isOff = values.webhookV1.url === "";
      return call("patch", "/panel/api/channels/:channelCode", {
        params: { channelCode: channel.code },
        body: { ...values, webhookV1: isOff ? null : values.webhookV1 },
      });
    },
    onError: tellProblem,
    async onSuccess() {
      tell(t.common.saved);
      await queries.invalidateQueries({ queryKey: ["channels"] });
      await queries.invalidateQueries({ queryKey: ["companies"] });
    },
  });
  const webhookFields = (
    <>
      <TextInput
        label={t.merchants.webhookV1Url}
        description={t.merchants.channelSettings.webhookV1.hint}
        {...form.getInputProps("webhookV1.url")}
        error={faultOf(saving.error, "webhookV1.url")}
      />
      {form.values.webhookV1.url !== "" && (
        <TextInput
          label={t.merchants.acknowledgement}
          {...form.getInputProps("webhookV1.acknowledgement")}
          error={faultOf(saving.error, "webhookV1.acknowledgement")}
        />
      )}
    </>
  );
  return (
    <form onSubmit={form.onSubmit((values) => saving.mutate(values))}>
      <Stack>
        {FIELDS.map((field) =>
          field.name === "webhookV1" ? (
            <Fragment key={field.name}>{webhookFields}</Fragment>
          ) : (
            <SettingField
              key={field.name}
              field={field}
              words={t.merchants.channelSettings[field.name]}
              input={form.getInputProps(field.name, { type: inputType(field) })}
              error={faultOf(saving.error, field.name)}
            />
          ),
        )}
        <SaveButton isPending={saving.isPending} />
      </Stack>
    </form>
  );
}

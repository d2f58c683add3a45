/** The settings of the channel that are one value each, and webhooks v1. */
import { Stack, Text, TextInput } from "@mantine/core";
import { Fragment } from "react";
import { channelForm } from "#core/configuration/rules/settings.ts" with { type: "macro" };
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { EditForm } from "#panel/web/forms/edit-form.tsx";
import { inputType, SettingField, useSettingText } from "#panel/web/forms/setting-field.tsx";
import { useEdit } from "#panel/web/forms/use-edit.tsx";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell } from "#panel/web/parts/tell.ts";
import { queries } from "#panel/web/queries.ts";
import { isShadow } from "./choices.ts";
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
  const { version, webhookV1 } = channel;
  const own = Object.fromEntries(FIELDS.map(({ name }) => [name, channel[name]])) as Settings;
  const { url, acknowledgement } = webhookV1 ?? NO_WEBHOOK;
  const reread = async () => {
    await queries.invalidateQueries({ queryKey: ["channels"] });
    await queries.invalidateQueries({ queryKey: ["companies"] });
  };
  const { webhookV1: _, ...plain } = own;
  const edit = useEdit({
    initial: { ...plain, url, acknowledgement },
    version,
    send: (values, { url: newUrl, acknowledgement: newText, ...touched }, match) => {
      const hook = values.url === "" ? null : pick(values);
      const isHookTouched = newUrl !== undefined || newText !== undefined;
      return call("patch", "/panel/api/channels/:channelCode", {
        params: { channelCode: channel.code },
        body: { ...touched, ...(isHookTouched && { webhookV1: hook }) },
        match,
      });
    },
    async onDone() {
      tell(t.common.saved);
      await reread();
    },
    reread,
  });
  const { inputOf, values } = edit;
  return (
    <EditForm edit={edit}>
      {FIELDS.map(({ name, ...field }) =>
        name === "webhookV1" ? (
          <Fragment key={name}>
            <TextInput
              label={t.merchants.webhookV1Url}
              description={t.merchants.channelSettings.webhookV1.hint}
              {...inputOf("url", { path: "webhookV1.url" })}
            />
            {values.url !== "" && (
              <TextInput
                label={t.merchants.acknowledgement}
                {...inputOf("acknowledgement", { path: "webhookV1.acknowledgement" })}
              />
            )}
          </Fragment>
        ) : (
          <SettingField
            key={name}
            field={{ name, ...field }}
            words={t.merchants.channelSettings[name]}
            input={inputOf(name, { type: inputType(field) })}
          />
        ),
      )}
    </EditForm>
  );
}

function pick({ url, acknowledgement }: typeof NO_WEBHOOK) {
  return { url, acknowledgement };
}

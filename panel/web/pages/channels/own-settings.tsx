/** The channel's name, its language, what is switched on for it, and webhooks v1. */
import { Select, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
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
import { isShadow, languageChoices, languageName } from "./choices.ts";
import { useMayChange } from "./use-may-change.ts";

const ACKNOWLEDGEMENT = '{"result":"OK"}';

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
  const { t, language } = useText();
  const stateOf = (isOn: boolean) => (isOn ? t.merchants.on : t.merchants.off);
  return (
    <Stack>
      <Facts
        rows={[
          [t.merchants.name, channel.name],
          [t.merchants.mailLanguage, languageName(channel.language, language)],
          [t.merchants.trackingPage, stateOf(channel.trackingPage)],
          [t.merchants.addressCheckSwitch, stateOf(channel.addressCheck)],
          [t.merchants.webhookV1, channel.webhookV1?.url ?? "–"],
        ]}
      />
      <Text size="sm" c="dimmed">
        {isShadow(channel.code) ? t.merchants.shadowSettings : t.merchants.askOperators}
      </Text>
    </Stack>
  );
}

function OwnSettingsForm({ channel }: OwnSettingsProps) {
  const { t, language } = useText();
  const { name, trackingPage, addressCheck, webhookV1 } = channel;
  const form = useForm({
    initialValues: {
      name,
      language: channel.language,
      trackingPage,
      addressCheck,
      url: webhookV1?.url ?? "",
      acknowledgement: webhookV1?.acknowledgement ?? ACKNOWLEDGEMENT,
    },
  });
  const saving = useAction({
    mutationFn: ({ url, acknowledgement, ...own }: typeof form.values) =>
      call("patch", "/panel/api/channels/:channelCode", {
        params: { channelCode: channel.code },
        body: { ...own, webhookV1: url === "" ? null : { url, acknowledgement } },
      }),
    onError: tellProblem,
    async onSuccess() {
      tell(t.common.saved);
      await queries.invalidateQueries({ queryKey: ["channels"] });
      await queries.invalidateQueries({ queryKey: ["companies"] });
    },
  });
  return (
    <form onSubmit={form.onSubmit((values) => saving.mutate(values))}>
      <Stack>
        <TextInput
          label={t.merchants.name}
          maxLength={255}
          required
          {...form.getInputProps("name")}
          error={faultOf(saving.error, "name")}
        />
        <Select
          label={t.merchants.mailLanguage}
          data={languageChoices(language)}
          searchable
          allowDeselect={false}
          {...form.getInputProps("language")}
        />
        <Switch
          label={t.merchants.trackingPage}
          description={t.merchants.trackingPageHint}
          {...form.getInputProps("trackingPage", { type: "checkbox" })}
        />
        <Switch
          label={t.merchants.addressCheckSwitch}
          description={t.merchants.addressCheckHint}
          {...form.getInputProps("addressCheck", { type: "checkbox" })}
        />
        <TextInput
          label={t.merchants.webhookV1Url}
          description={t.merchants.webhookV1Hint}
          {...form.getInputProps("url")}
          error={faultOf(saving.error, "webhookV1.url")}
        />
        {form.values.url !== "" && (
          <TextInput
            label={t.merchants.acknowledgement}
            {...form.getInputProps("acknowledgement")}
            error={faultOf(saving.error, "webhookV1.acknowledgement")}
          />
        )}
        <SaveButton isPending={saving.isPending} />
      </Stack>
    </form>
  );
}

/** Settings of a channel: who sends its parcels, and how many requests it may make. */
import { NumberInput, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { EditForm } from "#panel/web/forms/edit-form.tsx";
import { useEdit } from "#panel/web/forms/use-edit.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { OwnSettings } from "./own-settings.tsx";
import { useChannelEnds } from "./use-channel-ends.ts";
import { useMayChange } from "./use-may-change.ts";

const SENDER = [
  ...["businessName", "referent", "street", "city", "state", "postcode", "country"],
  ...["email", "phone", "code"],
] as const;
const LARGEST = 10_000_000;

interface ChannelProps {
  readonly channel: Channel;
}

export function ChannelSettings({ channel }: ChannelProps) {
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
      <Stack gap="lg">
        <OwnSettings channel={channel} />
        <RateLimit channel={channel} />
      </Stack>
      <Sender channel={channel} />
    </SimpleGrid>
  );
}

function Sender({ channel }: ChannelProps) {
  const { t } = useText();
  const mayChange = useMayChange("shipping:write", channel.code);
  const known = channel.sender ?? {};
  const initial = Object.fromEntries(SENDER.map((name) => [name, String(known[name] ?? "")]));
  const edit = useEdit({
    initial,
    version: channel.version,
    send: async (values: Readonly<Record<string, string>>, _, match) => {
      const body = Object.fromEntries(Object.entries(values).filter(([, text]) => text !== ""));
      const path = "/panel/api/channels/:channelCode/sender" as const;
      const params = { channelCode: channel.code };
      if (Object.keys(body).length > 0) await call("put", path, { params, body, match });
      else await call("delete", path, { params, match });
    },
    ...useChannelEnds(channel.code),
  });
  return (
    <Section title={t.merchants.sender} lead={t.merchants.senderLead}>
      <EditForm edit={edit} mayChange={mayChange}>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          {SENDER.map((name) => (
            <TextInput
              key={name}
              label={t.merchants.senderFields[name as keyof typeof t.merchants.senderFields]}
              maxLength={name === "postcode" ? 16 : 255}
              readOnly={!mayChange}
              {...edit.inputOf(name)}
            />
          ))}
        </SimpleGrid>
      </EditForm>
    </Section>
  );
}

function RateLimit({ channel }: ChannelProps) {
  const { t } = useText();
  const f = useFormat();
  const mayChange = useMayChange("channels:write", channel.code);
  const { bucketSize, refillRate } = channel.rateLimit;
  return (
    <Section title={t.merchants.allowance} lead={t.merchants.allowanceLead}>
      {mayChange ? (
        <RateLimitForm channel={channel} />
      ) : (
        <Stack>
          <Facts
            rows={[
              [t.merchants.bucketSize, f.whole(bucketSize)],
              [t.merchants.refillRate, f.whole(refillRate)],
            ]}
          />
          <Text size="sm" c="dimmed">
            {t.merchants.allowanceMore}
          </Text>
        </Stack>
      )}
    </Section>
  );
}

function RateLimitForm({ channel }: ChannelProps) {
  const { t } = useText();
  const edit = useEdit({
    initial: channel.rateLimit,
    version: channel.version,
    send: (_, body, match) =>
      call("put", "/panel/api/channels/:channelCode/rate-limit", {
        params: { channelCode: channel.code },
        body,
        match,
      }),
    ...useChannelEnds(channel.code),
  });
  return (
    <EditForm edit={edit}>
      {(["bucketSize", "refillRate"] as const).map((name) => (
        <NumberInput
          key={name}
          label={t.merchants[name]}
          min={1}
          max={LARGEST}
          allowDecimal={false}
          required
          {...edit.inputOf(name)}
        />
      ))}
    </EditForm>
  );
}

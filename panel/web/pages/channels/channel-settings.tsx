/** Settings of a channel: who sends its parcels, and how many requests it may make. */
import { NumberInput, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { faultOf } from "#panel/web/parts/fault-of.ts";
import { SaveButton } from "#panel/web/parts/save-button.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { queries } from "#panel/web/queries.ts";
import { OwnSettings } from "./own-settings.tsx";
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
  const form = useForm({ initialValues: initial });
  const saving = useAction({
    mutationFn: (values: Record<string, string>) => {
      const body = Object.fromEntries(Object.entries(values).filter(([, text]) => text !== ""));
      const path = "/panel/api/channels/:channelCode/sender" as const;
      const params = { channelCode: channel.code };
      if (Object.keys(body).length > 0) return call("put", path, { params, body });
      return channel.sender ? call("delete", path, { params }) : Promise.resolve(null);
    },
    async onSuccess() {
      tell(t.common.saved);
      await queries.invalidateQueries({ queryKey: ["channels", channel.code] });
    },
  });
  return (
    <Section title={t.merchants.sender} lead={t.merchants.senderLead}>
      <form onSubmit={form.onSubmit((values) => saving.mutate(values))}>
        <Stack>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            {SENDER.map((name) => (
              <TextInput
                key={name}
                label={t.merchants.senderFields[name as keyof typeof t.merchants.senderFields]}
                maxLength={name === "postcode" ? 16 : 255}
                readOnly={!mayChange}
                {...form.getInputProps(name)}
                error={faultOf(saving.error, name)}
              />
            ))}
          </SimpleGrid>
          {mayChange && <SaveButton isPending={saving.isPending} />}
        </Stack>
      </form>
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
  const { bucketSize, refillRate } = channel.rateLimit;
  const form = useForm({ initialValues: { bucketSize, refillRate } });
  const saving = useAction({
    mutationFn: (body: typeof form.values) =>
      call("put", "/panel/api/channels/:channelCode/rate-limit", {
        params: { channelCode: channel.code },
        body,
      }),
    onError: tellProblem,
    async onSuccess() {
      tell(t.common.saved);
      await queries.invalidateQueries({ queryKey: ["channels", channel.code] });
    },
  });
  return (
    <form onSubmit={form.onSubmit((values) => saving.mutate(values))}>
      <Stack>
        {(["bucketSize", "refillRate"] as const).map((name) => (
          <NumberInput
            key={name}
            label={t.merchants[name]}
            min={1}
            max={LARGEST}
            allowDecimal={false}
            required
            {...form.getInputProps(name)}
            error={faultOf(saving.error, name)}
          />
        ))}
        <SaveButton isPending={saving.isPending} />
      </Stack>
    </form>
  );
}

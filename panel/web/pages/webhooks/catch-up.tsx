/** After an outage: the failed deliveries of a window once more, or only the latest of each shipment. */
import {
  Alert,
  Button,
  Code,
  CopyButton,
  Group,
  Radio,
  SimpleGrid,
  Stack,
  Text,
} from "@mantine/core";
import { DateTimePicker } from "@mantine/dates";
import { IconRefresh } from "@tabler/icons-react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Endpoint, ReplayState } from "#panel/web/api/routes.ts";
import type { Messages } from "#panel/web/i18n/en.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";

const DAY_MS = 86_400_000;
const ASK_EVERY_MS = 1_000;

type Mode = "latest_per_shipment" | "each";

export function CatchUp({ endpoint }: { readonly endpoint: Endpoint }) {
  const { t } = useText();
  const { endpointId, failingSince, disabledSince } = endpoint;
  const [from, setFrom] = useState<Date>(
    () => new Date(failingSince ?? disabledSince ?? Date.now() - DAY_MS),
  );
  const [to, setTo] = useState<Date>(() => new Date());
  const [mode, setMode] = useState<Mode>("latest_per_shipment");
  const body = { from: from.toISOString(), to: to.toISOString(), mode };
  const replaying = useMutation({
    mutationFn: () =>
      call("post", "/panel/api/webhooks/:endpointId/replay", { params: { endpointId }, body }),
  });
  const isOff = endpoint.status === "disabled";
  return (
    <Section title={t.webhooks.sendAgain} lead={t.webhooks.sendAgainLead}>
      <Stack>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <DateTimePicker
            label={t.common.from}
            value={from}
            onChange={(value) => value && setFrom(new Date(value))}
          />
          <DateTimePicker
            label={t.common.to}
            value={to}
            onChange={(value) => value && setTo(new Date(value))}
          />
        </SimpleGrid>
        <Radio.Group
          label={t.webhooks.mode}
          value={mode}
          onChange={(value) => setMode(value as Mode)}
        >
          <Stack gap="xs" mt="xs">
            <Radio
              value="latest_per_shipment"
              label={t.webhooks.modeLatest}
              description={t.webhooks.modeLatestText}
            />
            <Radio value="each" label={t.webhooks.modeEach} description={t.webhooks.modeEachText} />
          </Stack>
        </Radio.Group>
        {isOff && <Alert color="yellow">{t.webhooks.enableFirst}</Alert>}
        <ProblemNote error={replaying.error} />
        <Group>
          <Button
            leftSection={<IconRefresh size={16} aria-hidden />}
            disabled={isOff}
            loading={replaying.isPending}
            onClick={() => replaying.mutate()}
          >
            {t.webhooks.sendAgain}
          </Button>
        </Group>
        {replaying.data && <ReplayProgress replay={replaying.data} />}
        <PullCall from={body.from} />
      </Stack>
    </Section>
  );
}

function ReplayProgress({ replay }: { readonly replay: ReplayState }) {
  const { t } = useText();
  const f = useFormat();
  const { endpointId, replayId } = replay;
  const { data = replay } = useQuery({
    queryKey: ["webhooks", endpointId, "replays", replayId],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/webhooks/:endpointId/replays/:replayId", {
        params: { endpointId, replayId },
        signal,
      }),
    refetchInterval: ({ state }) => (state.data?.state === "running" ? ASK_EVERY_MS : false),
    initialData: replay,
  });
  return (
    <Alert
      role="status"
      color={data.state === "running" ? "blue" : "teal"}
      title={t.webhooks.replayStates[data.state as keyof Messages["webhooks"]["replayStates"]]}
    >
      {t.webhooks.replayed(f.whole(data.queued), f.whole(data.passedOver))}
    </Alert>
  );
}

/** For those who would rather ask: document 1's reconciliation. */
function PullCall({ from }: { readonly from: string }) {
  const { t } = useText();
  const f = useFormat();
  const after = encodeURIComponent(f.romeText(from));
  const line = `GET /v2/shipments?updatedAfter=${after}&sortBy=updatedAt_asc&limit=100`;
  return (
    <Stack gap={4}>
      <Text size="sm">{t.webhooks.pull}</Text>
      <Group gap="xs" wrap="nowrap">
        <Code block className="break" style={{ flex: 1 }} tabIndex={0} aria-label={t.webhooks.pull}>
          {line}
        </Code>
        <CopyButton value={line}>
          {({ copied, copy }) => (
            <Button variant="default" size="xs" onClick={copy}>
              {copied ? t.common.copied : t.common.copy}
            </Button>
          )}
        </CopyButton>
      </Group>
    </Stack>
  );
}

/** After an outage: what was missed, sent again as the latest of each shipment or each, or asked for by the merchant. */
import {
  Alert,
  Button,
  Code,
  CopyButton,
  Group,
  Radio,
  SimpleGrid,
  Skeleton,
  Stack,
  Text,
} from "@mantine/core";
import { DateTimePicker } from "@mantine/dates";
import { IconCheck, IconCopy, IconRefresh } from "@tabler/icons-react";
import { useMutation, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { parseRomeDateTime, romeDateTime } from "#core/domain/time/rome-time.ts";
import { call } from "#panel/web/api/call.ts";
import type { Endpoint, Missed, ReplayState } from "#panel/web/api/routes.ts";
import type { Messages } from "#panel/web/i18n/en.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { meQuery, queries } from "#panel/web/queries.ts";
import { MissedText } from "./outage-note.tsx";
import { missedQuery } from "./queries.ts";

const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;
const ASK_EVERY_MS = 1_000;

type Mode = "latest_per_shipment" | "each";

interface CatchUpProps {
  readonly endpoint: Endpoint;
  /** The one that was begun on this page. */
  readonly replay: ReplayState | null;
  readonly onReplay: (replay: ReplayState) => void;
}

export function CatchUp({ endpoint, replay, onReplay }: CatchUpProps) {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const { data: missed, error } = useQuery(missedQuery(endpoint.endpointId));
  if (!missed) return error ? <ProblemNote error={error} /> : <Skeleton h={280} />;
  const { from, shipmentsBehind, pullCall } = missed;
  return (
    <Section title={t.webhooks.sendAgain} lead={t.webhooks.sendAgainLead}>
      <Stack>
        {from === null && <Text size="sm">{t.webhooks.nothingMissed}</Text>}
        {/* Otherwise the note above the tabs says it. */}
        {from !== null && shipmentsBehind === 0 && <MissedText missed={missed} />}
        {capabilities.includes("webhooks:replay") && (
          <CatchUpForm endpoint={endpoint} missed={missed} onReplay={onReplay} />
        )}
        {replay && <ReplayProgress replay={replay} />}
        {pullCall !== null && <PullCall line={pullCall} />}
      </Stack>
    </Section>
  );
}

interface CatchUpFormProps {
  readonly endpoint: Endpoint;
  readonly missed: Missed;
  readonly onReplay: (replay: ReplayState) => void;
}

function CatchUpForm({ endpoint, missed, onReplay }: CatchUpFormProps) {
  const { t } = useText();
  const { endpointId } = endpoint;
  const [first] = useState(() => windowOf(missed));
  const [from, setFrom] = useState(first.from);
  const [to, setTo] = useState(first.to);
  const [mode, setMode] = useState<Mode>("latest_per_shipment");
  const replaying = useMutation({
    mutationFn: () =>
      call("post", "/panel/api/webhooks/:endpointId/replay", {
        params: { endpointId },
        body: { from: instantOf(from), to: instantOf(to), mode },
      }),
    onSuccess: onReplay,
  });
  const isOff = endpoint.status === "disabled";
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DateTimePicker
          label={t.common.from}
          description={t.common.romeTime}
          value={from}
          withSeconds
          onChange={(value) => value && setFrom(value)}
        />
        <DateTimePicker
          label={t.common.to}
          description={t.common.romeTime}
          value={to}
          withSeconds
          onChange={(value) => value && setTo(value)}
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
    </>
  );
}

/** Of Rome, as the pickers show it: all that was missed, or the last day. Missed ones are to the millisecond. */
function windowOf({ from, to }: Missed) {
  const toMs = to === null ? Date.now() : Date.parse(to) + SECOND_MS;
  const fromMs = from === null ? toMs - DAY_MS : Date.parse(from);
  return { from: romeDateTime(fromMs), to: romeDateTime(toMs) };
}

/** Of a time that exists twice the earlier one, as everywhere. */
function instantOf(romeText: string): string {
  return new Date(parseRomeDateTime(romeText) ?? Number.NaN).toISOString();
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
  const isRunning = data.state === "running";
  useEffect(() => {
    if (isRunning) return;
    for (const about of ["missed", "deliveries", "stats"]) {
      void queries.invalidateQueries({ queryKey: ["webhooks", endpointId, about] });
    }
  }, [isRunning, endpointId]);
  return (
    <Alert
      role="status"
      color={isRunning ? "blue" : "teal"}
      title={t.webhooks.replayStates[data.state as keyof Messages["webhooks"]["replayStates"]]}
    >
      {t.webhooks.replayed(f.whole(data.queued), f.whole(data.passedOver))}
    </Alert>
  );
}

/** For those who would rather ask: document 1's reconciliation. */
function PullCall({ line }: { readonly line: string }) {
  const { t } = useText();
  return (
    <Stack gap={4}>
      <Text size="sm">{t.webhooks.pull}</Text>
      <Group gap="xs" align="start">
        <Code
          block
          className="break"
          flex="1 1 240px"
          style={{ whiteSpace: "pre-wrap" }}
          tabIndex={0}
          aria-label={t.webhooks.pull}
        >
          {line}
        </Code>
        <CopyButton value={line}>
          {({ copied, copy }) => (
            <Button
              variant="default"
              size="xs"
              onClick={copy}
              leftSection={
                copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />
              }
            >
              {copied ? t.common.copied : t.common.copy}
            </Button>
          )}
        </CopyButton>
      </Group>
    </Stack>
  );
}

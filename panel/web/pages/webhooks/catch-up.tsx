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
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { parseRomeDateTime, romeDateTime } from "#core/platform/time/rome-time.ts";
import { call } from "#panel/web/api/call.ts";
import type { Endpoint, Missed } from "#panel/web/api/routes.ts";
import type { Messages } from "#panel/web/i18n/en.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Confirm } from "#panel/web/parts/confirm.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries } from "#panel/web/queries.ts";
import { MissedText } from "./outage-note.tsx";
import { missedQuery, replaysQuery } from "./queries.ts";
import { ReplayTable } from "./replays.tsx";

const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;

type Mode = "latest_per_shipment" | "each";

interface CatchUpProps {
  readonly endpoint: Endpoint;
}

export function CatchUp({ endpoint }: CatchUpProps) {
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
          <CatchUpForm endpoint={endpoint} missed={missed} />
        )}
        <ReplayTable endpointId={endpoint.endpointId} />
        {pullCall !== null && <PullCall line={pullCall} />}
      </Stack>
    </Section>
  );
}

interface CatchUpFormProps {
  readonly endpoint: Endpoint;
  readonly missed: Missed;
}

function CatchUpForm({ endpoint, missed }: CatchUpFormProps) {
  const { t } = useText();
  const f = useFormat();
  const { endpointId } = endpoint;
  const [first] = useState(() => windowOf(missed));
  const [from, setFrom] = useState(first.from);
  const [to, setTo] = useState(first.to);
  const [mode, setMode] = useState<Mode>("latest_per_shipment");
  const path = "/panel/api/webhooks/:endpointId/replay";
  const bodyOf = () => ({ from: instantOf(from), to: instantOf(to), mode });
  const counting = useAction({
    mutationFn: () =>
      call("post", path, {
        params: { endpointId },
        query: { preview: "true" },
        body: bodyOf(),
      }),
  });
  const replaying = useAction({
    mutationFn: () => call("post", path, { params: { endpointId }, body: bodyOf() }),
    async onSuccess() {
      counting.reset();
      await queries.invalidateQueries({ queryKey: replaysQuery(endpointId).queryKey });
    },
  });
  const counted = counting.data && "preview" in counting.data ? counting.data.preview : null;
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
      <ProblemNote error={counting.error ?? replaying.error} />
      <Group>
        <Button
          leftSection={<IconRefresh size={16} aria-hidden />}
          disabled={isOff}
          loading={counting.isPending}
          onClick={() => counting.mutate()}
        >
          {t.webhooks.sendAgain}
        </Button>
      </Group>
      <Confirm
        opened={counted !== null}
        title={t.webhooks.sendAgain}
        text={counted ? countText(t, f, counted, mode) : ""}
        action={t.webhooks.sendAgain}
        isPending={replaying.isPending}
        onConfirm={() => replaying.mutate()}
        onClose={() => counting.reset()}
      />
    </>
  );
}

interface Counted {
  readonly deliveries: number;
  readonly shipments: number;
  readonly isComplete: boolean;
}

/** How many will be sent, before they are. */
function countText(
  { webhooks: words }: Messages,
  f: ReturnType<typeof useFormat>,
  { deliveries, shipments, isComplete }: Counted,
  mode: Mode,
): string {
  const about = `${isComplete ? "" : "≥ "}${f.whole(shipments)}`;
  return mode === "each"
    ? words.willSendEach(f.whole(deliveries), about)
    : words.willSendLatest(about, f.whole(deliveries));
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

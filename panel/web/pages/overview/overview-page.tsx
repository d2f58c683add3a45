/** What comes in, what goes out and what waits, as it happens. */
import { Alert, Badge, Grid, SimpleGrid, Stack } from "@mantine/core";
import type { Overview } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { PagePending } from "#panel/web/parts/page-pending.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { AlarmList } from "./alarm-list.tsx";
import { CourierHours } from "./courier-hours.tsx";
import { OutcomeChart, RateChart } from "./overview-charts.tsx";
import { ConsumerTable, LedgerTable, StoreList } from "./overview-tables.tsx";
import { PartitionTable } from "./partition-table.tsx";
import { Pipeline } from "./pipeline.tsx";
import { Stat } from "./stat.tsx";
import { type Reading, useOverview } from "./use-overview.ts";

/** Below that, something is wrong with receivers. */
const GOOD_SUCCESS = 0.9;

export function OverviewPage() {
  const { t } = useText();
  const f = useFormat();
  const { overview, history, error, refetch, lateSeconds } = useOverview();
  const isLive = !error && lateSeconds === null;
  return (
    <>
      <PageHead title={t.overview.title} lead={t.overview.lead}>
        {overview && overview.missing.length > 0 && (
          <Badge color="orange">{t.overview.incomplete}</Badge>
        )}
        <Badge variant="dot" color={isLive ? "teal" : "red"} role="status">
          {isLive ? t.overview.live : t.overview.notLive(f.duration(lateSeconds ?? 0))}
        </Badge>
      </PageHead>
      {error && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {overview ? <Board overview={overview} history={history} /> : !error && <PagePending />}
    </>
  );
}

interface BoardProps {
  readonly overview: Overview;
  readonly history: readonly Reading[];
}

function Board({ overview, history }: BoardProps) {
  const { t } = useText();
  return (
    <Stack gap="lg">
      <MissingNote missing={overview.missing} />
      <AlarmList overview={overview} />
      <Figures overview={overview} />
      <Section title={t.overview.pipeline} lead={t.overview.pipelineText}>
        <Pipeline overview={overview} />
      </Section>
      <CourierHours />
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
        <Section title={t.overview.rate}>
          <RateChart history={history} />
        </Section>
        <Section title={t.overview.outcomes}>
          <OutcomeChart ledger={overview.ledger} />
        </Section>
      </SimpleGrid>
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <Section title={t.overview.lag}>
            <ConsumerTable lag={overview.lag} />
          </Section>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Stack gap="lg">
            <LedgerTable ledger={overview.ledger} />
            <StoreList stores={overview.stores} />
          </Stack>
        </Grid.Col>
      </Grid>
      <Section title={t.overview.partitions} lead={t.overview.partitionsText}>
        <PartitionTable />
      </Section>
    </Stack>
  );
}

function MissingNote({ missing }: Pick<Overview, "missing">) {
  const { t } = useText();
  if (missing.length === 0) return null;
  return (
    <Alert color="orange" title={t.overview.incompleteTitle}>
      {t.overview.incompleteText(missing.join(", "))}
    </Alert>
  );
}

function Figures({ overview }: { readonly overview: Overview }) {
  const { t } = useText();
  const f = useFormat();
  const { rates, ledger, lag, queues, webhooks } = overview;
  const { succeededPerMinute, failedPerMinute } = webhooks;
  const finished = succeededPerMinute + failedPerMinute;
  const success = finished === 0 ? null : succeededPerMinute / finished;
  const oldest = Math.max(0, ...lag.map(({ seconds }) => seconds));
  const dead = queues.deadLetters;
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
      <Stat
        label={t.overview.accepted}
        to="/inbox"
        value={f.rate(rates.acceptedPerSecond)}
        note={t.overview.perSecond}
      />
      <Stat
        label={t.overview.applied}
        value={f.rate(rates.appliedPerSecond)}
        note={t.overview.perSecond}
      />
      <Stat
        label={t.overview.eventQueue}
        value={f.compact(queues.eventLog)}
        note={t.overview.eventQueueNote}
      />
      <Stat
        label={t.overview.changeQueue}
        value={f.compact(queues.changeLog)}
        note={t.overview.changeQueueNote(f.duration(oldest))}
      />
      <Stat
        label={t.overview.webhookSuccess}
        to="/webhooks"
        value={f.percent(success)}
        note={t.overview.webhookRates(f.rate(succeededPerMinute), f.rate(failedPerMinute))}
        {...(success !== null && success < GOOD_SUCCESS && { color: "red" })}
      />
      <Stat
        label={t.overview.pending}
        to="/webhooks"
        value={f.compact(ledger.pending)}
        note={t.overview.pendingNote}
      />
      <Stat
        label={t.overview.oldestWebhook}
        to="/webhooks"
        value={f.duration(webhooks.oldestWaitingSeconds)}
        note={t.overview.failingEndpoints(f.whole(webhooks.failingEndpoints))}
      />
      <Stat
        label={t.overview.deadLetters}
        to="/dead-letters"
        value={f.whole(dead)}
        note={dead === 0 ? t.overview.deadLettersNone : t.overview.deadLettersSome}
        {...(dead > 0 && { color: "red" })}
      />
    </SimpleGrid>
  );
}

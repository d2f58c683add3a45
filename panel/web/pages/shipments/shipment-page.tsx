/** One shipment: its state, everything that couriers told of it, and what was told to the merchant or not, and why. */
import { Anchor, Breadcrumbs, Card, Grid, Group, Stack, Text, Title } from "@mantine/core";
import { keepPreviousData, queryOptions, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { call } from "#panel/web/api/call.ts";
import type { Trace } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";
import { AsOfSlider, useAsOf } from "./as-of-slider.tsx";
import { EraseRecipient } from "./erase-recipient.tsx";
import { detailQuery, ShipmentDetails } from "./shipment-detail.tsx";
import { ShipmentTimeline } from "./shipment-timeline.tsx";

/** More than a history keeps. */
const EVENTS_SHOWN = 1_000;
const ASK_EVERY_MS = 5_000;

const traceQuery = (id: string) =>
  queryOptions({
    queryKey: ["shipments", id, "trace"],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/shipments/:id/trace", {
        params: { id },
        query: { limit: EVENTS_SHOWN },
        signal,
      }),
    refetchInterval: ASK_EVERY_MS,
  });

/** What was known at an earlier time is asked for once: nothing is added to it. */
const earlierQuery = (id: string, asOf: string) =>
  queryOptions({
    queryKey: ["shipments", id, "trace", asOf],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/shipments/:id/trace", {
        params: { id },
        query: { limit: EVENTS_SHOWN, asOf },
        signal,
      }),
    placeholderData: keepPreviousData,
  });

export function ShipmentPage() {
  const { t } = useText();
  const { id = "" } = useParams({ strict: false });
  const [asOf, showAsOf] = useAsOf();
  const latest = useSuspenseQuery(traceQuery(id)).data;
  const earlier = useQuery({ ...earlierQuery(id, asOf ?? ""), enabled: asOf !== null });
  const trace = asOf === null ? latest : (earlier.data ?? latest);
  return (
    <>
      <Breadcrumbs mb="xs">
        <Anchor component={Link} to="/shipments" size="sm">
          {t.shipments.title}
        </Anchor>
      </Breadcrumbs>
      <PageHead
        title={trace.trackingNumber}
        lead={
          <Group gap="xs">
            <StatusBadge status={trace.current.status} detail={trace.current.detail} />
            <span>{trace.courier}</span>
          </Group>
        }
      >
        <EraseRecipient id={String(trace.shipmentId)} />
      </PageHead>
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <Section title={t.shipments.timeline} lead={t.shipments.timelineLead}>
            <AsOfSlider trace={latest} asOf={asOf} onShow={showAsOf} />
            {asOf !== null && <ProblemNote error={earlier.error} />}
            <ShipmentTimeline trace={trace} />
          </Section>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <Stack gap="lg">
            <ShipmentFacts trace={trace} />
            <NumbersCard trace={trace} />
            <ShipmentDetails id={String(trace.shipmentId)} />
          </Stack>
        </Grid.Col>
      </Grid>
    </>
  );
}

function ShipmentFacts({ trace }: { readonly trace: Trace }) {
  const { t } = useText();
  const f = useFormat();
  const { data: detail } = useQuery(detailQuery(String(trace.shipmentId)));
  return (
    <Section title={t.shipments.facts}>
      <Facts
        rows={[
          [t.shipments.id, String(trace.shipmentId)],
          [t.shipments.reference, detail?.reference ?? "–"],
          [t.shipments.shipDate, f.date(detail?.shipDate)],
          [t.shipments.trackingPage, <TrackingLink key="page" url={detail?.trackingUrl} />],
          [t.shipments.channel, trace.channel],
          [t.shipments.courier, trace.courier],
          [t.shipments.createdAt, <Instant key="created" at={trace.createdAt} precise />],
          [t.shipments.updatedAt, <Instant key="updated" at={trace.statusUpdatedAt} precise />],
          [t.shipments.events, String(trace.total)],
          [t.shipments.unmapped, String(trace.unmappedEvents)],
        ]}
      />
    </Section>
  );
}

function TrackingLink({ url }: { readonly url: string | null | undefined }) {
  const { t } = useText();
  if (!url) return <>–</>;
  return (
    <Anchor href={url} target="_blank" rel="noreferrer" inherit>
      {t.shipments.openPage}
    </Anchor>
  );
}

function NumbersCard({ trace }: { readonly trace: Trace }) {
  const { t } = useText();
  const numbers = [...new Set([trace.trackingNumber, ...trace.aliases])];
  return (
    <Card component="section" aria-label={t.shipments.numbers} padding="md">
      <Title order={2} size="h4" mb="xs">
        {t.shipments.numbers}
      </Title>
      <Stack gap={4}>
        {numbers.map((number) => (
          <Text key={number} className="mono break">
            {number}
          </Text>
        ))}
      </Stack>
    </Card>
  );
}

/** A merchant's first page: what needs them today, and how their couriers and webhooks are doing. */
import { Anchor, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Tone } from "#panel/web/charts/series.ts";
import { SharesChart } from "#panel/web/charts/shares-chart.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Stat } from "#panel/web/pages/overview/stat.tsx";
import { WebhookPicture } from "#panel/web/pages/webhooks/webhook-picture.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { PagePending } from "#panel/web/parts/page-pending.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";
import { type Home, homeQuery } from "#panel/web/picture-queries.ts";
import { meQuery } from "#panel/web/queries.ts";

/** What a person has to deal with, or a recipient. */
const TO_ACT_ON = ["EXCEPTION", "FAILED_ATTEMPT", "DELAY"];
/** The last group of the ages: no news for a week. */
const STUCK_DAYS = 7;

export function HomePage() {
  const { t } = useText();
  const { companyCode } = useSuspenseQuery(meQuery).data;
  const { data, error } = useQuery({
    ...homeQuery(companyCode ?? ""),
    enabled: companyCode !== null,
  });
  return (
    <>
      <PageHead title={t.home.title} lead={t.home.lead} />
      <Stack gap="lg">
        <ProblemNote error={error} />
        {!data && !error && <PagePending />}
        {data && <Board home={data} />}
        <WebhookPicture />
      </Stack>
    </>
  );
}

function Board({ home }: { readonly home: Home }) {
  const { t } = useText();
  const f = useFormat();
  const sumOf = (statuses: readonly string[] | null, from: number) =>
    home.ages
      .filter(({ status }) => statuses === null || statuses.includes(status))
      .reduce((sum, { counts }) => sum + counts.slice(from).reduce((all, one) => all + one, 0), 0);
  const stuck = sumOf(null, AGES_FROM_STUCK);
  const troubled = sumOf(TO_ACT_ON, 0);
  return (
    <>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
        <Stat
          label={t.home.late}
          value={f.whole(home.lateTotal)}
          note={t.home.ofCompared(f.whole(home.compared))}
          {...(home.lateTotal > 0 && { color: "orange" })}
        />
        <Stat
          label={t.home.stuck}
          value={f.whole(stuck)}
          note={t.home.stuckNote}
          to="/shipments"
          search={{ quietDays: String(STUCK_DAYS), sort: "updated" }}
          {...(stuck > 0 && { color: "orange" })}
        />
        <Stat
          label={t.home.exceptions}
          value={f.whole(troubled)}
          note={t.home.exceptionsNote}
          to="/shipments"
          search={{ status: TO_ACT_ON.join(",") }}
          {...(troubled > 0 && { color: "red" })}
        />
        <Stat
          label={t.home.underWay}
          value={f.whole(sumOf(null, 0))}
          note={t.home.underWayNote}
          to="/shipments"
        />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
        <LateParcels home={home} />
        <Ages ages={home.ages} />
      </SimpleGrid>
      <Couriers couriers={home.couriers} />
    </>
  );
}

const AGES_FROM_STUCK = 3;
const AGE_TONES: readonly Tone[] = ["teal", "indigo", "yellow", "red"];

function LateParcels({ home: { late, lateTotal } }: { readonly home: Home }) {
  const { t } = useText();
  const f = useFormat();
  return (
    <Section title={t.home.lateTitle} lead={t.home.lateLead}>
      {late.length === 0 && <Text c="dimmed">{t.home.noneLate}</Text>}
      {late.length > 0 && (
        <ScrollTable label={t.home.lateTitle} minWidth={480} narrow="figures">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t.shipments.number}</Table.Th>
              <Table.Th>{t.shipments.status}</Table.Th>
              <Table.Th ta="right">{t.home.days}</Table.Th>
              <Table.Th ta="right">{t.home.usual}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody className="figures">
            {late.map((one) => (
              <Table.Tr key={one.id}>
                <Table.Th scope="row">
                  <Anchor component={Link} to={`/shipments/${one.id}`} size="sm" className="break">
                    {one.trackingNumber}
                  </Anchor>
                  <Text size="xs" c="dimmed">
                    {one.courier}
                  </Text>
                </Table.Th>
                <Table.Td>
                  <StatusBadge status={one.status} detail={one.statusDetail} />
                </Table.Td>
                <Table.Td ta="right">{f.whole(one.days)}</Table.Td>
                <Table.Td ta="right">
                  {t.home.usualDays(f.whole(one.p90), f.whole(one.sample))}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </ScrollTable>
      )}
      {lateTotal > late.length && (
        <Text size="sm" c="dimmed">
          {t.home.moreLate(f.whole(lateTotal - late.length))}
        </Text>
      )}
    </Section>
  );
}

function Ages({ ages }: Pick<Home, "ages">) {
  const { t } = useText();
  const f = useFormat();
  const known = new Map<string, string>(Object.entries(t.statuses));
  return (
    <Section title={t.home.ages} lead={t.home.agesLead}>
      {ages.length === 0 && <Text c="dimmed">{t.home.noneUnderWay}</Text>}
      {ages.length > 0 && (
        <SharesChart
          label={t.home.ages}
          keys={t.home.age.map((name, at) => ({ name, tone: AGE_TONES[at] ?? "gray" }))}
          rows={ages.map(({ status, counts }) => ({
            key: status,
            name: (
              <Anchor component={Link} to="/shipments" search={{ status } as never} size="sm">
                {known.get(status) ?? status}
              </Anchor>
            ),
            parts: counts,
          }))}
          write={f.whole}
          isToScale
        />
      )}
    </Section>
  );
}

function Couriers({ couriers }: Pick<Home, "couriers">) {
  const { t } = useText();
  const f = useFormat();
  return (
    <Section title={t.home.couriers} lead={t.home.couriersLead}>
      {couriers.length === 0 && <Text c="dimmed">{t.home.noDeliveries}</Text>}
      {couriers.length > 0 && (
        <ScrollTable label={t.home.couriers} minWidth={560} narrow="figures">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t.benchmarks.courier}</Table.Th>
              {[
                ...[t.benchmarks.deliveries, t.benchmarks.median, t.benchmarks.interval],
                ...[t.benchmarks.p90, t.benchmarks.mean, t.benchmarks.trouble],
              ].map((name) => (
                <Table.Th key={name} ta="right">
                  {name}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody className="figures">
            {couriers.map((row) => (
              <Table.Tr key={row.courier}>
                <Table.Th scope="row">{row.courier}</Table.Th>
                <Table.Td ta="right">{f.whole(row.deliveries)}</Table.Td>
                <Table.Td ta="right">{f.decimal(row.leadMedian)}</Table.Td>
                <Table.Td ta="right">{f.interval(row.leadMedianInterval)}</Table.Td>
                <Table.Td ta="right">{f.decimal(row.leadP90)}</Table.Td>
                <Table.Td ta="right">{f.decimal(row.leadMean)}</Table.Td>
                <Table.Td ta="right">{f.percent(row.troubleShare)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </ScrollTable>
      )}
    </Section>
  );
}

/** What a channel uses: its request budget as it stands now, and the address checks that are billed. */
import { Progress, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Channel } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { usageQuery } from "#panel/web/pages/companies/queries.ts";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";

export function Usage({ channel }: { readonly channel: Channel }) {
  const { t } = useText();
  const f = useFormat();
  const { data, error } = useQuery(usageQuery(channel.code));
  if (!data) return <ProblemNote error={error} />;
  const { requests, addressChecks } = data;
  const { remaining, bucketSize, refillRate, refillAt } = requests;
  const left = t.merchants.requestsLeft(f.whole(remaining), f.whole(bucketSize));
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
      <Section title={t.merchants.requests} lead={t.merchants.requestsLead}>
        <Stack gap="xs">
          <Text fw={650} className="figures">
            {left}
          </Text>
          <Progress value={(remaining / bucketSize) * 100} aria-label={left} />
          <Text size="sm" c="dimmed">
            {refillAt === null
              ? t.merchants.budgetFull
              : t.merchants.refillAt(f.whole(refillRate), f.second(refillAt))}
          </Text>
        </Stack>
      </Section>
      <Section title={t.merchants.addressChecks} lead={t.merchants.addressChecksLead}>
        {addressChecks.months.length === 0 ? (
          <Text size="sm" c="dimmed">
            {channel.addressCheck ? t.merchants.noChecks : t.merchants.checksOff}
          </Text>
        ) : (
          <ScrollTable label={t.merchants.addressChecks} minWidth={240} narrow="figures">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t.merchants.month}</Table.Th>
                <Table.Th ta="right">{t.merchants.checks}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody className="figures">
              {addressChecks.months.toReversed().map(({ month, checks }) => (
                <Table.Tr key={month}>
                  <Table.Th scope="row">{f.month(`${month}-15`)}</Table.Th>
                  <Table.Td ta="right">{f.whole(checks)}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
            <Table.Tfoot>
              <Table.Tr>
                <Table.Th scope="row">{t.merchants.total}</Table.Th>
                <Table.Td ta="right" fw={650}>
                  {f.whole(addressChecks.total)}
                </Table.Td>
              </Table.Tr>
            </Table.Tfoot>
          </ScrollTable>
        )}
      </Section>
    </SimpleGrid>
  );
}

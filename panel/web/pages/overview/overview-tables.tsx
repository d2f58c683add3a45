import { Badge, Group, List, Stack, Table, Text } from "@mantine/core";
import type { Lag, Overview } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";

/** Older than that, something waits that should not. */
const LATE_SECONDS = 60;

export function ConsumerTable({ lag }: { readonly lag: readonly Lag[] }) {
  const { t } = useText();
  const f = useFormat();
  return (
    <ScrollTable label={t.overview.lag} minWidth={320} narrow="figures">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t.overview.group}</Table.Th>
          <Table.Th>{t.overview.log}</Table.Th>
          <Table.Th ta="right">{t.overview.consumerRate}</Table.Th>
          <Table.Th ta="right">{t.overview.entries}</Table.Th>
          <Table.Th ta="right">{t.overview.age}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody className="figures">
        {lag.map(({ log, group, perSecond, entries, seconds }) => (
          <Table.Tr key={`${log} ${group}`}>
            <Table.Th scope="row" fw={500}>
              {group}
            </Table.Th>
            <Table.Td>{log}</Table.Td>
            <Table.Td ta="right">{f.rate(perSecond)}</Table.Td>
            <Table.Td ta="right">{f.whole(entries)}</Table.Td>
            <Table.Td ta="right">
              <Badge color={seconds > LATE_SECONDS ? "red" : "teal"}>{f.duration(seconds)}</Badge>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrollTable>
  );
}

export function LedgerTable({ ledger }: Pick<Overview, "ledger">) {
  const { t } = useText();
  const f = useFormat();
  const { difference } = ledger;
  const isBalanced = difference && Object.values(difference).every((one) => one === 0);
  const rows = [
    [t.overview.ledgerReceived, difference?.received],
    [t.overview.ledgerApplied, difference?.applied],
    [t.overview.ledgerWebhooks, difference?.webhooks],
  ] as const;
  const verdict = isBalanced ? t.overview.balanced : t.overview.unbalanced;
  return (
    <Section
      title={t.overview.ledger}
      lead={t.overview.ledgerText}
      aside={
        <Badge color={isBalanced ? "teal" : "yellow"}>
          {difference ? verdict : t.overview.notToBeTold}
        </Badge>
      }
    >
      <Stack gap={6}>
        {rows.map(([rule, own]) => (
          <Group key={rule} justify="space-between" wrap="nowrap" gap="sm">
            <Text size="sm">{rule}</Text>
            <Text size="sm" fw={600} className="figures nowrap">
              {`${t.overview.difference} ${own === undefined ? "–" : f.whole(own)}`}
            </Text>
          </Group>
        ))}
      </Stack>
    </Section>
  );
}

export function StoreList({ stores }: Pick<Overview, "stores">) {
  const { t } = useText();
  const f = useFormat();
  const lines = [
    ["Redis", stores.redis.ready, null],
    ["ClickHouse", stores.clickhouse.ready, stores.clickhouse.behindSeconds],
  ] as const;
  return (
    <Section title={t.overview.stores}>
      <List listStyleType="none" spacing={6}>
        {lines.map(([name, isReady, behind]) => (
          <List.Item
            key={name}
            styles={{ itemWrapper: { width: "100%" }, itemLabel: { width: "100%" } }}
          >
            <Group justify="space-between">
              <Text size="sm" fw={500}>
                {name}
              </Text>
              <Group gap="xs">
                {behind !== null && (
                  <Text size="sm" c="dimmed">
                    {behind < 1 ? t.overview.upToDate : t.overview.behind(f.duration(behind))}
                  </Text>
                )}
                <Badge color={isReady ? "teal" : "red"}>
                  {isReady ? t.overview.ready : t.overview.notReady}
                </Badge>
              </Group>
            </Group>
          </List.Item>
        ))}
        {stores.archive && (
          <List.Item styles={{ itemWrapper: { width: "100%" }, itemLabel: { width: "100%" } }}>
            <Group justify="space-between">
              <Text size="sm" fw={500}>
                {t.overview.archive}
              </Text>
              <Text size="sm" c="dimmed">
                {t.overview.archived(
                  f.whole(stores.archive.shipments),
                  f.duration(stores.archive.behindSeconds),
                )}
                {stores.archive.backlog > 0 &&
                  `, ${t.overview.backlog(f.whole(stores.archive.backlog))}`}
              </Text>
            </Group>
          </List.Item>
        )}
      </List>
    </Section>
  );
}

import { Anchor, Badge, Group, Stack, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { call } from "#panel/web/api/call.ts";
import type { Incident } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { RowButton } from "#panel/web/parts/row-button.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { useMay } from "#panel/web/parts/use-may.ts";
import { queries } from "#panel/web/queries.ts";

export function IncidentList({ incidents }: { readonly incidents: readonly Incident[] }) {
  const { t } = useText();
  if (incidents.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {t.alarms.none}
      </Text>
    );
  }
  return (
    <ScrollTable label={t.alarms.incidents} minWidth={720}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t.alarms.incident}</Table.Th>
          <Table.Th>{t.alarms.since}</Table.Th>
          <Table.Th>{t.alarms.lasted}</Table.Th>
          <Table.Th>{t.alarms.acknowledged}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {incidents.map((incident) => (
          <IncidentRow key={incident.id} incident={incident} />
        ))}
      </Table.Tbody>
    </ScrollTable>
  );
}

function IncidentRow({ incident }: { readonly incident: Incident }) {
  const { t, language } = useText();
  const f = useFormat();
  const { severity, text, page, code, since, overAt } = incident;
  const said = language === "it" ? text.it : text.en;
  const seconds = (Date.parse(overAt ?? new Date().toISOString()) - Date.parse(since)) / 1_000;
  return (
    <Table.Tr>
      <Table.Td>
        <Stack gap={2}>
          <Group gap="xs">
            <Badge size="sm" color={severity === "critical" ? "red" : "orange"}>
              {t.overview.severities[severity]}
            </Badge>
            <Anchor component={Link} to={page} size="sm">
              {said}
            </Anchor>
          </Group>
          <Text size="xs" c="dimmed" className="mono">
            {code}
          </Text>
        </Stack>
      </Table.Td>
      <Table.Td>
        <Instant at={since} />
      </Table.Td>
      <Table.Td>{f.duration(Math.max(0, Math.round(seconds)))}</Table.Td>
      <Table.Td>
        <Acknowledged incident={incident} />
      </Table.Td>
    </Table.Tr>
  );
}

function Acknowledged({ incident }: { readonly incident: Incident }) {
  const { t } = useText();
  const mayChange = useMay("alarms:write");
  const { id, code, acknowledged, overAt } = incident;
  const acknowledging = useAction({
    mutationFn: () => call("post", "/panel/api/incidents/:id/acknowledge", { params: { id } }),
    onError: tellProblem,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["incidents"] }),
  });
  if (acknowledged) {
    return (
      <Text size="sm">
        {acknowledged.by}, <Instant at={acknowledged.at} />
      </Text>
    );
  }
  if (!mayChange || overAt !== null) return "–";
  return (
    <RowButton
      action={t.alarms.acknowledge}
      subject={code}
      onClick={() => acknowledging.mutate()}
    />
  );
}

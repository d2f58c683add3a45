/** What a change of a mapping would change: events, shipments, their statuses, webhooks. */
import { Alert, Group, Stack, Text } from "@mantine/core";
import type { MappingPreview } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";

export function PreviewNote({ preview }: { readonly preview: MappingPreview }) {
  const { t } = useText();
  const f = useFormat();
  const sent = preview.webhooks
    .filter(({ verdict }) => verdict === "send")
    .reduce((sum, { count }) => sum + count, 0);
  return (
    <Alert
      color="blue"
      role="status"
      title={t.couriers.wouldChange(f.whole(preview.events), f.whole(preview.shipments))}
    >
      <Stack gap={6}>
        {preview.states.map(({ before, after, shipments }) => (
          <Group key={JSON.stringify([before, after])} gap={6}>
            <StatusBadge status={before.status} detail={before.detail} />
            <span aria-hidden>→</span>
            <StatusBadge status={after.status} detail={after.detail} />
            <Text size="sm">{f.whole(shipments)}</Text>
          </Group>
        ))}
        <Text size="sm">{t.couriers.wouldSend(f.whole(sent))}</Text>
        {!preview.complete && <Text size="sm">{t.couriers.notAll(f.whole(preview.examined))}</Text>}
      </Stack>
    </Alert>
  );
}

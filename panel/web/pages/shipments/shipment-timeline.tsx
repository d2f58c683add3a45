/** Events from the newest to the oldest: the courier's own words, what they were mapped to, both clocks, and the webhooks. */
import { Badge, Button, Code, Collapse, Group, Stack, Text, Timeline } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Trace } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";
import { WebhookVerdicts } from "./webhook-verdicts.tsx";

type TracedEvent = Trace["events"][number];

export function ShipmentTimeline({ trace }: { readonly trace: Trace }) {
  const { t } = useText();
  const events = [...trace.events].reverse();
  if (events.length === 0) return <Text c="dimmed">{t.shipments.noEvents}</Text>;
  return (
    <Timeline bulletSize={16} lineWidth={2} active={events.length}>
      {events.map((one) => (
        <Timeline.Item
          key={`${one.event.eventId} ${one.receivedAt}`}
          color={one.change.changed ? "indigo.7" : "gray.6"}
          title={<EventTitle traced={one} />}
        >
          <EventBody traced={one} />
        </Timeline.Item>
      ))}
    </Timeline>
  );
}

function EventTitle({ traced: { mapping, setAside, change } }: { readonly traced: TracedEvent }) {
  const { t } = useText();
  return (
    <Group gap="xs">
      {mapping ? (
        <StatusBadge status={mapping.status} detail={mapping.detail} />
      ) : (
        <Badge color="yellow">{t.shipments.notMapped}</Badge>
      )}
      {!change.changed && mapping && (
        <Badge variant="outline" color="gray">
          {t.shipments.noChange}
        </Badge>
      )}
      {setAside && (
        <Badge variant="outline" color="grape">
          {t.shipments.setAside}
        </Badge>
      )}
    </Group>
  );
}

function EventBody({ traced }: { readonly traced: TracedEvent }) {
  const { t } = useText();
  const f = useFormat();
  const [isRaw, { toggle }] = useDisclosure(false);
  const { event, occurredAt, receivedAt, messageId, place, decisions } = traced;
  const delay = (Date.parse(receivedAt) - Date.parse(occurredAt)) / 1_000;
  return (
    <Stack gap={6} mt={4}>
      <Text size="sm">
        <Code>{event.status.code}</Code> {event.status.description}
        {event.location?.name ? ` · ${event.location.name}` : ""}
      </Text>
      <Group gap="xs" fz="xs">
        <Text size="xs" c="dimmed">
          {t.shipments.happened} <Instant at={occurredAt} precise />
        </Text>
        <Text size="xs" c="dimmed">
          {t.shipments.received} <Instant at={receivedAt} precise /> (
          {t.shipments.after(f.duration(Math.max(0, delay)))})
        </Text>
      </Group>
      <WebhookVerdicts decisions={decisions} />
      <Group>
        <Button size="compact-xs" variant="default" onClick={toggle} aria-expanded={isRaw}>
          {isRaw ? t.shipments.hideRaw : t.shipments.showRaw}
        </Button>
      </Group>
      <Collapse expanded={isRaw}>
        <Code block tabIndex={0} aria-label={t.shipments.showRaw}>
          {JSON.stringify(event, null, 2)}
        </Code>
        <Text size="xs" c="dimmed" mt={4} className="break">
          {t.shipments.message} {messageId ?? "–"} · {t.shipments.place} {place}
        </Text>
      </Collapse>
    </Stack>
  );
}

/** The steps from a contract to the first shipment. Each becomes green by fact, and leads to where it is done. */
import { Anchor, Group, List, Text, ThemeIcon } from "@mantine/core";
import { IconCheck, IconCircleDashed } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Channel } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { channelStepsQuery } from "#panel/web/pages/companies/queries.ts";
import { Section } from "#panel/web/parts/section.tsx";

export function ChannelOnboarding({ channel: { code } }: { readonly channel: Channel }) {
  const { t } = useText();
  const { data } = useQuery(channelStepsQuery(code));
  if (!data) return null;
  const { apiKey, courier, endpointId, webhookVerifiedAt, shipment } = data;
  const webhook = endpointId === null ? "/webhooks" : `/webhooks/${endpointId}`;
  const page = `/channels/${code}`;
  const steps = [
    { label: t.entries.steps.key, isDone: apiKey, to: page, search: { tab: "keys" } },
    { label: t.entries.steps.courier, isDone: courier, to: page, search: { tab: "couriers" } },
    { label: t.entries.steps.webhook, isDone: endpointId !== null, to: "/webhooks", search: {} },
    {
      label: t.entries.steps.verified,
      isDone: webhookVerifiedAt !== null,
      to: webhook,
      search: {},
    },
    { label: t.entries.steps.shipment, isDone: shipment, to: "/shipments", search: {} },
  ];
  if (steps.every(({ isDone }) => isDone)) return null;
  return (
    <Section title={t.couriers.onboarding}>
      <List spacing={4} listStyleType="none">
        {steps.map(({ label, isDone, to, search }) => (
          <List.Item key={label}>
            <Group gap="xs">
              <ThemeIcon size="sm" radius="xl" color={isDone ? "teal.9" : "gray.7"}>
                {isDone ? (
                  <IconCheck size={14} aria-hidden />
                ) : (
                  <IconCircleDashed size={14} aria-hidden />
                )}
              </ThemeIcon>
              <Anchor component={Link} to={to} search={search as never} size="sm">
                {label}
              </Anchor>
              <Text size="sm" c="dimmed">
                {isDone ? t.entries.done : t.entries.missing}
              </Text>
            </Group>
          </List.Item>
        ))}
      </List>
    </Section>
  );
}

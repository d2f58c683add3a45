/** One endpoint: its health, its settings, its delivery log, and sending again. */
import { Anchor, Breadcrumbs, Group, SimpleGrid, Stack, Tabs } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useText } from "#panel/web/i18n/text.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { useTab } from "#panel/web/parts/use-tab.ts";
import { CatchUp } from "./catch-up.tsx";
import { DeliveryLog } from "./delivery-log.tsx";
import { EndpointActions } from "./endpoint-actions.tsx";
import { EndpointBadge } from "./endpoint-badge.tsx";
import { EndpointHealth } from "./endpoint-health.tsx";
import { EndpointSettings } from "./endpoint-settings.tsx";
import { OutageNote } from "./outage-note.tsx";
import { endpointQuery } from "./queries.ts";
import { RunningReplays } from "./replays.tsx";

export function WebhookPage() {
  const { t } = useText();
  const { id } = useParams({ strict: false });
  const endpoint = useSuspenseQuery(endpointQuery(id ?? "")).data;
  const [tab, setTab] = useTab(["log", "health", "again"]);
  return (
    <>
      <Breadcrumbs mb="xs">
        <Anchor component={Link} to="/webhooks" size="sm">
          {t.webhooks.title}
        </Anchor>
      </Breadcrumbs>
      <PageHead
        title={endpoint.code}
        lead={
          <Group gap="xs">
            <EndpointBadge endpoint={endpoint} />
            <span className="break">{endpoint.url}</span>
          </Group>
        }
      >
        <EndpointActions endpoint={endpoint} />
      </PageHead>
      <Stack gap="lg">
        <RunningReplays endpointId={endpoint.endpointId} />
        <OutageNote endpoint={endpoint} onCatchUp={() => setTab("again")} />
        <Tabs value={tab} onChange={setTab} keepMounted={false}>
          <Tabs.List mb="md">
            <Tabs.Tab value="log">{t.webhooks.log}</Tabs.Tab>
            <Tabs.Tab value="health">{t.webhooks.health}</Tabs.Tab>
            <Tabs.Tab value="again">{t.webhooks.sendAgain}</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="log">
            <DeliveryLog endpointId={endpoint.endpointId} />
          </Tabs.Panel>
          <Tabs.Panel value="health">
            <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
              <EndpointHealth endpointId={endpoint.endpointId} />
              <EndpointSettings endpoint={endpoint} />
            </SimpleGrid>
          </Tabs.Panel>
          <Tabs.Panel value="again">
            <CatchUp endpoint={endpoint} />
          </Tabs.Panel>
        </Tabs>
      </Stack>
    </>
  );
}

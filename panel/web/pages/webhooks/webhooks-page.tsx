/** All webhook endpoints of the channels that the visitor sees. */
import { Anchor, Box, Button, Card, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus } from "@tabler/icons-react";
import { useQueries, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo } from "react";
import type { Endpoint } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { meQuery } from "#panel/web/queries.ts";
import { EndpointBadge } from "./endpoint-badge.tsx";
import { NewEndpoint } from "./endpoint-form.tsx";
import { channelsQuery, endpointsQuery, statsQuery } from "./queries.ts";
import { WebhookPicture } from "./webhook-picture.tsx";

/** With the one that runs. */
const DAY_HOURS = 23;
const SUCCESS_EVERY_MS = 60_000;

export function WebhooksPage() {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const channels = useSuspenseQuery(channelsQuery).data.items;
  const lists = useQueries({ queries: channels.map(({ code }) => endpointsQuery(code)) });
  const rows = lists.flatMap(({ data }) => data?.items ?? []);
  const [isMaking, { open, close }] = useDisclosure(false);
  return (
    <>
      <PageHead title={t.webhooks.title} lead={t.webhooks.lead}>
        {capabilities.includes("webhooks:write") && (
          <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={open}>
            {t.webhooks.create}
          </Button>
        )}
      </PageHead>
      <Card padding={0}>
        <EndpointTable rows={rows} isLoading={lists.some(({ isPending }) => isPending)} />
      </Card>
      <Box mt="lg">
        <WebhookPicture />
      </Box>
      <NewEndpoint opened={isMaking} onClose={close} channels={channels.map(({ code }) => code)} />
    </>
  );
}

interface EndpointTableProps {
  readonly rows: readonly Endpoint[];
  readonly isLoading: boolean;
}

function EndpointTable({ rows, isLoading }: EndpointTableProps) {
  const { t } = useText();
  const columns = useMemo(() => {
    const column = createColumnHelper<Endpoint>();
    return [
      column.accessor("code", {
        header: t.webhooks.endpoint,
        cell: ({ row: { original } }) => (
          <Stack gap={0}>
            <Anchor component={Link} to={`/webhooks/${original.endpointId}`} fw={600} size="sm">
              {original.code}
            </Anchor>
            <Text size="xs" c="dimmed" className="break">
              {original.url}
            </Text>
          </Stack>
        ),
      }),
      column.accessor("channel", { header: t.webhooks.channel }),
      column.accessor("trigger", {
        header: t.webhooks.settingWords.trigger.label,
        cell: ({ getValue }) => t.webhooks.triggers[getValue()],
      }),
      column.accessor("status", {
        header: t.webhooks.state,
        cell: ({ row: { original } }) => <EndpointBadge endpoint={original} />,
      }),
      column.display({
        id: "success",
        header: t.webhooks.successDay,
        meta: { align: "right" },
        cell: ({ row: { original } }) => <Success endpointId={original.endpointId} />,
      }),
      column.accessor("failingSince", {
        header: t.webhooks.failingSince,
        cell: ({ getValue }) => <Instant at={getValue()} />,
      }),
    ];
  }, [t]);
  return (
    <DataTable
      label={t.webhooks.title}
      rows={rows}
      columns={columns}
      idOf={({ endpointId }) => endpointId}
      isLoading={isLoading}
      minWidth={760}
    />
  );
}

/** Of the rows in sight only. */
function Success({ endpointId }: { readonly endpointId: string }) {
  const f = useFormat();
  const { data } = useQuery({
    ...statsQuery(endpointId, DAY_HOURS),
    refetchInterval: SUCCESS_EVERY_MS,
  });
  return <>{f.percent(data?.total.successRate)}</>;
}

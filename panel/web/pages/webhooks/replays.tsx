/** Replays of windows: how far the one under way has come, and what became of the latest. */
import { Alert, Badge, Button, Group, Table, Text, Title } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { call } from "#panel/web/api/call.ts";
import type { ReplayState } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { useMay } from "#panel/web/parts/use-may.ts";
import { queries } from "#panel/web/queries.ts";
import { isRunning, replaysQuery } from "./queries.ts";

const COLOURS = { running: "blue", done: "teal", stopped: "gray" } as const;

interface ReplaysProps {
  readonly endpointId: string;
}

/** What is under way, on every tab of the page and for every visitor. */
export function RunningReplays({ endpointId }: ReplaysProps) {
  const { t } = useText();
  const { data } = useQuery(replaysQuery(endpointId));
  const running = data?.items.filter(isRunning) ?? [];
  const count = running.length;
  useEffect(() => {
    if (count > 0) return;
    for (const about of ["missed", "deliveries", "stats"]) {
      void queries.invalidateQueries({ queryKey: ["webhooks", endpointId, about] });
    }
  }, [count, endpointId]);
  return running.map((replay) => (
    <Alert
      key={replay.replayId}
      role="status"
      color="blue"
      icon={<IconRefresh aria-hidden />}
      title={t.webhooks.replayStates.running}
    >
      <Group justify="space-between">
        <PassedOver replay={replay} />
        <StopReplay replay={replay} />
      </Group>
    </Alert>
  ));
}

/** What it has done so far, and why it left some out. */
function PassedOver({ replay }: { readonly replay: ReplayState }) {
  const { t } = useText();
  const f = useFormat();
  const { queued, passedOver, passedOverBecause } = replay;
  const { older, notFailed } = passedOverBecause;
  const reasons = [
    older > 0 && t.webhooks.passedOverOlder(f.whole(older)),
    notFailed > 0 && t.webhooks.passedOverNotFailed(f.whole(notFailed)),
  ].filter((reason) => reason !== false);
  return (
    <span>
      {t.webhooks.replayed(f.whole(queued), f.whole(passedOver))}
      {reasons.length > 0 && ` (${reasons.join(", ")})`}
    </span>
  );
}

function StopReplay({ replay: { endpointId, replayId } }: { readonly replay: ReplayState }) {
  const { t } = useText();
  const mayReplay = useMay("webhooks:replay");
  const stopping = useAction({
    mutationFn: () =>
      call("delete", "/panel/api/webhooks/:endpointId/replays/:replayId", {
        params: { endpointId, replayId },
      }),
    onError: tellProblem,
    onSuccess: () => queries.invalidateQueries({ queryKey: replaysQuery(endpointId).queryKey }),
  });
  if (!mayReplay) return null;
  return (
    <Button
      size="compact-xs"
      variant="default"
      loading={stopping.isPending}
      onClick={() => stopping.mutate()}
    >
      {t.webhooks.stop}
    </Button>
  );
}

export function ReplayTable({ endpointId }: ReplaysProps) {
  const { t } = useText();
  const { data, error } = useQuery(replaysQuery(endpointId));
  if (!data) return <ProblemNote error={error} />;
  if (data.items.length === 0) return null;
  return (
    <div>
      <Title order={3} size="h5">
        {t.webhooks.replays}
      </Title>
      <ScrollTable label={t.webhooks.replays} minWidth={820}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.webhooks.replayBegun}</Table.Th>
            <Table.Th>{t.webhooks.replayWindow}</Table.Th>
            <Table.Th>{t.webhooks.mode}</Table.Th>
            <Table.Th>{t.webhooks.state}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {data.items.map((replay) => (
            <ReplayRow key={replay.replayId} replay={replay} />
          ))}
        </Table.Tbody>
      </ScrollTable>
    </div>
  );
}

function ReplayRow({ replay }: { readonly replay: ReplayState }) {
  const { t } = useText();
  const f = useFormat();
  const { startedAt, from, to, mode } = replay;
  const state = replay.state as keyof typeof COLOURS;
  return (
    <Table.Tr>
      <Table.Td>{f.second(startedAt)}</Table.Td>
      <Table.Td>
        {f.second(from)} – {f.second(to)}
      </Table.Td>
      <Table.Td>{mode === "each" ? t.webhooks.modeEach : t.webhooks.modeLatest}</Table.Td>
      <Table.Td>
        <Badge color={COLOURS[state]}>{t.webhooks.replayStates[state]}</Badge>
        <Text component="div" size="xs" c="dimmed">
          <PassedOver replay={replay} />
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}

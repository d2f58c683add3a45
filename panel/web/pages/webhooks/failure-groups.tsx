/** What went wrong, the most frequent first: a group is chosen whole, to be sent again. */
import { Button, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "#panel/web/api/call.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";
import type { Selection } from "./resend-selected.tsx";

const EVERY_MS = 10_000;
const SHOWN = 5;

interface FailureGroupsProps {
  readonly endpointId: string;
  /** Days; empty = any. */
  readonly from: string;
  readonly to: string;
  readonly selection: Selection;
}

export function FailureGroups({ endpointId, from, to, selection }: FailureGroupsProps) {
  const { t } = useText();
  const f = useFormat();
  const mayResend = useMay("webhooks:replay");
  const { data } = useQuery({
    queryKey: ["webhooks", endpointId, "failures", from, to],
    queryFn: ({ signal }) =>
      call("get", "/panel/api/webhooks/:endpointId/failures", {
        params: { endpointId },
        query: { ...(from && { from }), ...(to && { to }) },
        signal,
      }),
    refetchInterval: EVERY_MS,
  });
  const groups = data?.groups.slice(0, SHOWN) ?? [];
  if (groups.length === 0) return null;
  return (
    <Group px="sm" pb="sm" gap="xs" component="section" aria-label={t.webhooks.failures}>
      {groups.map(({ error, deliveries, since, deliveryIds }) => (
        <Button
          key={error}
          variant="default"
          size="xs"
          h="auto"
          py={6}
          styles={{ label: { whiteSpace: "normal" } }}
          disabled={!mayResend}
          onClick={() => selection.change(new Set(deliveryIds))}
        >
          {t.webhooks.failureGroup(f.whole(deliveries), error, f.second(since))}
        </Button>
      ))}
    </Group>
  );
}

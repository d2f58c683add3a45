/** For each endpoint: sent or not and why, and how its attempts went. */
import { Anchor, Badge, Group, Stack, Text } from "@mantine/core";
import { IconWebhook } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Trace } from "#panel/web/api/routes.ts";
import type { Messages } from "#panel/web/i18n/en.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DeliveryDrawer } from "#panel/web/pages/webhooks/delivery-drawer.tsx";

type Decision = Trace["events"][number]["decisions"][number];
type Verdict = Decision["verdicts"][number];

export function WebhookVerdicts({ decisions }: { readonly decisions: readonly Decision[] }) {
  const [shown, setShown] = useState<string | null>(null);
  const lines = decisions.flatMap(({ eventId, verdicts }) =>
    verdicts.map((verdict) => ({ eventId, verdict })),
  );
  if (lines.length === 0) return null;
  return (
    <Stack gap={4}>
      {lines.map(({ eventId, verdict }) => (
        <VerdictLine key={`${eventId} ${verdict.endpointId}`} verdict={verdict} onShow={setShown} />
      ))}
      <DeliveryDrawer deliveryId={shown} onClose={() => setShown(null)} />
    </Stack>
  );
}

interface VerdictLineProps {
  readonly verdict: Verdict;
  readonly onShow: (deliveryId: string) => void;
}

function VerdictLine({
  verdict: { endpointId, endpoint, verdict, delivery },
  onShow,
}: VerdictLineProps) {
  const { t } = useText();
  const f = useFormat();
  const last = delivery?.attempts.at(-1);
  return (
    <Group gap={6} fz="xs" align="center">
      <IconWebhook size={14} aria-hidden />
      <Anchor component={Link} to={`/webhooks/${endpointId}`} size="xs">
        {endpoint ?? endpointId}
      </Anchor>
      <Badge size="sm" color={colourOf(verdict, delivery?.state)}>
        {verdictText(t, verdict, delivery?.state)}
      </Badge>
      {delivery && (
        <Anchor
          component="button"
          type="button"
          size="xs"
          onClick={() => onShow(delivery.deliveryId)}
        >
          {t.shipments.attempts(delivery.attempts.length)}
        </Anchor>
      )}
      {last && (
        <Text size="xs" c="dimmed">
          {last.error ?? `HTTP ${last.httpStatus}`}, {f.duration(last.durationMs / 1_000)}
        </Text>
      )}
    </Group>
  );
}

function verdictText(t: Messages, verdict: string, state: string | undefined): string {
  const { verdicts } = t.shipments;
  if (verdict !== "send")
    return verdict in verdicts ? verdicts[verdict as keyof typeof verdicts] : verdict;
  const states = t.webhooks.logStates;
  return state !== undefined && state in states
    ? states[state as keyof typeof states]
    : verdicts.send;
}

function colourOf(verdict: string, state: string | undefined): string {
  if (verdict !== "send") return "gray";
  if (state === "failed") return "red";
  return state === "delivered" ? "teal" : "blue";
}

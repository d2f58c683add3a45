/** For each endpoint: sent or not and why, and how its attempts went. */
import { Anchor, Badge, Group, Stack, Text } from "@mantine/core";
import { IconWebhook } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { v1ChannelId } from "#core/webhooks/rules/webhook-v1.ts";
import type { Trace } from "#panel/web/api/routes.ts";
import type { Messages } from "#panel/web/i18n/en.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DeliveryDrawer } from "#panel/web/pages/webhooks/delivery-drawer.tsx";
import { reasonText } from "#panel/web/pages/webhooks/reason-text.ts";

type Decision = Trace["events"][number]["decisions"][number];
type Verdict = Decision["verdicts"][number];

export function WebhookVerdicts({ decisions }: { readonly decisions: readonly Decision[] }) {
  const { t } = useText();
  const [shown, setShown] = useState<string | null>(null);
  const lines = decisions.flatMap(({ eventId, verdicts }) =>
    verdicts.map((verdict) => ({ eventId, verdict })),
  );
  if (lines.length === 0) {
    return (
      <Text size="xs" c="dimmed">
        {t.shipments.noDecision}
      </Text>
    );
  }
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

function VerdictLine({ verdict: made, onShow }: VerdictLineProps) {
  const { t } = useText();
  const f = useFormat();
  const { verdict, delivery } = made;
  const last = delivery?.attempts.at(-1);
  return (
    <Group gap={6} fz="xs" align="center">
      <IconWebhook size={14} aria-hidden />
      <EndpointName verdict={made} />
      <Badge size="sm" color={colourOf(verdict, delivery?.state)}>
        {stateText(t, made)}
      </Badge>
      {verdict !== "send" && <Text size="xs">{t.shipments.notSentBecause[verdict]}</Text>}
      {delivery && (
        <Anchor
          component="button"
          type="button"
          size="xs"
          onClick={() => onShow(delivery.deliveryId)}
        >
          {t.shipments.attempts(f.whole(delivery.attempts.length))}
        </Anchor>
      )}
      {last && (
        <Text size="xs" c="dimmed">
          {last.error ?? `HTTP ${last.httpStatus}`}, {f.duration(last.durationMs / 1_000)}
        </Text>
      )}
      {delivery?.nextAttemptAt && (
        <Text size="xs" c="dimmed">
          {t.shipments.nextAttempt(f.second(delivery.nextAttemptAt))}
        </Text>
      )}
      {delivery?.reason && delivery.reason !== last?.error && (
        <Text size="xs" c="dimmed">
          {reasonText(t, delivery.reason)}
        </Text>
      )}
    </Group>
  );
}

/** Only an endpoint that exists has a page. */
function EndpointName({ verdict: { endpointId, endpoint } }: { readonly verdict: Verdict }) {
  const { t } = useText();
  if (v1ChannelId(endpointId) !== null) return <Text size="xs">{t.shipments.webhooksV1}</Text>;
  if (endpoint === null) return <Text size="xs">{t.shipments.deletedEndpoint(endpointId)}</Text>;
  return (
    <Anchor component={Link} to={`/webhooks/${endpointId}`} size="xs">
      {endpoint}
    </Anchor>
  );
}

function stateText({ shipments, webhooks }: Messages, { verdict, delivery }: Verdict): string {
  if (verdict !== "send") return shipments.notSent;
  return delivery ? webhooks.deliveryStates[delivery.state] : shipments.sent;
}

function colourOf(verdict: Verdict["verdict"], state: string | undefined): string {
  if (verdict !== "send") return "gray";
  if (state === "failed") return "red";
  return state === "delivered" ? "teal" : "blue";
}

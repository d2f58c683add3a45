/** One delivery: each attempt with its request and its answer, the body, and sending it again. */
import {
  Alert,
  Anchor,
  Button,
  Code,
  Drawer,
  Group,
  Stack,
  Text,
  Timeline,
  Title,
} from "@mantine/core";
import { IconCheck, IconRefresh, IconX } from "@tabler/icons-react";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { call } from "#panel/web/api/call.ts";
import type { DeliveryDetail } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Facts } from "#panel/web/parts/facts.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { tell, tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries } from "#panel/web/queries.ts";
import { DeliveryBadge } from "./delivery-badge.tsx";
import { deliveryQuery } from "./queries.ts";
import { reasonText } from "./reason-text.ts";

interface DeliveryDrawerProps {
  /** Null = closed. */
  readonly deliveryId: string | null;
  readonly onClose: () => void;
}

export function DeliveryDrawer({ deliveryId, onClose }: DeliveryDrawerProps) {
  const { t } = useText();
  const { data, error } = useQuery({
    ...deliveryQuery(deliveryId ?? ""),
    enabled: deliveryId !== null,
  });
  return (
    <Drawer
      opened={deliveryId !== null}
      onClose={onClose}
      position="right"
      size="lg"
      title={t.webhooks.delivery}
      closeButtonProps={{ "aria-label": t.common.close }}
    >
      <ProblemNote error={error} />
      {data && <DeliveryView delivery={data} />}
    </Drawer>
  );
}

function DeliveryView({ delivery }: { readonly delivery: DeliveryDetail }) {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const { deliveryId, endpointId, state, body } = delivery;
  const mayReplay = capabilities.includes("webhooks:replay");
  const again = useAction({
    mutationFn: () =>
      call("post", "/panel/api/deliveries/:deliveryId/replay", { params: { deliveryId } }),
    onError: tellProblem,
    async onSuccess() {
      tell(t.webhooks.queuedAgain);
      await queries.invalidateQueries({ queryKey: ["deliveries", deliveryId] });
      await queries.invalidateQueries({ queryKey: ["webhooks", endpointId, "deliveries"] });
      await queries.invalidateQueries({ queryKey: ["webhooks", endpointId, "missed"] });
    },
  });
  return (
    <Stack>
      <Facts
        rows={[
          [t.webhooks.state, <DeliveryBadge key="state" state={state} />],
          [
            t.webhooks.eventId,
            <span key="event" className="mono">
              {delivery.eventId}
            </span>,
          ],
          [
            t.webhooks.shipment,
            <Anchor
              key="shipment"
              component={Link}
              to={`/shipments/${delivery.shipmentId}`}
              size="sm"
            >
              {delivery.shipmentId}
            </Anchor>,
          ],
          [t.webhooks.createdAt, <Instant key="at" at={delivery.createdAt} precise />],
          [t.webhooks.nextAttempt, <Instant key="next" at={delivery.nextAttemptAt} precise />],
          ...(delivery.reason === null
            ? []
            : [[t.webhooks.reason, reasonText(t, delivery.reason)] as const]),
        ]}
      />
      {mayReplay && (state === "delivered" || state === "failed") && (
        <Group>
          <Button
            size="xs"
            leftSection={<IconRefresh size={16} aria-hidden />}
            loading={again.isPending}
            onClick={() => again.mutate()}
          >
            {t.webhooks.sendThisAgain}
          </Button>
        </Group>
      )}
      <Title order={3} size="h5">
        {t.webhooks.attempts}
      </Title>
      {delivery.attempts.length === 0 && <Text size="sm">{t.webhooks.noAttempt}</Text>}
      <Attempts delivery={delivery} />
      {body && (
        <>
          <Title order={3} size="h5">
            {t.webhooks.body}
          </Title>
          <Code block tabIndex={0} aria-label={t.webhooks.body}>
            {pretty(body.text)}
          </Code>
        </>
      )}
    </Stack>
  );
}

function Attempts({ delivery: { attempts } }: { readonly delivery: DeliveryDetail }) {
  const f = useFormat();
  const { t } = useText();
  return (
    <Timeline bulletSize={22} lineWidth={2} active={attempts.length}>
      {attempts.map((one) => {
        const isGood = one.error === null && one.httpStatus !== null && one.httpStatus < 300;
        return (
          <Timeline.Item
            key={`${one.generation} ${one.attempt}`}
            color={isGood ? "teal.8" : "red.8"}
            bullet={isGood ? <IconCheck size={13} aria-hidden /> : <IconX size={13} aria-hidden />}
            title={`${one.attempt}. ${one.error ?? `HTTP ${one.httpStatus}`}`}
          >
            <Text size="xs" c="dimmed">
              {f.second(one.at)} · {f.duration(one.durationMs / 1_000)}
            </Text>
            {one.request && <RequestSent request={one.request} bodyMatches={one.bodyMatches} />}
            {(one.responseSnippet || one.responseHeaders) && (
              <Alert color="gray" mt={6} p="xs" title={t.webhooks.answer}>
                {Object.entries(one.responseHeaders ?? {}).map(([name, value]) => (
                  <Text key={name} size="xs" c="dimmed" className="break mono">
                    {name}: {value}
                  </Text>
                ))}
                <Text size="xs" className="break mono">
                  {one.responseSnippet}
                </Text>
              </Alert>
            )}
          </Timeline.Item>
        );
      })}
    </Timeline>
  );
}

interface RequestSentProps {
  readonly request: NonNullable<DeliveryDetail["attempts"][number]["request"]>;
  readonly bodyMatches: boolean | null;
}

function RequestSent({ request, bodyMatches }: RequestSentProps) {
  const { t } = useText();
  const f = useFormat();
  const { url, headers, bodyBytes, bodySha256 } = request;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <>
      <Code block mt={6} tabIndex={0} aria-label={t.webhooks.request}>
        {[`POST ${url ?? "?"}`, ...lines].join("\n")}
      </Code>
      <Text size="xs" c="dimmed" mt={4} className="break">
        {t.webhooks.bodySent(f.whole(bodyBytes), bodySha256)}
        {bodyMatches === true && ` ${t.webhooks.bodySame}`}
        {bodyMatches === false && ` ${t.webhooks.bodyChanged}`}
      </Text>
    </>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

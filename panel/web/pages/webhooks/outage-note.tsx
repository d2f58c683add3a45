/** Since when an endpoint fails or is off, what it missed, and what to do about it. */
import { Alert, Button, Stack, Text } from "@mantine/core";
import { IconAlertTriangle, IconRefresh } from "@tabler/icons-react";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import type { Endpoint, Missed } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { meQuery } from "#panel/web/queries.ts";
import { missedQuery } from "./queries.ts";

interface OutageNoteProps {
  readonly endpoint: Endpoint;
  readonly onCatchUp: () => void;
}

export function OutageNote({ endpoint, onCatchUp }: OutageNoteProps) {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const missed = useQuery(missedQuery(endpoint.endpointId)).data;
  const { status, failingSince, disabledSince, lastError } = endpoint;
  const isOff = status === "disabled";
  const since = isOff ? disabledSince : failingSince;
  const hasMissed = (missed?.shipmentsBehind ?? 0) > 0;
  const title = useTitle(isOff, since);
  const f = useFormat();
  if (since === null && !hasMissed) return null;
  return (
    <Alert
      color={isOff ? "red" : "orange"}
      icon={<IconAlertTriangle aria-hidden />}
      title={title}
      role="status"
    >
      <Stack gap="xs" align="start">
        {since !== null && lastError && (
          <Text size="sm" className="break">
            {t.webhooks.lastError}: {lastError.error} ({f.second(lastError.at)})
          </Text>
        )}
        {missed && hasMissed && <MissedText missed={missed} />}
        {since !== null && <Text size="sm">{t.webhooks.catchUpHint}</Text>}
        {hasMissed && !isOff && capabilities.includes("webhooks:replay") && (
          <Button size="xs" leftSection={<IconRefresh size={16} aria-hidden />} onClick={onCatchUp}>
            {t.webhooks.catchUp}
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

function useTitle(isOff: boolean, since: string | null): string {
  const { t } = useText();
  const f = useFormat();
  if (since === null) return t.webhooks.missedTitle;
  return isOff ? t.webhooks.offSince(f.second(since)) : t.webhooks.failsSince(f.second(since));
}

/** How much was missed, and from when to when. */
export function MissedText({ missed }: { readonly missed: Missed }) {
  const { t } = useText();
  const f = useFormat();
  const { deliveries, shipments, shipmentsBehind, isComplete, from, to } = missed;
  return (
    <Text size="sm">
      {t.webhooks.missed(f.whole(deliveries), f.whole(shipments), f.second(from), f.second(to))}{" "}
      {t.webhooks.behind(f.whole(shipmentsBehind))}
      {!isComplete && ` ${t.webhooks.missedMore}`}
    </Text>
  );
}

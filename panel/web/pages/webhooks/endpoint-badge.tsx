import { Badge } from "@mantine/core";
import type { Endpoint } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";

/** How an endpoint does: active, failing, or off and why. */
export function EndpointBadge({ endpoint }: { readonly endpoint: Endpoint }) {
  const { t } = useText();
  const { status, disabledReason, failingSince } = endpoint;
  if (status === "disabled") {
    const isBroken = disabledReason === "failing";
    return (
      <Badge color={isBroken ? "red" : "gray"}>
        {isBroken ? t.webhooks.disabledFailing : t.webhooks.disabled}
      </Badge>
    );
  }
  if (failingSince !== null) return <Badge color="orange">{t.webhooks.failing}</Badge>;
  return <Badge color="teal">{t.webhooks.active}</Badge>;
}

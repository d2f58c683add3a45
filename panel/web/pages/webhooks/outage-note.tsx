import { Alert, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { Endpoint } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";

/** Since when an endpoint fails or is off, and what to do about it. */
export function OutageNote({ endpoint }: { readonly endpoint: Endpoint }) {
  const { t } = useText();
  const f = useFormat();
  const { status, failingSince, disabledSince, lastError } = endpoint;
  const since = status === "disabled" ? disabledSince : failingSince;
  if (since === null) return null;
  return (
    <Alert
      color={status === "disabled" ? "red" : "orange"}
      icon={<IconAlertTriangle aria-hidden />}
      title={
        status === "disabled"
          ? t.webhooks.offSince(f.second(since))
          : t.webhooks.failsSince(f.second(since))
      }
    >
      {lastError && (
        <Text size="sm" className="break">
          {t.webhooks.lastError}: {lastError.error} ({f.second(lastError.at)})
        </Text>
      )}
      <Text size="sm">{t.webhooks.catchUpHint}</Text>
    </Alert>
  );
}

import { Badge } from "@mantine/core";
import type { Delivery } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";

const COLOURS = { queued: "blue", waiting: "orange", delivered: "teal", failed: "red" } as const;

export function DeliveryBadge({ state }: Pick<Delivery, "state">) {
  const { t } = useText();
  return <Badge color={COLOURS[state]}>{t.webhooks.deliveryStates[state]}</Badge>;
}

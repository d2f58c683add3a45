import { Badge } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";

export function AcceptingBadge({ isAccepting }: { readonly isAccepting: boolean }) {
  const { t } = useText();
  return (
    <Badge color={isAccepting ? "teal" : "gray"}>
      {isAccepting ? t.couriers.accepting : t.couriers.notAccepting}
    </Badge>
  );
}

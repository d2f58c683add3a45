import { Badge } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";

export function ActiveBadge({ isActive }: { readonly isActive: boolean }) {
  const { t } = useText();
  return (
    <Badge color={isActive ? "teal" : "gray"}>
      {isActive ? t.merchants.active : t.merchants.inactive}
    </Badge>
  );
}

/** Whether a setup file names the entity, and whether it is closed. */
import { Badge, Tooltip } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";

interface ManagedBadgeProps {
  readonly entity: { readonly managedBy: "setup.json" | "panel"; readonly closedAt: string | null };
}

export function ManagedBadge({ entity: { managedBy, closedAt } }: ManagedBadgeProps) {
  const { t } = useText();
  const badge = (
    <Badge color="gray" variant="outline" tt="none">
      {t.entries.managed[managedBy]}
    </Badge>
  );
  return (
    <>
      {closedAt !== null && <Badge color="red.9">{t.entries.closed}</Badge>}
      {managedBy === "panel" ? (
        badge
      ) : (
        <Tooltip label={t.entries.managedHint} multiline w={280}>
          {badge}
        </Tooltip>
      )}
    </>
  );
}

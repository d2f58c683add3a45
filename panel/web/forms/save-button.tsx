/** Below the fields of a form that stands on its page: sends them. */
import { Button, Group } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";

export function SaveButton({ isPending }: { readonly isPending: boolean }) {
  const { t } = useText();
  return (
    <Group>
      <Button type="submit" loading={isPending}>
        {t.common.save}
      </Button>
    </Group>
  );
}

import { Center, Loader, VisuallyHidden } from "@mantine/core";
import { useText } from "#panel/web/i18n/text.tsx";

export function PagePending() {
  const { t } = useText();
  return (
    <Center h={240} role="status">
      <Loader aria-hidden />
      <VisuallyHidden>{t.app.loading}</VisuallyHidden>
    </Center>
  );
}

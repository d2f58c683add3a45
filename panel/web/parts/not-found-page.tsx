import { Button, Center, Stack, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useText } from "#panel/web/i18n/text.tsx";

export function NotFoundPage() {
  const { t } = useText();
  return (
    <Center component="main" mih={360} p="lg">
      <Stack align="center" gap="sm">
        <Title order={1} size="h2" ta="center">
          {t.app.notFound}
        </Title>
        <Text c="dimmed" ta="center">
          {t.app.notFoundText}
        </Text>
        <Button component={Link} to="/" mt="sm">
          {t.app.toOverview}
        </Button>
      </Stack>
    </Center>
  );
}

/** Log-in: by an account's e-mail address and password, or by an operator's token. */
import { Box, Card, Center, Group, Stack, Text, Title } from "@mantine/core";
import { IconRoute } from "@tabler/icons-react";
import { useEffect } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { queries } from "#panel/web/queries.ts";
import { ColourMenu, LanguageMenu } from "#panel/web/shell/settings-menu.tsx";
import { LoginForms } from "./login-forms.tsx";
import { ownAddress } from "./own-address.ts";

export function LoginPage() {
  const { t } = useText();
  useEffect(() => {
    document.title = `${t.login.title} · ${t.app.name}`;
  }, [t]);
  return (
    <Box component="main" className="page-body">
      <Group justify="end" p="sm" gap={4}>
        <LanguageMenu />
        <ColourMenu />
      </Group>
      <Center px="md" pt="8vh" pb="xl">
        <Stack w="100%" maw={400} gap="lg">
          <Stack gap={4} align="center">
            <IconRoute
              size={44}
              stroke={1.6}
              color="var(--mantine-primary-color-filled)"
              aria-hidden
            />
            <Title order={1}>{t.app.name}</Title>
            <Text c="dimmed" ta="center">
              {t.login.lead}
            </Text>
          </Stack>
          <Card shadow="sm">
            <LoginForms onEntered={goOn} />
          </Card>
        </Stack>
      </Center>
    </Box>
  );
}

/** To the page that was asked for. */
function goOn(): void {
  queries.clear();
  const next = new URLSearchParams(location.search).get("next");
  location.assign(ownAddress(next, location.origin));
}

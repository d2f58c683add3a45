/** The frame of every page: brand and navigation at the left, the visitor's own settings at the top. */
import { AppShell, Box, Burger, Group, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconRoute } from "@tabler/icons-react";
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { useEffect } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { NotFoundPage } from "#panel/web/parts/not-found-page.tsx";
import { meQuery } from "#panel/web/queries.ts";
import { Navigation } from "./navigation.tsx";
import { maySee } from "./pages.ts";
import { SearchEverywhere } from "./search-everywhere.tsx";
import { SessionEnded } from "./session-ended.tsx";
import { SettingsMenu } from "./settings-menu.tsx";

export function Layout() {
  const { t } = useText();
  const [opened, { toggle, close }] = useDisclosure(false);
  const { pathname } = useLocation();
  const visitor = useSuspenseQuery(meQuery).data;
  const mayOpen = maySee(visitor, pathname);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the menu of small screens
  useEffect(close, [pathname]);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 232, breakpoint: "md", collapsed: { mobile: !opened } }}
      padding={{ base: "md", md: "xl" }}
    >
      <a href="#content" className="skip-link">
        {t.app.skip}
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" gap="sm" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap" flex="none">
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="md"
              size="sm"
              aria-label={t.app.menu}
            />
            <UnstyledButton component={Link} to="/" aria-label={t.app.name}>
              <Group gap={8} wrap="nowrap">
                <IconRoute aria-hidden color="var(--mantine-primary-color-filled)" />
                <Text fw={700} fz="lg" visibleFrom="sm">
                  {t.app.name}
                </Text>
              </Group>
            </UnstyledButton>
          </Group>
          {visitor.capabilities.includes("shipments:read") && <SearchEverywhere />}
          <Box flex="none">
            <SettingsMenu />
          </Box>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label={t.app.mainNavigation}>
        <Navigation />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} className="page-body">
        {mayOpen ? <Outlet /> : <NotFoundPage />}
      </AppShell.Main>
      <SessionEnded />
    </AppShell>
  );
}

import { AppShell, NavLink, Text } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link, useLocation } from "@tanstack/react-router";
import { useText } from "#panel/web/i18n/text.tsx";
import { meQuery } from "#panel/web/queries.ts";
import { mayOpen, NAV_GROUPS } from "./pages.ts";

/** The pages that the visitor may open. */
export function Navigation() {
  const { t } = useText();
  const { pathname } = useLocation();
  const visitor = useSuspenseQuery(meQuery).data;
  const groups = NAV_GROUPS.map(({ label, pages }) => ({
    label,
    pages: pages.filter((page) => mayOpen(visitor, page)),
  })).filter(({ pages }) => pages.length > 0);
  return (
    <AppShell.Section grow className="scrolls">
      {groups.map(({ label, pages }) => (
        <div key={label}>
          <Text size="xs" fw={600} c="dimmed" px="sm" pt="md" pb={4}>
            {t.app.groups[label]}
          </Text>
          {pages.map(({ to, label: page, icon: Icon }) => (
            <NavLink
              key={to}
              component={Link}
              to={to}
              active={pathname === to || pathname.startsWith(`${to}/`)}
              label={t.nav[page]}
              leftSection={<Icon size={18} stroke={1.7} aria-hidden />}
              variant="light"
              style={{ borderRadius: "var(--mantine-radius-md)" }}
            />
          ))}
        </div>
      ))}
    </AppShell.Section>
  );
}

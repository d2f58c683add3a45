import { ActionIcon, Group, Menu, useMantineColorScheme } from "@mantine/core";
import {
  IconApi,
  IconCheck,
  IconDeviceDesktop,
  IconLanguage,
  IconLogout,
  IconMoon,
  IconSun,
  IconUserCircle,
  IconWebhook,
} from "@tabler/icons-react";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { call } from "#panel/web/api/call.ts";
import { type Language, useText } from "#panel/web/i18n/text.tsx";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries, versionQuery } from "#panel/web/queries.ts";

/** Language, colours, and the visitor's own account. */
export function SettingsMenu() {
  return (
    <Group gap={4} wrap="nowrap">
      <LanguageMenu />
      <ColourMenu />
      <AccountMenu />
    </Group>
  );
}

const LANGUAGES: ReadonlyArray<readonly [Language, string]> = [
  ["en", "English"],
  ["it", "Italiano"],
];

export function LanguageMenu() {
  const { t, language, setLanguage } = useText();
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t.app.language}>
          <IconLanguage size={20} stroke={1.7} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {LANGUAGES.map(([code, name]) => (
          <Menu.Item
            key={code}
            lang={code}
            onClick={() => setLanguage(code)}
            rightSection={code === language && <IconCheck size={16} aria-hidden />}
          >
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

const SCHEMES = { light: IconSun, dark: IconMoon, auto: IconDeviceDesktop } as const;

export function ColourMenu() {
  const { t } = useText();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const Current = SCHEMES[colorScheme];
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t.app.colours}>
          <Current size={20} stroke={1.7} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {(["light", "dark", "auto"] as const).map((scheme) => {
          const Icon = SCHEMES[scheme];
          return (
            <Menu.Item
              key={scheme}
              onClick={() => setColorScheme(scheme)}
              leftSection={<Icon size={16} aria-hidden />}
              rightSection={scheme === colorScheme && <IconCheck size={16} aria-hidden />}
            >
              {t.app.schemes[scheme]}
            </Menu.Item>
          );
        })}
      </Menu.Dropdown>
    </Menu>
  );
}

function AccountMenu() {
  const { t } = useText();
  const { name, email } = useSuspenseQuery(meQuery).data;
  const navigate = useNavigate();
  const leaving = useAction({
    mutationFn: () => call("delete", "/panel/api/session"),
    async onSuccess() {
      await navigate({ to: "/login" });
      queries.clear();
    },
  });
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t.app.account}>
          <IconUserCircle size={22} stroke={1.7} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{email ?? name}</Menu.Label>
        <Menu.Item component={Link} to="/me" leftSection={<IconUserCircle size={16} aria-hidden />}>
          {t.me.title}
        </Menu.Item>
        <Menu.Item component="a" href="/panel/docs" leftSection={<IconApi size={16} aria-hidden />}>
          {t.app.apiReference}
        </Menu.Item>
        <Menu.Item
          component="a"
          href="/webhooks/docs"
          leftSection={<IconWebhook size={16} aria-hidden />}
        >
          {t.app.webhookReference}
        </Menu.Item>
        <Menu.Item
          leftSection={<IconLogout size={16} aria-hidden />}
          onClick={() => leaving.mutate()}
        >
          {t.app.logOut}
        </Menu.Item>
        <VersionLabel />
      </Menu.Dropdown>
    </Menu>
  );
}

/** Of the server, which may be a later one than this page was loaded from. Asked for when the menu opens. */
function VersionLabel() {
  const { data } = useQuery(versionQuery);
  if (!data) return null;
  const { version, commit } = data;
  return <Menu.Label>Waybill {commit ? `${version} (${commit.slice(0, 7)})` : version}</Menu.Label>;
}

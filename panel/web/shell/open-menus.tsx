/** The menus of language, colours and account: a chunk of their own, which comes when one of them is first opened. */
import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import {
  IconApi,
  IconCheck,
  IconDeviceDesktop,
  IconLogout,
  IconMoon,
  IconSun,
  IconUserCircle,
  IconWebhook,
} from "@tabler/icons-react";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactElement, ReactNode } from "react";
import { call } from "#panel/web/api/call.ts";
import { type Language, useText } from "#panel/web/i18n/text.tsx";
import { tellProblem } from "#panel/web/parts/tell.ts";
import { useAction } from "#panel/web/parts/use-action.ts";
import { meQuery, queries, versionQuery } from "#panel/web/queries.ts";

export interface SettingsMenuProps {
  /** Of its button. */
  readonly label: string;
  /** The icon. */
  readonly children: ReactElement;
}

interface OpenMenuProps extends SettingsMenuProps {
  readonly items: ReactNode;
}

/** It comes when it was asked for, so it opens at once. */
function OpenMenu({ label, children, items }: OpenMenuProps) {
  return (
    <Menu position="bottom-end" withinPortal defaultOpened>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={label}>
          {children}
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>{items}</Menu.Dropdown>
    </Menu>
  );
}

const LANGUAGES: ReadonlyArray<readonly [Language, string]> = [
  ["en", "English"],
  ["it", "Italiano"],
];

export function LanguageItems(props: SettingsMenuProps) {
  const { language, setLanguage } = useText();
  const items = LANGUAGES.map(([code, name]) => (
    <Menu.Item
      key={code}
      lang={code}
      onClick={() => void setLanguage(code).catch(tellProblem)}
      rightSection={code === language && <IconCheck size={16} aria-hidden />}
    >
      {name}
    </Menu.Item>
  ));
  return <OpenMenu {...props} items={items} />;
}

const SCHEMES = [
  ["light", IconSun],
  ["dark", IconMoon],
  ["auto", IconDeviceDesktop],
] as const;

export function ColourItems(props: SettingsMenuProps) {
  const { t } = useText();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const items = SCHEMES.map(([scheme, Icon]) => (
    <Menu.Item
      key={scheme}
      onClick={() => setColorScheme(scheme)}
      leftSection={<Icon size={16} aria-hidden />}
      rightSection={scheme === colorScheme && <IconCheck size={16} aria-hidden />}
    >
      {t.app.schemes[scheme]}
    </Menu.Item>
  ));
  return <OpenMenu {...props} items={items} />;
}

export function AccountItems(props: SettingsMenuProps) {
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
  const items = (
    <>
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
    </>
  );
  return <OpenMenu {...props} items={items} />;
}

/** Of the server, which may be a later one than this page was loaded from. Asked for when the menu opens. */
function VersionLabel() {
  const { data } = useQuery(versionQuery);
  if (!data) return null;
  const { version, commit } = data;
  return <Menu.Label>Waybill {commit ? `${version} (${commit.slice(0, 7)})` : version}</Menu.Label>;
}

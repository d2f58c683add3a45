/** Language, colours, and the visitor's own account: buttons, whose menus come when they are first asked for. */
import { ActionIcon, Group, useMantineColorScheme } from "@mantine/core";
import {
  IconDeviceDesktop,
  IconLanguage,
  IconMoon,
  IconSun,
  IconUserCircle,
} from "@tabler/icons-react";
import { type ComponentType, lazy, type ReactElement, Suspense, useState } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { arrival } from "#panel/web/page-of.ts";
import type { SettingsMenuProps } from "./open-menus.tsx";

const menus = () => arrival(() => import("./open-menus.tsx"));
const LanguageItems = lazy(async () => ({ default: (await menus()).LanguageItems }));
const ColourItems = lazy(async () => ({ default: (await menus()).ColourItems }));
const AccountItems = lazy(async () => ({ default: (await menus()).AccountItems }));

export function SettingsMenu() {
  return (
    <Group gap={4} wrap="nowrap">
      <LanguageMenu />
      <ColourMenu />
      <AccountMenu />
    </Group>
  );
}

export function LanguageMenu() {
  const { t } = useText();
  return (
    <LateMenu label={t.app.language} items={LanguageItems}>
      <IconLanguage size={20} stroke={1.7} aria-hidden />
    </LateMenu>
  );
}

const SCHEMES = { light: IconSun, dark: IconMoon, auto: IconDeviceDesktop } as const;

export function ColourMenu() {
  const { t } = useText();
  const { colorScheme } = useMantineColorScheme();
  const Current = SCHEMES[colorScheme];
  return (
    <LateMenu label={t.app.colours} items={ColourItems}>
      <Current size={20} stroke={1.7} aria-hidden />
    </LateMenu>
  );
}

function AccountMenu() {
  const { t } = useText();
  return (
    <LateMenu label={t.app.account} items={AccountItems}>
      <IconUserCircle size={22} stroke={1.7} aria-hidden />
    </LateMenu>
  );
}

interface LateMenuProps {
  readonly label: string;
  readonly items: ComponentType<SettingsMenuProps>;
  /** The icon. */
  readonly children: ReactElement;
}

/** The same button before and after its menu has come. */
function LateMenu({ label, items: Items, children }: LateMenuProps) {
  const [isAsked, setIsAsked] = useState(false);
  const button = (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={label}
      aria-haspopup="menu"
      onClick={() => setIsAsked(true)}
    >
      {children}
    </ActionIcon>
  );
  if (!isAsked) return button;
  return (
    <Suspense fallback={button}>
      <Items label={label}>{children}</Items>
    </Suspense>
  );
}

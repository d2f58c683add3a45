/** One channel: its keys, couriers, mails, settings and usage. */
import { Anchor, Breadcrumbs, Group, Stack, Tabs } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { call } from "#panel/web/api/call.ts";
import type { Channel } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ActiveBadge } from "#panel/web/pages/companies/active-badge.tsx";
import { channelQuery } from "#panel/web/pages/companies/queries.ts";
import { CloseButton } from "#panel/web/pages/entries/close-button.tsx";
import { ManagedBadge } from "#panel/web/pages/entries/managed-badge.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { SwitchButton } from "#panel/web/parts/switch-button.tsx";
import { useTab } from "#panel/web/parts/use-tab.ts";
import { queries } from "#panel/web/queries.ts";
import { ApiKeys } from "./api-keys.tsx";
import { ChannelCouriers } from "./channel-couriers.tsx";
import { ChannelOnboarding } from "./channel-onboarding.tsx";
import { ChannelSettings } from "./channel-settings.tsx";
import { MailSettings } from "./mail-settings.tsx";
import { Templates } from "./templates.tsx";
import { Usage } from "./usage.tsx";
import { useMayChange } from "./use-may-change.ts";

export function ChannelPage() {
  const { t } = useText();
  const { code = "" } = useParams({ strict: false });
  const channel = useSuspenseQuery(channelQuery(code)).data;
  const mayClose = useMayChange("channels:write", code);
  const params = { channelCode: code };
  const [tab, setTab] = useTab(["keys", "couriers", "mails", "settings", "usage"]);
  return (
    <>
      <Breadcrumbs mb="xs">
        <Anchor component={Link} to="/companies" size="sm">
          {t.merchants.companies}
        </Anchor>
        <Anchor component={Link} to={`/companies/${channel.companyCode}`} size="sm">
          {channel.companyCode}
        </Anchor>
      </Breadcrumbs>
      <PageHead
        title={channel.name}
        lead={
          <Group gap="xs">
            <ActiveBadge isActive={channel.active} />
            <ManagedBadge entity={channel} />
            <span>{channel.code}</span>
          </Group>
        }
      >
        <Activation channel={channel} />
        {mayClose && (
          <CloseButton
            closedAt={channel.closedAt}
            action={t.entries.close.channel}
            text={t.entries.closeChannel}
            close={() => call("delete", "/panel/api/channels/:channelCode", { params })}
            reopen={() => call("post", "/panel/api/channels/:channelCode/reopen", { params })}
          />
        )}
      </PageHead>
      {mayClose && <ChannelOnboarding channel={channel} />}
      <Tabs value={tab} onChange={setTab} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="keys">{t.merchants.keys}</Tabs.Tab>
          <Tabs.Tab value="couriers">{t.nav.couriers}</Tabs.Tab>
          <Tabs.Tab value="mails">{t.merchants.mails}</Tabs.Tab>
          <Tabs.Tab value="settings">{t.merchants.settings}</Tabs.Tab>
          <Tabs.Tab value="usage">{t.merchants.usage}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="keys">
          <ApiKeys channel={channel} />
        </Tabs.Panel>
        <Tabs.Panel value="couriers">
          <ChannelCouriers channel={channel} />
        </Tabs.Panel>
        <Tabs.Panel value="mails">
          <Stack gap="lg">
            <Templates channel={channel} />
            <MailSettings channel={channel} />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <ChannelSettings channel={channel} />
        </Tabs.Panel>
        <Tabs.Panel value="usage">
          <Usage channel={channel} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

function Activation({ channel: { code, active } }: { readonly channel: Channel }) {
  const { t } = useText();
  if (!useMayChange("channels:write", code)) return null;
  return (
    <SwitchButton
      isOn={active}
      turnOn={t.merchants.activate}
      turnOff={t.merchants.deactivate}
      turnOffText={t.merchants.deactivateText}
      onSwitch={() =>
        call("post", `/panel/api/channels/:channelCode/${active ? "deactivate" : "activate"}`, {
          params: { channelCode: code },
        })
      }
      onDone={() => queries.invalidateQueries({ queryKey: ["channels"] })}
    />
  );
}

/** Searches under a name, kept in this browser for the account that saved them. */
import { ActionIcon, Button, Group, Menu, TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { IconBookmark, IconTrash } from "@tabler/icons-react";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useLocation, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { limit } from "#core/platform/schema/limit.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { meQuery } from "#panel/web/queries.ts";

const VIEWS = limit(50, "saved views of a browser", "the oldest goes");

interface View {
  readonly name: string;
  /** Of the address. */
  readonly search: Readonly<Record<string, string>>;
}

export function SavedViews() {
  const { t } = useText();
  const navigate = useNavigate();
  const { email } = useSuspenseQuery(meQuery).data;
  const [views, setViews] = useLocalStorage<readonly View[]>({
    key: `shipment-views ${email ?? ""}`,
    defaultValue: [],
  });
  const search = useLocation().search as View["search"];
  const [name, setName] = useState("");
  const others = (kept: string) => views.filter((one) => one.name !== kept);
  return (
    <Menu position="bottom-end" withinPortal closeOnItemClick={false}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconBookmark size={16} aria-hidden />}>
          {t.shipments.views}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {views.map((view) => (
          <Group key={view.name} gap={0} wrap="nowrap">
            <Menu.Item onClick={() => void navigate({ to: "/shipments", search: view.search })}>
              {view.name}
            </Menu.Item>
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`${t.common.remove}: ${view.name}`}
              onClick={() => setViews(others(view.name))}
            >
              <IconTrash size={14} aria-hidden />
            </ActionIcon>
          </Group>
        ))}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const kept = name.trim();
            if (kept === "") return;
            setViews([...others(kept), { name: kept, search }].slice(-VIEWS));
            setName("");
          }}
        >
          <Group p="xs" gap="xs" wrap="nowrap">
            <TextInput
              aria-label={t.shipments.viewName}
              placeholder={t.shipments.viewName}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit">{t.common.save}</Button>
          </Group>
        </form>
      </Menu.Dropdown>
    </Menu>
  );
}

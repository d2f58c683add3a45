/** The search box of every page: Ctrl-K, a part of what the parcel is known by, Enter. */
import { Kbd, TextInput, useMatches } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useText } from "#panel/web/i18n/text.tsx";

const SHORTCUT = { rightSection: <Kbd size="xs">Ctrl K</Kbd>, rightSectionWidth: 62 };

export function SearchEverywhere() {
  const { t } = useText();
  const navigate = useNavigate();
  const input = useRef<HTMLInputElement>(null);
  const shortcut = useMatches({ base: {}, sm: SHORTCUT });
  const [text, setText] = useState("");
  // Also where the cursor stands in another field.
  useHotkeys([["mod+K", () => input.current?.focus()]], []);
  return (
    <form
      className="search-everywhere"
      onSubmit={(event) => {
        event.preventDefault();
        const q = text.trim();
        if (q === "") return;
        void navigate({ to: "/shipments", search: { q } });
        setText("");
        input.current?.blur();
      }}
    >
      <TextInput
        ref={input}
        type="search"
        aria-label={t.app.searchEverywhere}
        placeholder={t.app.searchEverywhere}
        leftSection={<IconSearch size={16} aria-hidden />}
        {...shortcut}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}

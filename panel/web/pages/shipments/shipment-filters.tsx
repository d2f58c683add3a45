import { Button, Group, Select, TextInput } from "@mantine/core";
import { IconDownload, IconSearch } from "@tabler/icons-react";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { couriersQuery } from "#panel/web/pages/couriers/queries.ts";
import { channelsQuery } from "#panel/web/pages/webhooks/queries.ts";
import { DayInput } from "#panel/web/parts/day-input.tsx";
import { statusChoices } from "#panel/web/parts/status-badge.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";
import { useTyped } from "#panel/web/parts/use-typed.ts";

const QUIET_DAYS = [1, 2, 3, 5, 7, 14, 30];
const SORTS = ["-updated", "updated", "-created", "created", "-shipDate", "shipDate"] as const;

/** As in the address. */
export interface ShipmentSearch {
  readonly q?: string;
  readonly channel?: string;
  readonly status?: string;
  readonly courier?: string;
  readonly quietDays?: string;
  readonly shipFrom?: string;
  readonly shipTo?: string;
  readonly sort?: string;
}

interface ShipmentFiltersProps {
  readonly search: ShipmentSearch;
  /** Of the shipments that are listed. */
  readonly couriers: readonly string[];
}

export function ShipmentFilters({ search, couriers }: ShipmentFiltersProps) {
  const { t } = useText();
  const change = useChange(search);
  const channels = useSuspenseQuery(channelsQuery).data.items;
  const known = useQuery({ ...couriersQuery, enabled: useMay("couriers:read") }).data?.items ?? [];
  const codes = [...known.map(({ code }) => code), ...couriers, search.courier ?? ""];
  const choiceOf = (name: keyof ShipmentSearch, any: string, data: readonly Choice[]) => ({
    data: [{ value: "", label: any }, ...data],
    value: search[name] ?? "",
    onChange: (value: string | null) => change({ [name]: value ?? "" }),
    allowDeselect: false,
    searchable: data.length > 10,
  });
  const words = t.shipments;
  return (
    <Group p="sm" gap="sm" align="end">
      <SearchBox search={search} />
      <Select
        aria-label={words.channel}
        {...choiceOf(
          "channel",
          words.anyChannel,
          channels.map(({ code, name }) => ({ value: code, label: name })),
        )}
      />
      <Select
        aria-label={words.status}
        {...choiceOf("status", words.anyStatus, statusChoices(t))}
      />
      <Select
        aria-label={words.courier}
        {...choiceOf(
          "courier",
          words.anyCourier,
          [...new Set(codes)]
            .filter((code) => code !== "")
            .map((code) => ({ value: code, label: code })),
        )}
      />
      <Select
        aria-label={words.quiet}
        {...choiceOf(
          "quietDays",
          words.anyQuiet,
          QUIET_DAYS.map((days) => ({ value: String(days), label: words.quietFor(String(days)) })),
        )}
      />
      <DayInput
        label={words.shipFrom}
        value={search.shipFrom ?? ""}
        onChange={(shipFrom) => change({ shipFrom })}
      />
      <DayInput
        label={words.shipTo}
        value={search.shipTo ?? ""}
        onChange={(shipTo) => change({ shipTo })}
      />
      <Select
        aria-label={words.sort}
        data={SORTS.map((value) => ({ value, label: words.sorts[value] }))}
        value={search.sort ?? "-updated"}
        onChange={(sort) => change({ sort: sort === "-updated" ? "" : (sort ?? "") })}
        allowDeselect={false}
      />
    </Group>
  );
}

interface Choice {
  readonly value: string;
  readonly label: string;
}

/** Whoever comes back from a shipment, or reloads, finds the same list. */
function useChange(search: ShipmentSearch) {
  const navigate = useNavigate();
  return (change: ShipmentSearch) => {
    const after = Object.entries({ ...search, ...change }).filter(([, value]) => value !== "");
    void navigate({
      to: "/shipments",
      search: Object.fromEntries(after),
      replace: true,
      resetScroll: false,
    });
  };
}

function SearchBox({ search }: { readonly search: ShipmentSearch }) {
  const { t } = useText();
  const change = useChange(search);
  const asked = search.q ?? "";
  const [text, setText] = useState(asked);
  const ask = useTyped((q: string) => change({ q }));
  // The box of the frame, or a saved view, has asked for something else.
  useEffect(() => setText((now) => (now.trim() === asked ? now : asked)), [asked]);
  return (
    <TextInput
      aria-label={t.common.search}
      description={t.shipments.searchHint}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        ask(event.currentTarget.value.trim());
      }}
      flex="1 1 320px"
    />
  );
}

export function ExportShipments({ search }: { readonly search: ShipmentSearch }) {
  const { t } = useText();
  const { channel = "", ...others } = search;
  const asked = Object.entries({ ...others, channelCode: channel }).filter(([, value]) => value);
  return (
    <Button
      component="a"
      href={`/panel/api/shipments/export?${new URLSearchParams(asked)}`}
      download
      variant="default"
      leftSection={<IconDownload size={16} aria-hidden />}
    >
      {t.shipments.export}
    </Button>
  );
}

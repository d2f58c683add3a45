/** What became of an event or a message of the last seven days, whatever its outcome. */
import {
  Alert,
  Anchor,
  Badge,
  Button,
  Group,
  SegmentedControl,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconSearch } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { FoundEvents } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { usePaged } from "#panel/web/parts/use-paged.ts";
import { queries } from "#panel/web/queries.ts";

type FoundEvent = FoundEvents["items"][number];

interface Asked {
  readonly by: string;
  readonly id: string;
}

const keyOf = (courier: string, { by, id }: Asked) => ["events", courier, by, id];

export function MessageFinder({ courier }: { readonly courier: string }) {
  const { t } = useText();
  const form = useForm({ initialValues: { by: "eventId", id: "" } });
  const [asked, setAsked] = useState<Asked | null>(null);
  const find = ({ by, id }: Asked) => {
    const wanted = { by, id: id.trim() };
    // Asked once more, it is answered as it is now.
    queries.removeQueries({ queryKey: keyOf(courier, wanted) });
    setAsked(wanted);
  };
  return (
    <Section title={t.couriers.finder} lead={t.couriers.finderLead}>
      <Stack>
        <form onSubmit={form.onSubmit(find)}>
          <Group align="end" gap="sm">
            <SegmentedControl
              aria-label={t.couriers.findBy}
              data={[
                { value: "eventId", label: t.couriers.eventId },
                { value: "messageId", label: t.couriers.messageId },
              ]}
              {...form.getInputProps("by")}
            />
            <TextInput
              aria-label={t.couriers.id}
              placeholder={t.couriers.id}
              required
              flex="1 1 220px"
              {...form.getInputProps("id")}
            />
            <Button type="submit" leftSection={<IconSearch size={16} aria-hidden />}>
              {t.couriers.find}
            </Button>
          </Group>
        </form>
        {asked && <Found courier={courier} asked={asked} />}
      </Stack>
    </Section>
  );
}

function Found({ courier, asked }: { readonly courier: string; readonly asked: Asked }) {
  const { t } = useText();
  const { by, id } = asked;
  const { rows, pages, error, isLoading, onEnd } = usePaged(
    keyOf(courier, asked),
    (cursor, signal) =>
      call("get", "/panel/api/events", { query: { courier, [by]: id, cursor }, signal }),
  );
  const columns = useColumns();
  const first = pages?.[0];
  const isWhole = pages?.every(({ isComplete }) => isComplete) ?? true;
  if (error) return <ProblemNote error={error} />;
  return (
    <Stack role="status">
      {!isWhole && <Alert color="yellow">{t.couriers.notComplete}</Alert>}
      {first?.isKnown != null && (
        <Text size="sm">{first.isKnown ? t.couriers.known : t.couriers.notKnown}</Text>
      )}
      <DataTable
        label={t.couriers.finder}
        rows={rows}
        columns={columns}
        idOf={({ receivedAt, place, messageId }) => `${receivedAt} ${place} ${messageId}`}
        isLoading={isLoading}
        emptyText={t.couriers.neverSeen}
        onEnd={onEnd}
        minWidth={980}
      />
    </Stack>
  );
}

const COLOURS = {
  ACCEPTED: "teal",
  DUPLICATE: "gray",
  UNKNOWN_TRACKING: "yellow",
  INVALID: "red",
} as const;

function useColumns() {
  const { t } = useText();
  return useMemo(() => {
    const column = createColumnHelper<FoundEvent>();
    return [
      column.accessor("receivedAt", {
        header: t.couriers.received,
        cell: ({ getValue }) => <Instant at={getValue()} precise />,
      }),
      column.accessor("messageId", {
        header: t.couriers.messageId,
        cell: ({ getValue }) => <Id id={getValue()} />,
      }),
      column.accessor("place", { header: t.couriers.place, meta: { align: "right" } }),
      column.accessor("eventId", {
        header: t.couriers.eventId,
        cell: ({ getValue }) => <Id id={getValue()} />,
      }),
      column.accessor("outcome", {
        header: t.couriers.outcome,
        cell: ({ getValue }) => <Badge color={COLOURS[getValue()]}>{getValue()}</Badge>,
      }),
      column.accessor("reasons", {
        header: t.couriers.reasons,
        cell: ({ getValue }) => <span className="break">{getValue().join(", ") || "–"}</span>,
      }),
      column.accessor("shipmentIds", {
        header: t.couriers.shipments,
        cell: ({ getValue }) =>
          getValue().map((id) => (
            <Anchor key={id} component={Link} to={`/shipments/${id}`} size="sm" mr={6}>
              {id}
            </Anchor>
          )),
      }),
    ];
  }, [t]);
}

function Id({ id }: { readonly id: string | null }) {
  return <span className="mono break">{id ?? "–"}</span>;
}

/** What became of an event or a message of the last seven days, whatever its outcome. */
import {
  Alert,
  Anchor,
  Badge,
  Button,
  Group,
  SegmentedControl,
  Stack,
  Table,
  Text,
  TextInput,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconSearch } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { call } from "#panel/web/api/call.ts";
import type { FoundEvents } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";

export function MessageFinder({ courier }: { readonly courier: string }) {
  const { t } = useText();
  const form = useForm({ initialValues: { by: "eventId", id: "" } });
  const finding = useMutation({
    mutationFn: ({ by, id }: { readonly by: string; readonly id: string }) =>
      call("get", "/panel/api/events", { query: { courier, [by]: id.trim() } }),
  });
  return (
    <Section title={t.carriers.finder} lead={t.carriers.finderLead}>
      <Stack>
        <form onSubmit={form.onSubmit((values) => finding.mutate(values))}>
          <Group align="end" gap="sm">
            <SegmentedControl
              aria-label={t.carriers.findBy}
              data={[
                { value: "eventId", label: t.carriers.eventId },
                { value: "messageId", label: t.carriers.messageId },
              ]}
              {...form.getInputProps("by")}
            />
            <TextInput
              aria-label={t.carriers.id}
              placeholder={t.carriers.id}
              required
              flex="1 1 220px"
              {...form.getInputProps("id")}
            />
            <Button
              type="submit"
              leftSection={<IconSearch size={16} aria-hidden />}
              loading={finding.isPending}
            >
              {t.carriers.find}
            </Button>
          </Group>
        </form>
        <ProblemNote error={finding.error} />
        {finding.data && <Found found={finding.data} />}
      </Stack>
    </Section>
  );
}

const COLOURS = {
  ACCEPTED: "teal",
  DUPLICATE: "gray",
  UNKNOWN_TRACKING: "yellow",
  INVALID: "red",
} as const;

function Found({ found: { items, isComplete } }: { readonly found: FoundEvents }) {
  const { t } = useText();
  return (
    <Stack role="status">
      {!isComplete && <Alert color="yellow">{t.carriers.notComplete}</Alert>}
      {items.length === 0 && <Text size="sm">{t.carriers.neverSeen}</Text>}
      {items.length > 0 && (
        <ScrollTable label={t.carriers.finder} minWidth={640}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t.carriers.received}</Table.Th>
              <Table.Th>{t.carriers.outcome}</Table.Th>
              <Table.Th>{t.carriers.reasons}</Table.Th>
              <Table.Th>{t.carriers.shipments}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {items.map((one) => (
              <Table.Tr key={`${one.receivedAt} ${one.place} ${one.messageId}`}>
                <Table.Td>
                  <Instant at={one.receivedAt} precise />
                </Table.Td>
                <Table.Td>
                  <Badge color={COLOURS[one.outcome]}>{one.outcome}</Badge>
                </Table.Td>
                <Table.Td className="break">{one.reasons.join(", ") || "–"}</Table.Td>
                <Table.Td>
                  {one.shipmentIds.map((id) => (
                    <Anchor key={id} component={Link} to={`/shipments/${id}`} size="sm" mr={6}>
                      {id}
                    </Anchor>
                  ))}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </ScrollTable>
      )}
    </Stack>
  );
}

/** What an unmapped code probably means, and why. */
import { Alert, Group, Stack, Text } from "@mantine/core";
import { IconBulb } from "@tabler/icons-react";
import type { UnmappedCode } from "#panel/web/api/routes.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { StatusBadge } from "#panel/web/parts/status-badge.tsx";

export type MappingSuggestion = UnmappedCode["suggestion"];

interface SuggestionProps {
  readonly suggestion: MappingSuggestion;
}

export function SuggestionCell({ suggestion }: SuggestionProps) {
  const { t, language } = useText();
  if (suggestion === null) return <>–</>;
  const { status, statusDetail, confidence, because } = suggestion;
  return (
    <Stack gap={2}>
      <Group gap={6}>
        <StatusBadge status={status} detail={statusDetail} />
        <Text size="xs" c="dimmed">
          {t.couriers.confidence[confidence]}
        </Text>
      </Group>
      <Text size="xs" c="dimmed" maw={280}>
        {because[language]}
      </Text>
    </Stack>
  );
}

/** Where the form is filled in with it. */
export function SuggestionNote({ suggestion }: SuggestionProps) {
  const { t, language } = useText();
  if (suggestion === null) return null;
  const { confidence, because } = suggestion;
  return (
    <Alert color="blue" icon={<IconBulb aria-hidden />} title={t.couriers.suggested}>
      <Text size="sm">
        {because[language]} {t.couriers.confidence[confidence]}.
      </Text>
    </Alert>
  );
}

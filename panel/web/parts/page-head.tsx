import { Group, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import { useText } from "#panel/web/i18n/text.tsx";

interface PageHeadProps {
  readonly title: string;
  readonly lead?: ReactNode;
  /** What can be done with all of the page. */
  readonly children?: ReactNode;
}

/** The title of a page, which is the document's too. */
export function PageHead({ title, lead, children }: PageHeadProps) {
  const { t } = useText();
  useEffect(() => {
    document.title = `${title} · ${t.app.name}`;
  }, [title, t]);
  return (
    <Group justify="space-between" align="end" gap="md" mb="lg">
      <Stack gap={4} miw={0}>
        <Title order={1} size="h2" className="break">
          {title}
        </Title>
        {lead && (
          <Text component="div" c="dimmed" size="sm" maw={720}>
            {lead}
          </Text>
        )}
      </Stack>
      {children && <Group gap="xs">{children}</Group>}
    </Group>
  );
}

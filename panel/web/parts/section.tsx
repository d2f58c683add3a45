import { Card, Group, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

interface SectionProps {
  readonly title: string;
  readonly lead?: ReactNode;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

/** A part of a page under its own heading. */
export function Section({ title, lead, aside, children }: SectionProps) {
  return (
    <Card component="section" aria-label={title} padding="md">
      <Group justify="space-between" align="start" mb="sm" gap="xs">
        <div>
          <Title order={2} size="h4">
            {title}
          </Title>
          {lead && (
            <Text component="div" size="sm" c="dimmed">
              {lead}
            </Text>
          )}
        </div>
        {aside}
      </Group>
      {children}
    </Card>
  );
}

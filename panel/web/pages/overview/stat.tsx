import { Anchor, Card, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

interface StatProps {
  readonly label: string;
  readonly value: ReactNode;
  readonly note?: ReactNode;
  readonly color?: string;
  readonly children?: ReactNode;
  /** Of the panel: where the thing itself is. */
  readonly to?: string;
  readonly search?: Readonly<Record<string, string>>;
}

/** One figure that counts, with what it means. */
export function Stat({ label, value, note, color, children, to, search = {} }: StatProps) {
  return (
    <Card padding="md">
      <Text size="sm" c="dimmed" fw={500}>
        {to === undefined ? (
          label
        ) : (
          <Anchor component={Link} to={to} search={search as never} inherit>
            {label}
          </Anchor>
        )}
      </Text>
      <Group justify="space-between" align="end" wrap="nowrap" gap="xs">
        <Text
          className="figures"
          fz={28}
          fw={700}
          lh={1.3}
          {...(color && { c: `var(--mantine-color-${color}-light-color)` })}
        >
          {value}
        </Text>
        {children}
      </Group>
      <Text size="xs" c="dimmed">
        {note}
      </Text>
    </Card>
  );
}

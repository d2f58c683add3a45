import { Table } from "@mantine/core";
import type { ReactNode } from "react";

interface ScrollTableProps {
  /** What the table shows, for screen readers. */
  readonly label: string;
  readonly minWidth?: number;
  readonly children: ReactNode;
}

/** A table that scrolls sideways on a narrow screen, by keyboard too. */
export function ScrollTable({ label, minWidth = 480, children }: ScrollTableProps) {
  return (
    <Table.ScrollContainer
      minWidth={minWidth}
      type="native"
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <Table>{children}</Table>
    </Table.ScrollContainer>
  );
}

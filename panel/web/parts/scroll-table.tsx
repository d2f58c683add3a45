import { Table } from "@mantine/core";
import { type ReactNode, useRef } from "react";
import { minWidthOf, type NarrowForm, narrowClass, useHeads } from "./narrow-table.ts";

interface ScrollTableProps {
  /** What the table shows, for screen readers. */
  readonly label: string;
  readonly minWidth?: number;
  readonly narrow?: NarrowForm;
  readonly children: ReactNode;
}

/** A table that fits a narrow screen, or scrolls sideways there, by keyboard too. */
export function ScrollTable({
  label,
  minWidth = 480,
  narrow = "cards",
  children,
}: ScrollTableProps) {
  const table = useRef<HTMLTableElement>(null);
  useHeads(table);
  return (
    <section
      className={narrowClass(narrow)}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      tabIndex={0}
    >
      <Table ref={table} miw={minWidthOf(narrow, minWidth)}>
        {children}
      </Table>
    </section>
  );
}

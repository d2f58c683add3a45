import { Box, Text } from "@mantine/core";
import type { ReactNode } from "react";
import css from "./facts.module.css";

interface FactsProps {
  readonly rows: ReadonlyArray<readonly [name: string, value: ReactNode]>;
}

/** Names with their values. */
export function Facts({ rows }: FactsProps) {
  return (
    <dl className={css["list"]}>
      {rows.map(([name, value]) => (
        <Box key={name} className={css["row"] ?? ""}>
          <Text component="dt" size="sm" c="dimmed">
            {name}
          </Text>
          <Text component="dd" size="sm" m={0} className="break">
            {value}
          </Text>
        </Box>
      ))}
    </dl>
  );
}

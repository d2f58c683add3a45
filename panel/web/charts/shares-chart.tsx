/** Parts of a whole, one row for each: how large they are, and what they add up to. */
import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { ChartKeys } from "./chart-keys.tsx";
import css from "./charts.module.css";
import type { Tone } from "./series.ts";

export interface ShareRow {
  readonly key: string;
  readonly name: ReactNode;
  readonly parts: readonly number[];
}

interface SharesChartProps {
  readonly label: string;
  /** In the order of each row's parts. */
  readonly keys: ReadonlyArray<{ readonly name: string; readonly tone: Tone }>;
  readonly rows: readonly ShareRow[];
  readonly write: (value: number) => string;
  /** Rows as long as they are large; else each fills its track, so that shares can be compared. */
  readonly isToScale?: boolean;
}

export function SharesChart({ label, keys, rows, write, isToScale = false }: SharesChartProps) {
  const sums = rows.map(({ parts }) => parts.reduce((sum, one) => sum + one, 0));
  const largest = Math.max(1, ...sums);
  return (
    <figure className={css["figure"]} aria-label={label}>
      <div className={css["shares"]}>
        {rows.map(({ key, name, parts }, row) => {
          const sum = sums[row] ?? 0;
          const whole = isToScale ? largest : Math.max(1, sum);
          const told = keys.map((one, at) => `${one.name}: ${write(parts[at] ?? 0)}`).join(", ");
          return (
            <div key={key} className={css["share"]}>
              <span className="break">{name}</span>
              <div className={css["track"]} role="img" aria-label={told} title={told}>
                {keys.map(({ name: part, tone }, at) =>
                  parts[at] ? (
                    <span
                      key={part}
                      className={css["part"]}
                      data-tone={tone}
                      style={{ width: `${(100 * parts[at]) / whole}%` }}
                    />
                  ) : null,
                )}
              </div>
              <Text size="sm" ta="right" className="figures">
                {write(sum)}
              </Text>
            </div>
          );
        })}
      </div>
      <ChartKeys keys={keys} />
    </figure>
  );
}

/** The legend of a chart. */
import type { ReactNode } from "react";
import css from "./charts.module.css";
import type { Tone } from "./series.ts";

interface ChartKeysProps {
  readonly keys: ReadonlyArray<{ readonly name: string; readonly tone: Tone }>;
  /** What is said of dashed lines; absent where there are none. */
  readonly partial?: string | undefined;
  readonly children?: ReactNode;
}

export function ChartKeys({ keys, partial, children }: ChartKeysProps) {
  return (
    <ul className={css["keys"]}>
      {keys.map(({ name, tone }) => (
        <li key={name} className={css["key"]}>
          <span className={css["swatch"]} data-tone={tone} aria-hidden />
          {name}
        </li>
      ))}
      {partial !== undefined && (
        <li className={css["key"]}>
          <span className={css["dashed"]} aria-hidden />
          {partial}
        </li>
      )}
      {children}
    </ul>
  );
}

/** Hours as columns, one row for each: the darker, the nearer to that row's own busiest hour; hatched where there was nothing. */
import { VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import css from "./charts.module.css";

const LEVELS = 4;
/** Columns from one that is named to the next. */
const NAMED_EVERY = 6;

export interface HeatRow {
  readonly key: string;
  readonly name: ReactNode;
  /** In the order of the columns. */
  readonly values: readonly number[];
}

interface HeatTableProps {
  readonly label: string;
  /** Of the rows' names. */
  readonly head: string;
  readonly columns: ReadonlyArray<{ readonly key: number; readonly name: string }>;
  readonly rows: readonly HeatRow[];
  readonly write: (value: number) => string;
}

export function HeatTable({ label, head, columns, rows, write }: HeatTableProps) {
  const { t } = useText();
  return (
    <figure className={css["figure"]}>
      <table className={css["heat"]} aria-label={label}>
        <thead>
          <tr>
            <th scope="col">{head}</th>
            {columns.map(({ key, name }, at) => (
              <th key={key} scope="col">
                {at % NAMED_EVERY === 0 ? name : <VisuallyHidden>{name}</VisuallyHidden>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, name, values }) => {
            const most = Math.max(1, ...values);
            return (
              <tr key={key}>
                <th scope="row">{name}</th>
                {columns.map((column, at) => {
                  const value = values[at] ?? 0;
                  return (
                    <td
                      key={column.key}
                      className={`${css["cell"]} ${css[`level${levelOf(value, most)}`]}`}
                      title={`${column.name}: ${write(value)}`}
                    >
                      <VisuallyHidden>{write(value)}</VisuallyHidden>
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
      <ul className={css["keys"]}>
        {[t.charts.none, t.charts.few, "", "", t.charts.busiest].map((name, level) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the level is the key
          <li key={level} className={css["key"]}>
            <span className={`${css["swatch"]} ${css[`level${level}`]}`} aria-hidden />
            {name}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function levelOf(value: number, most: number): number {
  return value === 0 ? 0 : Math.max(1, Math.ceil((LEVELS * value) / most));
}

/** How a table is shown on a narrow screen. */
import { type RefObject, useLayoutEffect } from "react";
import css from "./narrow-table.module.css";

/** Each row as a card of its own, or figures that are compared row by row and scroll sideways. */
export type NarrowForm = "cards" | "figures";

export function narrowClass(form: NarrowForm): string {
  return `${css["scroll"]} ${css[form]}`;
}

export const RIGHT = css["right"] ?? "";

/** Cards are as wide as the screen. */
export function minWidthOf(form: NarrowForm, width: number) {
  return form === "cards" ? { sm: width } : width;
}

/** Gives the styles the headings of the columns, which stand in front of the values where a row is a card. */
export function useHeads(table: RefObject<HTMLTableElement | null>): void {
  useLayoutEffect(() => {
    const heads = table.current?.querySelectorAll("thead th") ?? [];
    for (const [at, { textContent }] of [...heads].entries()) {
      table.current?.style.setProperty(`--head-${at + 1}`, JSON.stringify(textContent));
    }
  });
}

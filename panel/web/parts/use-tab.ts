/** The tab that a page shows stands in its address, so that a reload and a link show it again. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

export interface TabSearch {
  readonly tab?: string;
}

/** For the route of the page. */
export function tabSearch(search: Readonly<Record<string, unknown>>): TabSearch {
  return typeof search["tab"] === "string" ? { tab: search["tab"] } : {};
}

/** @param tabs the first one is shown when the address names none of them */
export function useTab(tabs: readonly [string, ...string[]]) {
  const { tab = "" } = useSearch({ strict: false });
  const navigate = useNavigate();
  const show = useCallback(
    (wanted: string | null) => {
      const search = wanted === null ? {} : { tab: wanted };
      void navigate({ to: ".", search, replace: true, resetScroll: false });
    },
    [navigate],
  );
  return [tabs.includes(tab) ? tab : tabs[0], show] as const;
}

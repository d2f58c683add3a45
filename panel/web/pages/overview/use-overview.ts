/** The overview as it changes: pushed by the server, or asked for every two seconds where the push does not come through. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { call } from "#panel/web/api/call.ts";
import type { Overview } from "#panel/web/api/routes.ts";
import { queries } from "#panel/web/queries.ts";

const STREAM = "/panel/api/overview/stream";
/** As the server pushes. */
export const READ_EVERY_MS = 2_000;
const KEY = ["overview"];
/** Readings that the chart shows: four minutes of them. */
const HISTORY_LENGTH = 120;

export interface Reading {
  readonly at: string;
  readonly accepted: number;
  readonly applied: number;
}

export function useOverview() {
  const isPushed = useStream();
  const { data, error, refetch } = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => call("get", "/panel/api/overview", { signal }),
    refetchInterval: isPushed ? false : READ_EVERY_MS,
  });
  return { overview: data, error, refetch, history: useHistory(data), isPushed };
}

function useStream(): boolean {
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const source = new EventSource(STREAM);
    source.onerror = () => setIsOpen(false);
    source.addEventListener("overview", ({ data }) => {
      setIsOpen(true);
      queries.setQueryData(KEY, JSON.parse(data) as Overview);
    });
    return () => source.close();
  }, []);
  return isOpen;
}

function useHistory(overview: Overview | undefined): readonly Reading[] {
  const [history, setHistory] = useState<readonly Reading[]>([]);
  useEffect(() => {
    if (!overview) return;
    const { at, rates } = overview;
    const reading = { at, accepted: rates.acceptedPerSecond, applied: rates.appliedPerSecond };
    setHistory((known) =>
      known.at(-1)?.at === at ? known : [...known, reading].slice(-HISTORY_LENGTH),
    );
  }, [overview]);
  return history;
}

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

/** Without a reading for so long, what is shown is no longer live, whatever the connection says. */
const LATE_MS = 8_000;

export interface Reading {
  readonly at: string;
  readonly accepted: number;
  readonly applied: number;
}

export function useOverview() {
  const pushedAt = useStream();
  const now = useNow();
  const isPushed = now - pushedAt < LATE_MS;
  const { data, error, refetch, dataUpdatedAt } = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => call("get", "/panel/api/overview", { signal }),
    refetchInterval: isPushed ? false : READ_EVERY_MS,
  });
  const ageMs = Math.max(0, now - dataUpdatedAt);
  const lateSeconds = data && ageMs >= LATE_MS ? Math.round(ageMs / 1_000) : null;
  return { overview: data, error, refetch, history: useHistory(data), lateSeconds };
}

/** The stream says nothing when its server stands still, so that its silence has to be noticed. */
function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), READ_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** @returns when something was pushed last */
function useStream(): number {
  const [pushedAt, setPushedAt] = useState(0);
  useEffect(() => {
    const source = new EventSource(STREAM);
    source.onerror = () => setPushedAt(0);
    source.addEventListener("overview", ({ data }) => {
      setPushedAt(Date.now());
      queries.setQueryData(KEY, JSON.parse(data) as Overview);
    });
    return () => source.close();
  }, []);
  return pushedAt;
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

/** The client of all questions to the server: how long an answer is fresh, and what is asked again. */
import { QueryClient, queryOptions, replaceEqualDeep } from "@tanstack/react-query";
import { ApiProblem, call } from "./api/call.ts";

const FRESH_MS = 10_000;
const ME_FRESH_MS = 60_000;
const RETRIES = 2;

export const queries = new QueryClient({
  defaultOptions: {
    // A browser without a network answers at once that there is none; waiting for one in silence would look like work.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: FRESH_MS,
      refetchOnWindowFocus: isShort,
      refetchOnReconnect: isShort,
      structuralSharing: (before, data) =>
        isShort({ state: { data } }) ? replaceEqualDeep(before, data) : data,
      retry: (failures, error) => failures < RETRIES && !isRefusal(error),
    },
  },
});

/** Who is logged in, and what they may do. */
export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => call("get", "/panel/api/me", { signal }),
  staleTime: ME_FRESH_MS,
});

/** What the numbers of status details mean. */
export const statusDetailsQuery = queryOptions({
  queryKey: ["status-details"],
  queryFn: ({ signal }) => call("get", "/panel/api/status-details", { signal }),
  staleTime: ME_FRESH_MS,
});

interface Alive {
  readonly version: string;
  readonly commit: string | null;
}

/** What serves this page. */
export const versionQuery = queryOptions({
  queryKey: ["version"],
  queryFn: async ({ signal }): Promise<Alive> => (await fetch("/healthz", { signal })).json(),
  staleTime: ME_FRESH_MS,
});

/** The pages of a long list would be asked for again one by one, and compared row by row for each page that comes. */
function isShort({ state: { data } }: { readonly state: { readonly data: unknown } }): boolean {
  const pages = (data as { readonly pages?: unknown } | undefined)?.pages;
  return !Array.isArray(pages) || pages.length === 1;
}

/** A refusal stays one; an answer that did not come may come. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiProblem && error.status >= 400 && error.status < 500;
}

/** Not a wrong password or code, which is also answered 401. */
export function isLoggedOut(error: unknown): boolean {
  return error instanceof ApiProblem && error.code === "UNKNOWN_OPERATOR";
}

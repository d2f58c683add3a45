/** The client of all questions to the server: how long an answer is fresh, and what is asked again. */
import { QueryClient, queryOptions } from "@tanstack/react-query";
import { ApiProblem, call } from "./api/call.ts";

const FRESH_MS = 10_000;
const ME_FRESH_MS = 60_000;
const RETRIES = 2;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
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

/** A refusal stays one; an answer that did not come may come. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiProblem && error.status >= 400 && error.status < 500;
}

export function isLoggedOut(error: unknown): boolean {
  return error instanceof ApiProblem && error.status === 401;
}

import { ApiProblem } from "#panel/web/api/call.ts";
import type { Messages } from "./en.ts";

/** What went wrong, in the visitor's language; in the server's own words, which are English, where there are no others. */
export function problemText({ problems }: Messages, error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const known: Readonly<Record<string, string>> = problems;
  return (error instanceof ApiProblem && known[error.code]) || error.message;
}

import { ApiProblem } from "#panel/web/api/call.ts";

/** What the server says is wrong with a field, or with an item of its list, to be shown where it was typed. */
export function faultOf(error: unknown, path: string): string | undefined {
  if (!(error instanceof ApiProblem)) return undefined;
  const isHere = (at: string) => at === path || at.startsWith(`${path}[`);
  return error.violations.find((one) => isHere(one.path))?.message;
}

/** `?offset=&limit=` of the panel's lists. */
import { Type } from "@sinclair/typebox";
import { Problem } from "#core/problem.ts";

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
const MAX_OFFSET = 1_000_000;

export const pageQuery = Type.Object({
  offset: Type.Optional(Type.String({ description: "items to skip; default 0" })),
  limit: Type.Optional(
    Type.String({ description: `default ${DEFAULT_LIMIT}, at most ${MAX_LIMIT}` }),
  ),
});

/** @throws {Problem} 422 */
export function pageOf(query: { readonly offset?: string; readonly limit?: string }): {
  readonly offset: number;
  readonly limit: number;
} {
  return {
    offset: numberOf("offset", query.offset ?? "0", 0, MAX_OFFSET),
    limit: numberOf("limit", query.limit ?? String(DEFAULT_LIMIT), 1, MAX_LIMIT),
  };
}

function numberOf(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (value >= least && value <= most) return value;
  throw new Problem(422, "INVALID_QUERY", `${name} is a number from ${least} to ${most}.`);
}
